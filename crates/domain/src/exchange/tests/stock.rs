use serde_json::json;

use super::confirmed;
use crate::exchange::{VariantLookups, Variants, check_stock};

/// The lines of exchangeable and of out-of-stock units, and the number of unchecked units.
fn lines_by_stock(response: Option<&serde_json::Value>) -> (Vec<String>, Vec<String>, usize) {
    let confirmed = confirmed();
    let variants = response.map(|body| Variants::read(body.to_string().as_bytes()).unwrap());
    let lookups = VariantLookups::from([("TEE", variants.as_ref())]);
    let check = check_stock(&confirmed.units, &lookups);
    let lines = |units: &[&crate::returns::ConfirmedUnit]| {
        units.iter().map(|unit| unit.id.order_line_item_identifier.clone()).collect()
    };
    (lines(&check.exchangeable), lines(&check.out_of_stock), check.unchecked)
}

#[track_caller]
fn check(
    response: Option<&serde_json::Value>,
    exchangeable: &[&str],
    out_of_stock: &[&str],
    unchecked: usize,
) {
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert_eq!(lines_by_stock(response), (owned(exchangeable), owned(out_of_stock), unchecked));
}

#[test]
fn units_in_stock_stay_exchangeable() {
    let tee = |medium: i64, red: i64| {
        json!([
            {"sku": "TEE-M", "title": "Medium", "quantity_in_stock": medium},
            {"sku": "TEE-RED", "title": "Red", "quantity_in_stock": red},
        ])
    };
    check(Some(&tee(9, 9)), &["L1", "L2", "L2", "L3"], &[], 0);
    check(Some(&tee(0, 9)), &["L2", "L2", "L3"], &["L1"], 0);
    check(Some(&tee(1, 1)), &["L1", "L2", "L3"], &["L2"], 0);
    check(Some(&json!([])), &["L3"], &["L1", "L2", "L2"], 0);
    let unknown = json!([{"sku": "TEE-M", "title": "M"}, {"sku": "TEE-RED", "title": "R"}]);
    check(Some(&unknown), &["L1", "L2", "L2", "L3"], &[], 0);
}

#[test]
fn units_without_a_response_stay_exchangeable() {
    check(None, &["L1", "L2", "L2", "L3"], &[], 3);
}
