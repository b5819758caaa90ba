use serde_json::json;

use super::confirmed;
use crate::exchange::{VariantLookups, Variants, check_stock};

/// The lines whose units are kept and whose units are gone, and how many were not answered.
fn sorted(answer: Option<&serde_json::Value>) -> (Vec<String>, Vec<String>, usize) {
    let confirmed = confirmed();
    let variants = answer.map(|answer| Variants::read(answer.to_string().as_bytes()).unwrap());
    let asked = VariantLookups::from([("TEE", variants.as_ref())]);
    let sorted = check_stock(&confirmed.units, &asked);
    let lines = |units: &[&crate::returns::ConfirmedUnit]| {
        units.iter().map(|unit| unit.id.order_line_item_identifier.clone()).collect()
    };
    (lines(&sorted.exchangeable), lines(&sorted.out_of_stock), sorted.unchecked)
}

#[track_caller]
fn check(answer: Option<&serde_json::Value>, kept: &[&str], gone: &[&str], unanswered: usize) {
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert_eq!(sorted(answer), (owned(kept), owned(gone), unanswered));
}

#[test]
fn units_keep_what_is_still_there() {
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
fn a_question_without_an_answer_takes_nothing_away() {
    check(None, &["L1", "L2", "L2", "L3"], &[], 3);
}
