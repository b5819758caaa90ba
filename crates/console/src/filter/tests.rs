use serde_json::json;

use super::*;
use crate::fixtures;

const CONDITIONS: &[Condition] = &[
    Condition::MERCHANT,
    Condition::choice("state", "State", || or_any([("dead", "dead".to_owned())])),
    Condition::new("status", "Status", Kind::Status("503")),
    Condition::text("number", "Order").sent_as("order_identifier"),
    Condition::new("from", "From", Kind::Time("Write a time.")),
    Condition::new("to", "Before", Kind::Time("Write a time.")),
];

fn fields(query: &[(&str, &str)]) -> Fields {
    let pairs = query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    pairs.collect()
}

fn filter_in(zone: Tz, query: &[(&str, &str)]) -> Filter {
    let operator = fixtures::signed_in("operator", None, &json!({}));
    let signed_in = SignedIn { zone, ..operator };
    Filter::read(&signed_in, "/list", CONDITIONS, &fields(query)).with_time_order()
}

fn filter(query: &[(&str, &str)]) -> Filter {
    filter_in(Tz::UTC, query)
}

#[test]
fn times_are_typed_in_the_zone_of_the_form_and_shown_in_that_of_the_page() {
    let query = [("from", "2026-11-16T08:00"), ("zone", "Europe/Berlin")];
    for zone in [Tz::Europe__Berlin, Tz::UTC, Tz::America__New_York] {
        let shown = filter_in(zone, &query).with_zone(&fields(&query));
        assert_eq!(shown.request(), [("from", "2026-11-16T07:00:00Z".to_owned())], "{zone}");
        // A link to another page means the same time.
        let linked: Fields = serde_html_form::from_str(&shown.query()).unwrap();
        let pairs: Vec<_> = linked.pairs().iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let linked = filter_in(Tz::UTC, &pairs).with_zone(&linked);
        assert_eq!(linked.input_value(linked.value("from")), "2026-11-16T07:00", "{zone}");
    }
    let typed = filter(&query).with_zone(&fields(&query));
    assert_eq!(typed.query(), "from=2026-11-16T07%3A00%3A00Z");
    let query = [("state", "dead")];
    let berlin = filter_in(Tz::Europe__Berlin, &query).with_zone(&fields(&query));
    assert_eq!((berlin.query().as_str(), berlin.chips().len()), ("state=dead", 1));
}

#[test]
fn the_order_is_no_condition() {
    let query = [("state", "dead"), ("order", "oldest")];
    let oldest = filter(&query).with_order(&fields(&query));
    assert_eq!(oldest.request(), [("state", "dead".to_owned())]);
    let chips = oldest.chips();
    let chips: Vec<_> = chips.iter().map(|it| (it.text.as_str(), it.url.as_str())).collect();
    assert_eq!(chips, [("state: dead", "/list?order=oldest")]);
}

#[test]
fn a_page_of_a_list_keeps_the_filter() {
    let filter = filter(&[("merchant", " acme "), ("number", "A&1"), ("after", "x")]);
    assert_eq!(filter.query(), "merchant=acme&number=A%261");
    assert_eq!(filter.next_url("7"), "/list?merchant=acme&number=A%261&after=7");
    assert_eq!(filter.request(), [("order_identifier", "A&1".to_owned())]);
    assert!(!filter.is_empty() && self::filter(&[]).is_empty());
    assert_eq!(self::filter(&[]).url(), "/list");
}

#[test]
fn a_condition_can_be_removed() {
    let chips = filter(&[("merchant", "acme"), ("state", "dead")]).chips();
    let chips: Vec<_> = chips.iter().map(|it| (it.text.as_str(), it.url.as_str())).collect();
    let expected = [("merchant: acme", "/list?state=dead"), ("state: dead", "/list?merchant=acme")];
    assert_eq!(chips, expected);
}

#[test]
fn times_without_a_zone_are_in_the_zone_of_the_page() {
    let typed = filter(&[("from", "2026-11-16T08:00")]);
    assert_eq!(typed.request(), [("from", "2026-11-16T08:00:00Z".to_owned())]);
    let zoned = filter_in(Tz::Europe__Berlin, &[("from", "2026-11-16T08:00")]);
    assert_eq!(zoned.request(), [("from", "2026-11-16T07:00:00Z".to_owned())]);
    assert_eq!(zoned.input_value(zoned.value("from")), "2026-11-16T08:00");
    assert!(zoned.render().unwrap().contains("From (Europe/Berlin)"));
}

#[test]
fn errors_are_beside_their_fields() {
    let wrong = filter(&[("status", "5xx"), ("from", "today"), ("state", "zombie")]);
    for field in ["status", "from", "state"] {
        assert!(wrong.error(field).is_some(), "{field}");
    }
    assert_eq!((wrong.error("to"), wrong.error("number")), (None, None));
    let reversed = filter(&[("from", "2026-11-16T09:00"), ("to", "2026-11-16T08:00")]);
    assert!(reversed.error("to").is_some() && !reversed.is_valid());
    assert!(filter(&[("state", "dead"), ("status", "503")]).is_valid());
}

#[test]
fn an_amount_is_sent_in_cents() {
    for (typed, sent) in [
        ("100", Some(10_000)),
        ("99.5", Some(9_950)),
        ("99,50", Some(9_950)),
        ("0.05", Some(5)),
        ("", None),
        (".5", None),
        ("1.005", None),
        ("-1", None),
        ("+1", None),
        ("1e3", None),
        ("99999999999999999999", None),
    ] {
        assert_eq!(cents(typed), sent, "{typed}");
    }
}

#[test]
fn a_hidden_condition_is_kept_but_not_shown() {
    const HIDDEN: &[Condition] = &[Condition::new("list", "List", Kind::Hidden).not_sent()];
    let operator = fixtures::signed_in("operator", None, &json!({}));
    let filter = Filter::read(&operator, "/list", HIDDEN, &fields(&[("list", "done")]));
    let html = filter.render().unwrap();
    assert!(html.contains(r#"<input type="hidden" name="list" value="done">"#), "{html}");
    assert!(!html.contains("<label"), "{html}");
    assert!(filter.chips().is_empty() && filter.request().is_empty());
    assert_eq!(filter.url(), "/list?list=done");
}

#[test]
fn only_staff_choose_a_merchant() {
    let text = |role, merchant| {
        let signed_in = fixtures::signed_in(role, merchant, &json!({}));
        let filter = Filter::read(&signed_in, "/list", CONDITIONS, &Fields::default());
        filter.render().unwrap()
    };
    assert!(text("support", None).contains("data-suggest"));
    assert!(!text("merchant-admin", Some("acme")).contains("data-suggest"));
}
