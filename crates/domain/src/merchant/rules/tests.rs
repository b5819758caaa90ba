use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::json::{Document, ValidationError, object};
use crate::merchant::guard::Guard;
use crate::merchant::{Settings, SettingsChange, read_new_merchant};
use crate::warehouse::Warehouses;

/// A warehouse with an address, and one without.
fn warehouses() -> Warehouses {
    let address = json!({ "name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "state": "NV", "zip": "89501" });
    serde_json::from_value(json!({ "reno": { "address": address }, "bare": {} })).unwrap()
}

/// The settings after a change, as the API makes it.
fn changed(change: &Value) -> Result<Settings, ValidationError> {
    let guard = Guard::new(false, &[]);
    let document = Document::from(change);
    let change = document.read(object(|body| SettingsChange::read(body, &guard)))?;
    let mut settings = Settings::new("Acme");
    change.apply(&mut settings, &warehouses())?;
    Ok(settings)
}

#[track_caller]
fn check_errors(policy: &Value, expected: &Expect) {
    let invalid = changed(&json!({ "policy": policy })).unwrap_err();
    let lines: Vec<_> = invalid.errors.iter().map(ToString::to_string).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[track_caller]
fn check_warnings(rules: &Value, expected: &Expect) {
    let settings = changed(&json!({ "policy": { "rules": rules } })).unwrap();
    let warnings = settings.policy.warnings(&settings.currency);
    let line =
        |it: &crate::merchant::PolicyWarning| format!("{} {}: {}\n", it.field, it.rule, it.detail);
    expected.assert_eq(&warnings.iter().map(line).collect::<String>());
}

#[test]
fn a_policy_is_stored_as_it_is_read() {
    let digest = "0".repeat(64);
    let policy = json!({
        "rules": [
            { "id": "all-conditions", "text": { "en": "No.", "de": "Nein." },
              "when": {
                "line_tags": ["a"], "order_tags": ["b"], "skus": ["C-*"], "unit_price": { "min_cents": 1 },
                "weight": { "max": 2.5 }, "countries": ["DE"], "ordered": { "from": "2026-11-01" },
                "days_since_order": { "min": 1, "max": 1 }, "days_since_shipping": { "min": 0 },
                "days_since_delivery": { "max": 3 }, "reasons": ["DAMAGED", "withdrawal"],
                "methods": ["mail-back"], "outcomes": ["refund", "exchange"], "concepts": ["Acme"],
                "returns_of_shopper": { "days": 90, "min": 5 }, "shoppers": ["blocked"] },
              "then": { "returnable": false } },
            { "id": "all-effects", "when": {}, "then": {
                "returnable": true, "window": { "days": 60, "from": "delivery", "until": "2027-01-31" },
                "costs": [{ "shipping_cost_cents": 0 },
                          { "method": "mail-back", "currency": "EUR", "shipping_cost_cents": 1 }],
                "methods": ["express-returns"], "outcomes": ["refund"], "keep": { "up_to_cents": 1500 },
                "gift_card_bonus_percent": 10, "exchange_bonus_percent": 5,
                "review": { "within_days": 3, "then": "approve" }, "return_to": "reno" } },
            { "id": "no-review", "when": {}, "then": { "review": { "required": false } } },
        ],
        "shoppers": { "blocked": [digest] },
    });
    let settings = changed(&json!({ "policy": policy })).unwrap();
    let stored = serde_json::to_value(&settings).unwrap();
    assert_eq!(stored["policy"], policy);
    assert_eq!(serde_json::from_value::<Settings>(stored).unwrap(), settings);
}

#[test]
fn every_fault_of_a_rule_has_its_path() {
    check_errors(
        &json!({
            "rule": [],
            "rules": [
                { "id": "A b", "when": { "tag": ["x"], "skus": [], "countries": ["de"],
                    "unit_price": { "min_cents": 2, "max_cents": 1 }, "weight": {},
                    "ordered": { "from": "2026-12-24", "until": "1 Nov" }, "days_since_order": { "min": -1 },
                    "returns_of_shopper": { "min": 3, "max": 2 }, "methods": ["post", "mail-back"],
                    "line_tags": ["x", "x"] }, "then": {} },
                { "id": "two", "text": { "it": "No." }, "then": { "refuse": true, "window": { "from": "order" },
                    "costs": [{ "shipping_cost_cents": 0 }, { "shipping_cost_cents": 1 }],
                    "keep": { "up_to_cents": -1 }, "gift_card_bonus_percent": 101,
                    "review": {}, "return_to": "" } },
                { "id": "two", "then": { "review": { "required": false, "within_days": 1 } } },
            ],
            "shoppers": { "Blocked": [], "some": ["ada@shop.example"] },
        }),
        &expect![[r#"
            $.policy.rule: invalid (unknown field: known are rules, shoppers)
            $.policy.rules[0].id: invalid (must have 1 to 64 lower-case letters, digits and hyphens)
            $.policy.rules[0].when.tag: invalid (unknown field: known are line_tags, order_tags, skus, unit_price, weight, countries, ordered, days_since_order, days_since_shipping, days_since_delivery, reasons, methods, outcomes, concepts, returns_of_shopper, shoppers)
            $.policy.rules[0].when.line_tags[1]: invalid (is listed twice)
            $.policy.rules[0].when.skus: invalid (must have 1 to 100 elements)
            $.policy.rules[0].when.unit_price.max_cents: invalid (can never hold: must not be below min_cents)
            $.policy.rules[0].when.weight.min: missing_field
            $.policy.rules[0].when.countries[0]: invalid (must be an ISO 3166-1 code of two capital letters, like DE)
            $.policy.rules[0].when.ordered.until: invalid (must have exactly 10 characters)
            $.policy.rules[0].when.days_since_order.min: invalid (must be between 0 and 36500)
            $.policy.rules[0].when.methods[0]: invalid (must be one of mail-back, express-returns, customer-keep)
            $.policy.rules[0].when.returns_of_shopper.max: invalid (can never hold: must not be below min)
            $.policy.rules[0].when.returns_of_shopper.days: missing_field
            $.policy.rules[0].then: invalid (must have an effect)
            $.policy.rules[1].text.it: invalid (unknown language: known are en, de, fr, es)
            $.policy.rules[1].then.refuse: invalid (unknown field: known are returnable, window, costs, methods, outcomes, keep, gift_card_bonus_percent, exchange_bonus_percent, review, return_to)
            $.policy.rules[1].then.window.days: missing_field
            $.policy.rules[1].then.window.from: invalid (comes only with days)
            $.policy.rules[1].then.costs[1].method: invalid (another cost is for the same method and currency)
            $.policy.rules[1].then.keep.up_to_cents: invalid (must be between 0 and 100000000)
            $.policy.rules[1].then.gift_card_bonus_percent: invalid (must be between 0 and 100)
            $.policy.rules[1].then.review.within_days: missing_field
            $.policy.rules[1].then.review.then: missing_field
            $.policy.rules[1].then.return_to: invalid (must have 1 to 63 characters)
            $.policy.rules[2].id: invalid (another rule has the same id)
            $.policy.rules[2].then.review.within_days: invalid (must be left out if required is false)
            $.policy.shoppers.Blocked: invalid (the name must have 1 to 64 lower-case letters, digits and hyphens)
            $.policy.shoppers.some[0]: invalid (must be the SHA-256 digest of an e-mail address, as 64 lower-case hexadecimal digits)"#]],
    );
}

#[test]
fn a_condition_that_can_never_hold_is_an_error() {
    check_errors(
        &json!({ "rules": [{ "id": "a",
            "when": { "reasons": ["DAMAGED", "LOST"], "methods": ["customer-keep"], "outcomes": ["gift_card"],
                      "shoppers": ["vip"] },
            "then": { "methods": ["customer-keep"], "outcomes": ["gift_card"], "return_to": "west" } }] }),
        &expect![[r#"
            $.policy.rules[0].when.reasons[1]: invalid (can never hold: returns.reasons has no code LOST)
            $.policy.rules[0].when.methods[0]: invalid (returns.methods does not offer customer-keep)
            $.policy.rules[0].then.methods[0]: invalid (returns.methods does not offer customer-keep)
            $.policy.rules[0].when.outcomes[0]: invalid (returns.gift_card offers no gift card)
            $.policy.rules[0].then.outcomes[0]: invalid (returns.gift_card offers no gift card)
            $.policy.rules[0].when.shoppers[0]: invalid (can never hold: policy.shoppers has no list vip)
            $.policy.rules[0].then.return_to: invalid (the merchant has no warehouse west)"#]],
    );
    check_errors(
        &json!({ "rules": [{ "id": "a", "then": { "return_to": "bare" } }] }),
        &expect!["$.policy.rules[0].then.return_to: invalid (warehouse bare has no address)"],
    );
    let mut settings = changed(&json!({ "policy": { "rules": [
        { "id": "a", "when": { "methods": ["mail-back"] }, "then": { "returnable": false } } ] } }))
    .unwrap();
    let change = json!({ "returns": { "methods": [{ "method": "express-returns" }] } });
    let read = object(|body| SettingsChange::read(body, &Guard::new(false, &[])));
    let change = Document::from(&change).read(read).unwrap();
    let invalid = change.apply(&mut settings, &warehouses()).unwrap_err();
    assert_eq!(invalid.errors[0].field, "$.policy.rules[0].when.methods[0]");
}

#[test]
fn faults_and_unknown_names_are_reported_together() {
    let guard = Guard::new(false, &[]);
    let policy = json!({ "rules": [
        { "id": "a", "when": { "reasons": [1, "LOST"], "shoppers": ["vip", "bad"] }, "then": {} },
        "no rule",
        { "id": "a", "when": { "methods": ["post", "customer-keep"] },
          "then": { "outcomes": ["gift_card"], "return_to": "west" } },
    ], "shoppers": { "vip": ["nobody"] } });
    let expected = [
        "$.policy.rules[0].then",
        "$.policy.rules[0].when.reasons[0]",
        "$.policy.rules[0].when.reasons[1]",
        "$.policy.rules[0].when.shoppers[1]",
        "$.policy.rules[1]",
        "$.policy.rules[2].id",
        "$.policy.rules[2].then.outcomes[0]",
        "$.policy.rules[2].then.return_to",
        "$.policy.rules[2].when.methods[0]",
        "$.policy.rules[2].when.methods[1]",
        "$.policy.shoppers.vip[0]",
    ];
    let fields = |invalid: ValidationError| {
        let mut fields: Vec<_> = invalid.errors.into_iter().map(|error| error.field).collect();
        fields.sort();
        fields
    };
    let settings = Settings::new("Acme");
    let change = Document::from(&json!({ "policy": policy }));
    let known = warehouses();
    let draft =
        object(|body| body.required("policy", object(|it| settings.with_policy(it, &known))));
    assert_eq!(fields(change.read(draft).unwrap_err()), expected);
    let patch = object(|body| SettingsChange::read_for(body, &guard, &settings, &known));
    assert_eq!(fields(change.read(patch).unwrap_err()), expected);
    let new = json!({ "identifier": "acme", "name": "Acme", "policy": policy });
    let read = object(|body| read_new_merchant(body, &guard));
    assert_eq!(fields(Document::from(&new).read(read).unwrap_err()), expected);
}

#[test]
fn names_are_compared_with_the_other_settings_of_the_same_change() {
    let guard = Guard::new(false, &[]);
    let settings = changed(&json!({ "policy": { "rules": [
        { "id": "a", "when": { "reasons": ["DAMAGED"] }, "then": { "returnable": true } } ] } }))
    .unwrap();
    let fields = |change: Value| {
        let known = warehouses();
        let read = object(|body| SettingsChange::read_for(body, &guard, &settings, &known));
        let invalid = Document::from(&change).read(read).unwrap_err();
        invalid.errors.into_iter().map(|error| error.field).collect::<Vec<_>>()
    };
    let reasons = json!({ "reasons": [{ "code": "LOST", "label": "Lost" }] });
    let lost = json!({ "rules": [{ "id": "b", "when": { "reasons": ["LOST"] }, "then": {} }] });
    let then = "$.policy.rules[0].then";
    assert_eq!(fields(json!({ "returns": reasons, "policy": lost })), [then]);
    assert_eq!(fields(json!({ "policy": lost })), [then, "$.policy.rules[0].when.reasons[0]"]);
    // A rule that stays.
    let name = json!({ "name": "", "returns": reasons });
    assert_eq!(fields(name), ["$.name", "$.policy.rules[0].when.reasons[0]"]);
}

#[test]
fn a_part_of_the_policy_stays_if_it_is_not_named() {
    let mut settings = changed(&json!({ "policy": { "shoppers": { "vip": [] }, "rules": [
        { "id": "a", "when": { "shoppers": ["vip"] }, "then": { "returnable": true } } ] } }))
    .unwrap();
    let mut change = |policy: Value| {
        let document = Document::from(json!({ "policy": policy }));
        let read = object(|body| SettingsChange::read(body, &Guard::new(false, &[])));
        document.read(read).unwrap().apply(&mut settings, &warehouses())?;
        Ok::<_, ValidationError>((settings.policy.rules.len(), settings.policy.shoppers.len()))
    };
    assert_eq!(change(json!({ "rules": [] })).unwrap(), (0, 1));
    assert_eq!(change(Value::Null).unwrap(), (0, 0));
}

#[test]
fn a_rule_that_never_decides_anything_is_a_warning() {
    let no = json!({ "returnable": false });
    check_warnings(
        &json!([
            { "id": "sale", "when": { "line_tags": ["sale", "Outlet"], "skus": ["A*"] }, "then": no },
            { "id": "sale-again", "when": { "line_tags": ["SALE"], "skus": ["A-*", "AB"], "countries": ["DE"] },
              "then": no },
            { "id": "other-sku", "when": { "line_tags": ["sale"], "skus": ["*A"] }, "then": no },
            { "id": "more-effects", "when": { "line_tags": ["sale"], "skus": ["A1"] },
              "then": { "returnable": true, "window": { "days": 1 } } },
            { "id": "without-tag", "then": no },
            { "id": "last", "then": { "returnable": true } },
            { "id": "reno", "then": { "returnable": true, "return_to": "reno" } },
            { "id": "reno-again", "when": { "line_tags": ["sale"] }, "then": { "return_to": "reno" } },
        ]),
        &expect![[r#"
            $.policy.rules[1] sale-again: never decides anything, because earlier rules always decide: sale
            $.policy.rules[5] last: never decides anything, because earlier rules always decide: without-tag
            $.policy.rules[7] reno-again: never decides anything, because earlier rules always decide: reno
        "#]],
    );
    check_warnings(
        &json!([
            { "id": "free", "when": { "days_since_order": { "max": 30 }, "unit_price": { "min_cents": 5 } },
              "then": { "costs": [{ "shipping_cost_cents": 0 }] } },
            { "id": "covered", "when": { "days_since_order": { "min": 1, "max": 30 }, "unit_price": { "min_cents": 5 } },
              "then": { "costs": [{ "method": "mail-back", "currency": "EUR", "shipping_cost_cents": 5 }] } },
            { "id": "later", "when": { "days_since_order": { "min": 1 }, "unit_price": { "min_cents": 5 } },
              "then": { "costs": [{ "shipping_cost_cents": 5 }] } },
            { "id": "usd", "then": { "costs": [{ "method": "mail-back", "shipping_cost_cents": 1 }] } },
            { "id": "usd-again", "then": { "costs": [{ "method": "mail-back", "currency": "USD", "shipping_cost_cents": 2 }] } },
            { "id": "zero", "then": { "costs": [{ "method": "mail-back", "shipping_cost_cents": 0 }] } },
        ]),
        &expect![[r#"
            $.policy.rules[1] covered: never decides anything, because earlier rules always decide: free
            $.policy.rules[4] usd-again: never decides anything, because earlier rules always decide: usd
        "#]],
    );
}

#[test]
fn warnings_about_the_longest_policy_take_little_time() {
    let tags: Vec<_> = (0..100).map(|tag| format!("{}-{tag}", "Größe".repeat(40))).collect();
    let countries: Vec<_> =
        ('A'..='Z').flat_map(|a| ('A'..='Z').map(move |b| format!("{a}{b}"))).take(250).collect();
    let patterns: Vec<_> = (0..10).map(|sku| format!("*{}*{sku}", "A".repeat(240))).collect();
    let costs: Vec<_> = (0..50).map(|cents| json!({ "shipping_cost_cents": cents })).collect();
    let rules: Vec<_> = (0..100)
        .map(|rule| {
            let when = json!({ "line_tags": tags, "order_tags": tags, "countries": countries,
                               "concepts": tags, "skus": patterns });
            json!({ "id": format!("r{rule}"), "when": when, "then": { "costs": costs } })
        })
        .collect();
    let mut settings = Settings::new("Acme");
    settings.policy.rules = serde_json::from_value(json!(rules)).unwrap();
    let time = || {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let nanoseconds = stat.split_whitespace().next().unwrap().parse().unwrap();
        std::time::Duration::from_nanos(nanoseconds)
    };
    let started_at = time();
    assert_eq!(settings.policy.warnings("USD").len(), 99);
    let taken = time() - started_at;
    // A comparison of each value with each value takes minutes in a debug build.
    assert!(taken < std::time::Duration::from_secs(20), "{taken:?}");
}

#[test]
fn the_patterns_of_all_rules_are_limited() {
    let rules = |patterns: usize| {
        let rule = |rule: usize, patterns: usize| {
            let skus: Vec<_> = (0..patterns).map(|sku| format!("{sku}-*")).collect();
            json!({ "id": format!("r{rule}"), "when": { "skus": skus }, "then": { "returnable": true } })
        };
        let mut rules: Vec<_> = (0..10).map(|it| rule(it, 100)).collect();
        if patterns > 1_000 {
            rules.push(rule(10, patterns - 1_000));
        }
        json!({ "rules": rules })
    };
    assert_eq!(changed(&json!({ "policy": rules(1_000) })).unwrap().policy.rules.len(), 10);
    check_errors(
        &rules(1_001),
        &expect!["$.policy.rules: invalid (must have at most 1000 patterns of SKUs together)"],
    );
}
