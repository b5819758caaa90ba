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
    let detail = "the endpoint responded with 410 and gets no messages until it is resumed";
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
        0198c0de-0000-7abc-8000-0123456789ab  2026-11-15 03:48:13Z  acme                   dead     rma   the endpoint responded with 410 and gets no messages until it is resumed
        0198c0de-0001-7def-8000-0123456789ab  -                     north-star-outfitters  pending  rma   -
    "#]]
    .assert_eq(&table_in(Layout::Wide, items(&deliveries, ""), COLUMNS));
}

#[test]
fn a_detail_view_shows_whole_values() {
    expect![[r#"
        id        0198c0de-0000-7abc-8000-0123456789ab
        created   2026-11-15 03:48:13Z
        merchant  acme
        state     dead
        kind      rma
        detail    the endpoint responded with 410 and gets no messages until it is resumed
    "#]]
    .assert_eq(&details(&deliveries()[0], COLUMNS));
}

#[test]
fn the_short_form_of_a_uuid_is_its_beginning() {
    assert_eq!(shorten("0198c0de-0000-7abc-8000-0123456789ab"), "0198c0de-0000-7abc");
    for other in ["-", "bh_0193f2a1b0c47d5e8f9a", "0198c0de000070008000000000000000"] {
        assert_eq!(shorten(other), other);
    }
}
