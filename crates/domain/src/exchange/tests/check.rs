use serde_json::{Value, json};

use super::confirmed;
use crate::exchange::{VariantLookups, Variants, check_variants};
use crate::returns::{Replacement, ReturnConfirmed};

/// One line for each unit, and the numbers of units without stock and without a price.
fn summary(confirmed: &ReturnConfirmed, response: Option<&Value>) -> String {
    let variants = response.map(|body| Variants::read(body.to_string().as_bytes()).unwrap());
    let lookups = VariantLookups::from([("TEE", variants.as_ref())]);
    let check = check_variants(&confirmed.units, confirmed.is_gift, &lookups);
    let line = |unit: &crate::returns::UnitId| unit.order_line_item_identifier.clone();
    let exchangeable = check.exchangeable.iter().map(|it| {
        let price = it.unit_price_amount_cents.map_or("no price".to_owned(), |it| it.to_string());
        format!("{} {} {price}", line(&it.unit.id), it.refund_type)
    });
    let failed = check.failed.iter().map(|it| {
        let reason = json!(it.reason);
        format!("{} {}", line(&it.unit), reason.as_str().unwrap())
    });
    let unknown = format!("{} {}", check.without_stock, check.without_price);
    exchangeable.chain(failed).chain([unknown]).collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(response: Option<&Value>, expected: &str) {
    assert_eq!(summary(&confirmed(), response), expected);
}

/// TEE-M was shown for 2000 and TEE-RED for 2500; every unit was sold for 2000.
fn tee(medium: (i64, i64), red: (i64, i64)) -> Value {
    let variant = |sku: &str, (stock, price): (i64, i64)| {
        json!({
            "sku": sku, "title": sku, "quantity_in_stock": stock, "unit_price_amount_cents": price,
        })
    };
    json!([variant("TEE-M", medium), variant("TEE-RED", red)])
}

#[test]
fn units_in_stock_stay_exchangeable() {
    let card = "L3 UNEVEN_EXCHANGE no price";
    let medium = "L1 EVEN_EXCHANGE 2000";
    let red = "L2 UNEVEN_EXCHANGE 2500";
    let all = format!("{medium}; {red}; {red}; {card}; 0 0");
    check(Some(&tee((9, 2000), (9, 2500))), &all);
    let without = format!("{red}; {red}; {card}; L1 out_of_stock; 0 0");
    check(Some(&tee((0, 2000), (9, 2500))), &without);
    let one_red = format!("{medium}; {red}; {card}; L2 out_of_stock; 0 0");
    check(Some(&tee((1, 2000), (1, 2500))), &one_red);
    let none = format!("{card}; L1 out_of_stock; L2 out_of_stock; L2 out_of_stock; 0 0");
    check(Some(&json!([])), &none);
}

#[test]
fn a_changed_price_fails_the_unit() {
    let card = "L3 UNEVEN_EXCHANGE no price";
    let higher_price =
        format!("L2 UNEVEN_EXCHANGE 2500; L2 UNEVEN_EXCHANGE 2500; {card}; L1 price_changed; 0 0");
    check(Some(&tee((9, 2100), (9, 2500))), &higher_price);
    // The caller's price is not trusted, even if the merchant's price makes the exchange even.
    let cheaper = format!("L1 EVEN_EXCHANGE 2000; {card}; L2 price_changed; L2 price_changed; 0 0");
    check(Some(&tee((9, 2000), (9, 2000))), &cheaper);
}

#[test]
fn a_giftee_who_saw_no_price_gets_the_merchants_price() {
    let mut gift = confirmed();
    gift.is_gift = true;
    for unit in &mut gift.units {
        if let Replacement::Exchange { variant } = &mut unit.replacement {
            variant.unit_price_amount_cents = None;
        }
    }
    let priced = tee((9, 2000), (9, 2600));
    let red = "L2 UNEVEN_EXCHANGE 2600";
    let exchanged =
        format!("L1 EVEN_EXCHANGE 2000; {red}; {red}; L3 UNEVEN_EXCHANGE no price; 0 0");
    assert_eq!(summary(&gift, Some(&priced)), exchanged);
    // A buyer who saw no price was promised an even exchange.
    gift.is_gift = false;
    let even = "L1 EVEN_EXCHANGE 2000; L3 UNEVEN_EXCHANGE no price";
    let failed = "L2 price_changed; L2 price_changed";
    assert_eq!(summary(&gift, Some(&priced)), format!("{even}; {failed}; 0 0"));
}

#[test]
fn without_a_price_from_the_merchant_the_exchange_is_even() {
    let even = "L1 EVEN_EXCHANGE 2000; L2 EVEN_EXCHANGE 2000; L2 EVEN_EXCHANGE 2000";
    let unpriced = json!([{"sku": "TEE-M", "title": "M"}, {"sku": "TEE-RED", "title": "R"}]);
    check(Some(&unpriced), &format!("{even}; L3 UNEVEN_EXCHANGE no price; 0 3"));
    check(None, &format!("{even}; L3 UNEVEN_EXCHANGE no price; 3 3"));
}
