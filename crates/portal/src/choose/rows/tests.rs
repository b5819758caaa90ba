use actix_web::test::TestRequest;
use serde_json::json;

use super::*;
use crate::order::tests::{order, unit};

fn page() -> Page {
    let mut page = Page::without_merchant(&TestRequest::get().to_http_request());
    let portal = json!({
        "merchant": "acme", "version": 1, "name": "Acme", "time_zone": "Europe/Berlin",
        "reasons": [{ "code": "SMALL", "label": "Too small" }],
    });
    page.portal = serde_json::from_value::<crate::merchant::Portal>(portal).unwrap().into();
    page
}

fn typed(fields: &[(&str, &str)]) -> Fields {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The rows of an order with three units of line 1 and one of line 2.
fn rows(page: &Page, fields: &[(&str, &str)]) -> OrderRows {
    let order = order(&[unit("1", 1), unit("1", 2), unit("1", 3), unit("2", 1)]);
    OrderRows::new(page, &order, Source::Typed(&typed(fields)), 0, false)
}

#[test]
fn counts_and_reasons_become_choices() {
    let page = page();
    let mut rows = rows(&page, &[("count.A-1~1", "2"), ("reason.A-1~1", "SMALL")]);
    assert!(rows.check(&page).is_empty());
    let earlier = ReturnDraft::parse("i=A-1~1~1~OLD~gift_card&i=A-1~2~1").unwrap();
    let values: Vec<_> = rows.choices(&earlier).iter().map(Choice::value).collect();
    assert_eq!(values, ["A-1~1~2~SMALL~gift_card"]);
    assert_eq!(check_all(&page, &[rows], false), None);
}

#[test]
fn a_rejected_form_keeps_its_input() {
    let page = page();
    let fields = [("count.A-1~1", "4"), ("reason.A-1~1", "SMALL"), ("count.A-1~2", "1")];
    let mut rows = rows(&page, &fields);
    let problems = rows.check(&page);
    let ids: Vec<_> = problems.iter().map(|problem| problem.id.as_str()).collect();
    assert_eq!(ids, ["count-0", "reason-1"]);
    let row = rows.rows.first().unwrap();
    assert_eq!((row.count.value.as_str(), row.reason.value.as_str()), ("4", "SMALL"));
}

#[test]
fn something_has_to_be_chosen() {
    let page = page();
    let mut rows = rows(&page, &[]);
    assert!(rows.check(&page).is_empty());
    let orders = [rows];
    assert_eq!(check_all(&page, &orders, false).unwrap().id, "count-0");
    assert_eq!(check_all(&page, &orders, true), None, "a row with an error may choose something");
}

#[test]
fn errors_of_a_row_do_not_hide_those_of_several_rows() {
    let page = page();
    let mut first = rows(&page, &[("count.A-1~1", "1"), ("count.A-1~2", "9")]);
    let mut second = rows(&page, &[("count.A-1~1", "1"), ("reason.A-1~1", "SMALL")]);
    second.currency = "USD".to_owned();
    let problems = [first.check(&page), second.check(&page)].concat();
    assert_eq!(problems.len(), 2);
    let of_all = check_all(&page, &[first, second], true).unwrap();
    assert_eq!(of_all.text, page.t("choose-other-currency"));
}

#[test]
fn different_amounts_of_a_line_are_one_price() {
    let page = page();
    let mut other = unit("1", 2);
    other["refund_amount_cents"] = json!(4994);
    let order = order(&[unit("1", 1), other]);
    let rows = OrderRows::new(&page, &order, Source::Typed(&typed(&[])), 0, false);
    let price = rows.rows.first().unwrap().price.as_deref();
    assert_eq!(price, Some("Paid: €99.89 for all 2"));
}

#[test]
fn a_single_unit_is_taken_with_a_check_box() {
    let page = page();
    let taken = |count: &str| {
        let rows = rows(&page, &[("count.A-1~2", count)]);
        rows.rows.last().map(|row| (row.max, row.is_taken()))
    };
    assert_eq!((taken("1"), taken("")), (Some((1, true)), Some((1, false))));
}

#[test]
fn prices_and_days_are_those_of_the_units() {
    let page = page();
    let rows = rows(&page, &[]);
    let texts: Vec<_> = rows.rows.iter().map(|row| row.price.clone().unwrap()).collect();
    assert_eq!(texts, ["Paid: €49.95 each", "Paid: €49.95"]);
    let row = rows.rows.first().unwrap();
    assert_eq!(row.until.as_deref(), Some("Until 2 December 2026"));
    assert_eq!(row.max, 3);
}

#[test]
fn a_gift_whose_order_was_exchanged_cannot_be_returned() {
    let page = page();
    let mut order = order(&[unit("1", 1)]);
    order.exchange_possible = false;
    let draft = ReturnDraft::default();
    let rows = OrderRows::new(&page, &order, Source::Chosen(&draft), 0, true);
    assert_eq!(rows.note, Some(page.t("choose-no-exchange-gift")));
    assert_eq!(rows.rows.first().unwrap().max, 0);
    let rows = OrderRows::new(&page, &order, Source::Chosen(&draft), 0, false);
    assert_eq!(rows.rows.first().unwrap().max, 1);
}
