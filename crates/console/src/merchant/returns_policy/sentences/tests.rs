use serde_json::{Value, json};

use super::*;

/// The rule with conditions and effects as a sentence, for a merchant in USD.
fn sentence(when: Value, then: Value) -> String {
    let rule = json!({ "id": "a", "when": when, "then": then });
    of_rule(&serde_json::from_value(rule).unwrap(), &Settings::new("Acme"))
}

/// Checks the start of the sentences of conditions.
#[track_caller]
fn check_conditions<const N: usize>(cases: [(Value, &str); N]) {
    for (when, clause) in cases {
        let expected = format!("{clause}: the unit cannot be returned.");
        assert_eq!(sentence(when, json!({ "returnable": false })), expected);
    }
}

#[test]
fn every_condition_about_goods_is_a_clause() {
    check_conditions([
        (json!({}), "Always"),
        (json!({ "line_tags": ["bulky"] }), "If the line has the tag bulky"),
        (json!({ "order_tags": ["vip", "b2b"] }), "If the order has the tag vip or b2b"),
        (json!({ "skus": ["TENT-*", "A", "B"] }), "If the SKU is TENT-*, A or B"),
        (
            json!({ "unit_price": { "min_cents": 500, "max_cents": 100_000 } }),
            "If the unit price is 5.00 USD to 1,000.00 USD",
        ),
        (
            json!({ "unit_price": { "min_cents": 500, "currency": "JPY" } }),
            "If the unit price is at least 500 JPY",
        ),
        (json!({ "weight": { "max": 2.5 } }), "If the weight is at most 2.5"),
        (json!({ "countries": ["DE", "AT"] }), "If the order goes to DE or AT"),
    ]);
}

#[test]
fn every_condition_about_days_is_a_clause() {
    check_conditions([
        (
            json!({ "ordered": { "from": "2026-11-01", "until": "2026-12-24" } }),
            "If the order was placed from 1 November 2026 to 24 December 2026",
        ),
        (
            json!({ "ordered": { "from": "2026-11-01" } }),
            "If the order was placed on 1 November 2026 or later",
        ),
        (
            json!({ "ordered": { "until": "2026-11-01" } }),
            "If the order was placed on 1 November 2026 or earlier",
        ),
        (
            json!({ "ordered": { "from": "2026-11-01", "until": "2026-11-01" } }),
            "If the order was placed on 1 November 2026",
        ),
        (
            json!({ "days_since_order": { "min": 1, "max": 30 } }),
            "If the order was placed 1 day to 30 days ago",
        ),
        (
            json!({ "days_since_shipping": { "min": 3 } }),
            "If the unit was shipped at least 3 days ago",
        ),
        (
            json!({ "days_since_delivery": { "min": 14, "max": 14 } }),
            "If the unit was delivered 14 days ago",
        ),
    ]);
}

#[test]
fn every_condition_about_the_choice_and_the_shopper_is_a_clause() {
    check_conditions([
        (
            json!({ "reasons": ["DAMAGED", "LOST", "withdrawal"] }),
            "If the reason is “Arrived damaged”, LOST or “Withdrawal from the contract”",
        ),
        (
            json!({ "methods": ["mail-back", "express-returns"] }),
            "If the method is mail-back or express-returns",
        ),
        (
            json!({ "outcomes": ["refund", "exchange", "gift_card"] }),
            "If the shopper wants a refund, an exchange or a gift card",
        ),
        (json!({ "concepts": ["Acme Sport"] }), "If the concept is Acme Sport"),
        (
            json!({ "returns_of_shopper": { "days": 90, "min": 5 } }),
            "If the shopper started at least 5 returns in the last 90 days",
        ),
        (json!({ "shoppers": ["trusted", "vip"] }), "If the shopper is on the list trusted or vip"),
        (
            json!({ "line_tags": ["a"], "countries": ["DE"], "reasons": ["OTHER"] }),
            "If the line has the tag a, the order goes to DE and the reason is “Another reason”",
        ),
    ]);
}

#[test]
fn every_effect_is_a_clause() {
    for (then, clause) in [
        (json!({ "returnable": false }), "the unit cannot be returned"),
        (json!({ "returnable": true }), "the unit can be returned, whatever its tags"),
        (json!({ "window": { "days": 60 } }), "the unit can be returned for 60 days from shipping"),
        (
            json!({ "window": { "days": 1, "from": "order" } }),
            "the unit can be returned for 1 day from the order",
        ),
        (
            json!({ "window": { "until": "2027-01-31" } }),
            "the unit can be returned until 31 January 2027",
        ),
        (
            json!({ "window": { "days": 30, "from": "delivery", "until": "2027-01-31" } }),
            "the unit can be returned until 31 January 2027, and at least for 30 days from delivery",
        ),
        (json!({ "costs": [{ "shipping_cost_cents": 0 }] }), "return shipping is free"),
        (
            json!({ "costs": [{ "currency": "EUR", "shipping_cost_cents": 0 },
                              { "method": "mail-back", "shipping_cost_cents": 900 }] }),
            "return shipping is free for orders in EUR; return shipping by mail-back costs 9.00 USD",
        ),
        (json!({ "methods": ["express-returns"] }), "the only method is express-returns"),
        (
            json!({ "outcomes": ["exchange", "gift_card"] }),
            "the shopper gets only an exchange or a gift card",
        ),
        (
            json!({ "keep": { "up_to_cents": 1500, "currency": "EUR" } }),
            "the shopper can keep units that cost at most 15.00 EUR together",
        ),
        (
            json!({ "keep": { "up_to_cents": 0 } }),
            "the shopper can keep only units that cost nothing",
        ),
        (
            json!({ "gift_card_bonus_percent": 10, "exchange_bonus_percent": 5 }),
            "a gift card has a bonus of 10 % of the amount paid; \
             a variant of another price has a discount of 5 % of the amount paid",
        ),
        (
            json!({ "review": { "within_days": 3, "then": "approve" } }),
            "the return waits for a review, and is approved after 3 days if nobody decides",
        ),
        (json!({ "review": { "required": false } }), "the return needs no review"),
        (json!({ "return_to": "reno" }), "the unit goes to the warehouse reno"),
        (json!({ "gift_card_bonus_percent": 0 }), "a gift card has no bonus"),
        (json!({ "exchange_bonus_percent": 0 }), "a variant of another price has no discount"),
    ] {
        assert_eq!(sentence(json!({}), then), format!("Always: {clause}."));
    }
}

#[test]
fn the_words_for_shoppers_follow_the_sentence() {
    let rule = json!({
        "id": "a", "then": { "methods": ["express-returns"] },
        "text": { "en": "Bring it to a store.", "de": "Bitte in eine Filiale bringen." },
    });
    let sentence = of_rule(&serde_json::from_value(rule).unwrap(), &Settings::new("Acme"));
    let expected = "Always: the only method is express-returns. \
        Shoppers read “Bring it to a store.” (en), “Bitte in eine Filiale bringen.” (de).";
    assert_eq!(sentence, expected);
}

#[test]
fn the_settings_are_the_last_sentence() {
    let mut settings = Settings::new("Acme");
    let plain = "Otherwise: the unit can be returned for 30 days from shipping, unless the line has the tag \
        FinalSale, gift-card or Thirdparty; return shipping by mail-back is free; \
        return shipping by express-returns is free.";
    assert_eq!(of_settings(&settings), plain);
    settings.currency = "EUR".to_owned();
    settings.final_sale_tags = vec!["Clearance".to_owned()];
    settings.express_max_weight = Some(20.0);
    settings.returns = serde_json::from_value(json!({
        "reasons": [], "free_exchange_shipping": true,
        "methods": [{ "method": "mail-back", "shipping_cost_cents": 595 },
                    { "method": "customer-keep", "shipping_cost_cents": 0 }],
        "gift_card": { "sku": "GIFT", "bonus_credit_amount_cents": 500 },
    }))
    .unwrap();
    let all = "Otherwise: the unit can be returned for 30 days from shipping, unless the line has the tag \
        FinalSale, gift-card, Thirdparty or Clearance; return shipping by mail-back costs 5.95 EUR, and nothing \
        if every unit is exchanged; the shopper can keep nothing; units heavier than 20 cannot be returned by \
        express-returns; a gift card has a bonus of 5.00 EUR.";
    assert_eq!(of_settings(&settings), all);
}
