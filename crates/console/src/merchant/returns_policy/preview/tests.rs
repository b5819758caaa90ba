//! Tests of previews.

use super::*;

fn response(next: Option<&str>) -> HistoryResponse {
    serde_json::from_value(json!({
        "returns": 4_655, "changed": 390, "next": next,
        "current": { "refused": 0, "return_shipping_cost_cents": { "USD": 955_000 } },
        "draft": { "refused": 206, "reviewed": 60, "return_shipping_cost_cents": { "EUR": 100, "USD": 800_000 } },
        "changes": [{
            "rma_identifier": "RMA-1", "created_at": "2026-11-16T08:00:00Z",
            "current": { "return_shipping_cost_cents": 700, "cost_rule": "mail",
                "review_rule": "frequent", "return_to": { "warehouse": "reno", "rule": "outlet" } },
            "draft": { "return_shipping_cost_cents": 0, "ineligible": {
                "code": "not_returnable", "detail": "the unit cannot be returned", "rule": "no" } },
        }],
    }))
    .unwrap()
}

#[test]
fn figures_of_responses_are_added_up() {
    let mut history = History::default();
    history.add(response(Some("cursor")));
    history.add(response(None));
    let [current, draft] = [&history.changes[0].current, &history.changes[0].draft];
    let words = "return shipping costs 700 cents (rule mail); waits for a review (rule frequent); \
                 goes to the warehouse reno (rule outlet)";
    assert_eq!(current.in_words(), words);
    assert_eq!(draft.in_words(), "the unit cannot be returned (rule no)");
    assert_eq!(
        history.into_preview("acme", String::new()).sentences,
        [
            "Compared: all 9,310 returns of the last 90 days.",
            "The draft decides 780 differently.",
            "Refused: 412 with the draft, 0 with the saved rules.",
            "Sent to review: 120 with the draft, 0 with the saved rules.",
            "Return shipping in all: 2.00 EUR with the draft, 0.00 EUR with the saved rules.",
            "Return shipping in all: 16,000.00 USD with the draft, 19,100.00 USD with the saved rules.",
        ]
    );
}

#[test]
fn a_form_goes_on_only_with_the_figures_of_the_same_draft() {
    let draft = Draft::of(&[]);
    let compared = fingerprint("2", &draft);
    let mut history = History::default();
    history.add(response(Some("cursor")));
    let preview = history.into_preview("acme", compared.clone());
    let rest = preview.rest.unwrap();
    let form = |preview: &str| -> Fields {
        let fields = [
            ("preview", preview),
            ("after", rest.after.as_str()),
            ("figures", rest.figures.as_str()),
            ("compared", rest.compared.as_str()),
        ];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let goes_on = |form: &Fields, compared: &str| History::of_form(form, compared);
    let same = goes_on(&form("rest"), &compared).unwrap();
    assert_eq!((same.figures, same.next.as_deref()), (response(None).figures, Some("cursor")));
    let other = Draft::of(&[json!({ "id": "a" })]);
    for compared in [fingerprint("3", &draft), fingerprint("2", &other)] {
        assert!(goes_on(&form("rest"), &compared).is_none());
    }
    assert!(goes_on(&form("history"), &compared).is_none());
    assert!(goes_on(&Fields::default(), &compared).is_none());
}

#[test]
fn a_unit_names_the_warehouses_of_its_possible_choices() {
    let to = |warehouse: &str| json!({ "warehouse": warehouse, "rule": "outlet" });
    let refused = json!({ "detail": "the return method mail-back is not offered" });
    let unit = |options: Value| -> Unit {
        let unit = json!({
            "order_line_item_identifier": "1", "unit": 1, "returnable_until": "2026-12-01T00:00:00Z",
            "choices": [{ "options": options }],
        });
        serde_json::from_value(unit).unwrap()
    };
    let settings = Settings::new("Acme");
    let until = "can be returned until 30 November 2026";
    assert_eq!(unit(json!([{}])).in_words(&settings), until);
    let both = unit(json!([
        { "return_to": to("west") }, { "return_to": to("reno") }, { "return_to": to("reno") },
        { "return_to": to("gone"), "ineligible": refused },
    ]));
    let warehouses =
        "goes to the warehouse reno (rule outlet); goes to the warehouse west (rule outlet)";
    assert_eq!(both.in_words(&settings), format!("{until}; {warehouses}"));
}

#[test]
fn a_merchant_without_returns_has_one_sentence() {
    let sentences = Figures::default().sentences(false);
    assert_eq!(sentences, ["There were no returns in the last 90 days."]);
}
