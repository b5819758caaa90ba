use expect_test::expect;
use serde_json::json;

use super::super::items;
use super::*;

const COLUMNS: &[Column] = &[
    id("id", "/id"),
    time("created", "/at"),
    value("merchant", "/merchant"),
    value("state", "/state"),
    value("kind", "/kind").wide(),
    value("detail", "/detail"),
];

fn deliveries() -> Value {
    let detail = "the endpoint responded with 503 and gets no messages until it is checked";
    json!([
        { "id": "0198c0de-0000-7abc-8000-0123456789ab", "at": "2026-11-15T03:48:13.5Z",
          "merchant": "acme", "state": "dead", "kind": "rma", "detail": detail },
        { "id": "0198c0de-0001-7def-8000-0123456789ab", "at": null,
          "merchant": "north-star-outfitters", "state": "pending", "kind": "rma" },
    ])
}

#[test]
fn columns_are_aligned_without_trailing_space() {
    let rows = json!([
        { "id": "a", "name": "Ünïcødé 商店", "tags": ["x"] },
        { "id": "longer", "name": "", "tags": ["\u{1b}[2Jx\ny", true] },
        { "id": 7, "name": null, "at": "2026-11-15T03:48:13.5Z", "tags": [] },
    ]);
    let columns = [
        value("id", "/id"),
        value("name", "/name"),
        exact_time("at", "/at"),
        value("tag", "/tags"),
    ];
    expect![[r#"
        ID      NAME          AT                    TAG
        a       Ünïcødé 商店  -                     x
        longer                -                     �[2Jx�y, yes
        7       -             2026-11-15 03:48:13Z  -
    "#]]
    .assert_eq(&table(items(&rows, ""), &columns));
}

#[test]
fn a_table_fits_eighty_columns() {
    let deliveries = deliveries();
    let text = table(items(&deliveries, ""), COLUMNS);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for whole in ["0198c0de-0000-7abc  2026-11-15 03:48  acme ", " pending ", "the endpoint"] {
        assert!(text.contains(whole), "{whole:?} in {text}");
    }
    assert!(text.lines().any(|line| line.ends_with('…')), "{text}");
    assert!(!text.contains("KIND"), "{text}");
}

#[test]
fn a_wide_table_shows_whole_values_in_all_columns() {
    let deliveries = deliveries();
    expect![[r#"
        ID                                    CREATED               MERCHANT               STATE    KIND  DETAIL
        0198c0de-0000-7abc-8000-0123456789ab  2026-11-15 03:48:13Z  acme                   dead     rma   the endpoint responded with 503 and gets no messages until it is checked
        0198c0de-0001-7def-8000-0123456789ab  -                     north-star-outfitters  pending  rma   -
    "#]]
    .assert_eq(&table_in(Layout::Wide, items(&deliveries, ""), COLUMNS));
}

/// A return whose identifier fills most of the table.
fn long_identifier() -> Value {
    json!([{ "rma": "RMA-0123456789ABCDEF-0123456789ABCDEF-0123456789", "merchant": "acme-outdoor",
        "at": "2026-11-15T03:48:13Z", "status": "CREATED", "note": "a-note-of-the-shopper" }])
}

const RETURN_COLUMNS: &[Column] = &[
    value("rma", "/rma"),
    time("created", "/at").leave_out(1),
    value("merchant", "/merchant").whole(),
    value("status", "/status").leave_out(2),
    value("note", "/note"),
];

#[test]
fn a_narrow_table_leaves_out_columns_before_it_shortens_an_identifier() {
    let returns = long_identifier();
    expect![[r#"
        RMA                                               MERCHANT      NOTE
        RMA-0123456789ABCDEF-0123456789ABCDEF-0123456789  acme-outdoor  a-note-of-the-s…
    "#]]
    .assert_eq(&table(items(&returns, ""), RETURN_COLUMNS));
    assert_eq!(take_left_out(), ["created", "status"]);
    // Nothing is left out as long as it fits.
    expect![[r#"
        RMA                                               CREATED           MERCHANT      STATUS   NOTE
        RMA-0123456789ABCDEF-0123456789ABCDEF-0123456789  2026-11-15 03:48  acme-outdoor  CREATED  a-note-of-the-shopper
    "#]]
    .assert_eq(&table_in(Layout::Narrow(120), items(&returns, ""), RETURN_COLUMNS));
    assert!(take_left_out().is_empty());
}

#[test]
fn an_identifier_that_is_wider_than_the_table_stays_whole() {
    let returns = long_identifier();
    let text = table_in(Layout::Narrow(40), items(&returns, ""), RETURN_COLUMNS);
    assert_eq!(text, "RMA\nRMA-0123456789ABCDEF-0123456789ABCDEF-0123456789\n");
}

#[test]
fn a_wide_column_is_shown_by_name() {
    let deliveries = deliveries();
    let columns = with_shown(COLUMNS, &["kind"]);
    let text = table(items(&deliveries, ""), &columns);
    assert!(text.lines().next().is_some_and(|line| line.contains(" KIND ")), "{text}");
}

#[test]
fn the_short_form_of_a_uuid_is_its_beginning() {
    assert_eq!(shorten("0198c0de-0000-7abc-8000-0123456789ab"), "0198c0de-0000-7abc");
    for other in ["-", "bh_0193f2a1b0c47d5e8f9a", "0198c0de000070008000000000000000"] {
        assert_eq!(shorten(other), other);
    }
}
