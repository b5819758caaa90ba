use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Document, Field, FieldError, MAX_VALUES, Object, ValidationError, array, boolean, currency,
    integer, number, object, one_of, parsed, read_fields, text, timestamp, variant,
};

#[track_caller]
fn check_parse_error(body: impl AsRef<[u8]>, expected: &str) {
    assert_eq!(Document::parse(body.as_ref()).unwrap_err().to_string(), expected);
}

#[test]
fn a_parse_error_has_a_position() {
    check_parse_error("", "the body is empty");
    check_parse_error(" \r\n", "the body is empty");
    check_parse_error(
        b"{\n \"a\xff\": 1}",
        "the body is not UTF-8: invalid byte at line 2 column 4",
    );
    check_parse_error("{\n  \"a\" 1}", "the body is not JSON: expected `:` at line 2 column 7");
    check_parse_error(
        r#"{"a": 1"#,
        "the body is not JSON: EOF while parsing an object at line 1 column 7",
    );
    check_parse_error("[1] 2", "the body is not JSON: trailing characters at line 1 column 5");
    check_parse_error("[1,]", "the body is not JSON: trailing comma at line 1 column 4");
    check_parse_error("[1e999]", "the body is not JSON: number out of range at line 1 column 6");
    check_parse_error("[NaN]", "the body is not JSON: expected value at line 1 column 2");
    check_parse_error(
        r#"["\ud800"]"#,
        "the body is not JSON: unexpected end of hex escape at line 1 column 9",
    );
    check_parse_error(
        "[\"a\0\"]",
        "the body is not JSON: control character (\\u0000-\\u001F) found while parsing a string at line 1 column 4",
    );
}

#[test]
fn a_duplicate_key_is_rejected() {
    check_parse_error(
        r#"{"a": {"b": 1, "b": 2}}"#,
        r#"the key "b" appears twice in one object at line 1 column 18"#,
    );
    check_parse_error(
        r#"{"a": 1, "\u0061": 2}"#,
        r#"the key "a" appears twice in one object at line 1 column 17"#,
    );
    assert!(Document::parse(br#"[{"a": 1}, {"a": 1}]"#).is_ok());
    let many = |last: &str| {
        let members: String = (0..1000).map(|key| format!("\"{key}\":{{\"a\":1}},")).collect();
        format!("{{{members}\"{last}\":2}}")
    };
    assert!(Document::parse(many("1000").as_bytes()).is_ok());
    check_parse_error(
        many("40"),
        r#"the key "40" appears twice in one object at line 1 column 13895"#,
    );
}

#[test]
fn the_number_of_values_is_limited() {
    let zeros = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
    assert!(Document::parse(zeros(MAX_VALUES - 1).as_bytes()).is_ok());
    check_parse_error(
        zeros(MAX_VALUES),
        "the body has more than 1048576 values and keys at line 1 column 2097152",
    );
}

#[test]
fn members_are_found_among_containers_and_escapes() {
    let body = br#"{"a":[{"x":[1,2]},{}],"b\u0021":"c\n","":{"a":null},"z":18446744073709551615}"#;
    let document = Document::parse(body).unwrap();
    let value = document.value();
    assert_eq!(value.get("a").unwrap().elements().count(), 2);
    assert_eq!(value.get("b!").unwrap().as_str(), Some("c\n"));
    assert!(value.get("").unwrap().get("a").unwrap().is_null());
    assert_eq!(value.get("z").unwrap().as_i64(), None);
    assert!(value.get("x").is_none());
    assert_eq!(value.to_value(), serde_json::from_slice::<Value>(body).unwrap());
    let again = Document::from(value.to_value());
    assert_eq!(again.value().to_value(), value.to_value());
}

#[test]
fn nesting_is_limited() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Document::parse(nested(64).as_bytes()).is_ok());
    check_parse_error(nested(65), "the body is nested deeper than 64 levels at line 1 column 66");
    check_parse_error(
        "{\"a\":".repeat(1_000_000),
        "the body is nested deeper than 64 levels at line 1 column 321",
    );
}

#[derive(Debug, PartialEq)]
struct Parcel {
    carrier: String,
    lines: Vec<Option<String>>,
    note: Option<String>,
}

impl Parcel {
    fn read(parcel: &Object<'_>) -> Option<Self> {
        let line = object(|line| line.optional("sku", text(1..=5)));
        read_fields!(Self {
            carrier: parcel.required("carrier", text(1..=5)),
            lines: parcel.required("lines", array(1..=3, line)),
            note: parcel.optional("note", text(0..=5)),
        })
    }
}

#[track_caller]
fn check_parcel(body: &str, expected: Expect) {
    let document = Document::parse(body.as_bytes()).unwrap();
    let seen = match document.read(object(Parcel::read)) {
        Ok(parcel) => format!("{parcel:?}\n"),
        Err(invalid) => invalid.errors.iter().map(|error| format!("{error}\n")).collect(),
    };
    expected.assert_eq(&seen);
}

#[test]
fn every_invalid_field_is_reported() {
    check_parcel(
        r#"{"lines": [{"sku": ""}, {"sku": null}, {"sku": 4}], "note": "so long"}"#,
        expect![[r#"
            $.carrier: missing_field
            $.lines[0].sku: invalid (must have 1 to 5 characters)
            $.lines[2].sku: invalid_type (expected a string, found an integer)
            $.note: invalid (must have at most 5 characters)
        "#]],
    );
    check_parcel(
        r#"{"carrier": null, "lines": {}}"#,
        expect![[r#"
            $.carrier: invalid_type (expected a string, found null)
            $.lines: invalid_type (expected an array, found an object)
        "#]],
    );
    check_parcel(
        r#"{"carrier": "dhl", "lines": [1, 2, 3, 4]}"#,
        expect![[r#"
            $.lines: invalid (must have 1 to 3 elements)
        "#]],
    );
    check_parcel(
        "[]",
        expect![[r#"
            $: invalid_type (expected an object, found an array)
        "#]],
    );
}

#[test]
fn a_valid_document_is_read() {
    check_parcel(
        r#"{"carrier": "größe", "lines": [{"sku": "a"}, {}], "note": null, "unknown": {}}"#,
        expect![[r#"
            Parcel { carrier: "größe", lines: [Some("a"), None], note: None }
        "#]],
    );
}

#[test]
fn nul_and_numbers_outside_64_bits_are_invalid_in_every_field() {
    check_parcel(
        r#"{"carrier": "a\u0000b", "lines": [{}], "meta": {"k\u0000": [9223372036854775808, -1e19, "\u0000"], "max": 9223372036854775807}}"#,
        expect![[r#"
            $.carrier: invalid (must not hold a NUL character)
            $.meta['k\u0000']: invalid (the key must not hold a NUL character)
            $.meta['k\u0000'][0]: invalid (is outside the 64-bit range)
            $.meta['k\u0000'][1]: invalid (is outside the 64-bit range)
            $.meta['k\u0000'][2]: invalid (must not hold a NUL character)
        "#]],
    );
}

#[test]
fn a_field_is_reported_once() {
    check_parcel(
        r#"{"carrier": "too long\u0000", "lines": [{}]}"#,
        expect![[r#"
            $.carrier: invalid (must not hold a NUL character)
        "#]],
    );
}

#[track_caller]
fn check<T: std::fmt::Debug>(
    reader: impl FnMut(Field<'_>) -> Option<T>,
    value: Value,
    expected: &str,
) {
    let seen = match Document::from(value).read(reader) {
        Ok(read) => format!("{read:?}"),
        Err(invalid) => invalid.errors.first().unwrap().to_string(),
    };
    assert_eq!(seen, expected);
}

#[test]
fn integers_are_whole_and_bounded() {
    check(integer(0..=10), json!(10), "10");
    check(integer(0..=10), json!(11), "$: invalid (must be between 0 and 10)");
    check(integer(0..=10), json!(-1), "$: invalid (must be between 0 and 10)");
    check(integer(0..=10), json!(u64::MAX), "$: invalid (is outside the 64-bit range)");
    check(integer(0..=10), json!(1e30), "$: invalid (is outside the 64-bit range)");
    check(integer(0..=10), json!(1.0), "1");
    check(integer(0..=1000), json!(1e3), "1000");
    check(integer(0..=10), json!(11.0), "$: invalid (must be between 0 and 10)");
    check(integer(-1..=10), json!(-0.0), "0");
    check(
        integer(0..=10),
        json!(1.5),
        "$: invalid_type (expected an integer, found a number with a fraction)",
    );
    check(integer(0..=10), json!("1"), "$: invalid_type (expected an integer, found a string)");
    check(integer(i64::MIN..=i64::MAX), json!(i64::MIN), "-9223372036854775808");
}

#[test]
fn numbers_and_booleans_are_checked() {
    check(number(0.0..=9.0), json!(1.5), "1.5");
    check(number(0.0..=9.0), json!(2), "2.0");
    check(number(0.0..=9.0), json!(-0.1), "$: invalid (must be between 0 and 9)");
    check(number(0.0..=9.0), json!("1"), "$: invalid_type (expected a number, found a string)");
    check(boolean, json!(true), "true");
    check(boolean, json!(0), "$: invalid_type (expected a boolean, found an integer)");
}

#[test]
fn one_of_matches_exactly() {
    let sizes = [("S", 1), ("M", 2)];
    check(one_of(&sizes), json!("M"), "2");
    check(one_of(&sizes), json!("m"), "$: invalid (must be one of S, M)");
    check(one_of(&sizes), json!(1), "$: invalid_type (expected a string, found an integer)");
}

#[test]
fn variants_have_their_serde_names() {
    #[derive(Debug, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Size {
        Small,
        VeryLarge,
    }
    check(variant::<Size>, json!("small"), "Small");
    check(variant::<Size>, json!("very_large"), "VeryLarge");
    check(variant::<Size>, json!("Small"), "$: invalid (must be one of small, very_large)");
    check(variant::<Size>, json!(null), "$: invalid_type (expected a string, found null)");
}

#[test]
fn text_length_counts_characters() {
    check(text(2..=3), json!("äöü"), r#""äöü""#);
    check(text(2..=3), json!("ä"), "$: invalid (must have 2 to 3 characters)");
    check(text(1..=3), json!("äöüß"), "$: invalid (must have 1 to 3 characters)");
    check(parsed(1..=9, str::parse::<u8>), json!("7"), "7");
    check(
        parsed(1..=9, str::parse::<u8>),
        json!("x"),
        "$: invalid (invalid digit found in string)",
    );
}

#[test]
fn timestamps_need_an_offset() {
    const REJECTED: &str =
        "$: invalid (must be an RFC 3339 time with an offset, like 2026-03-01T09:30:00Z)";
    check(timestamp, json!("2026-03-01T09:30:00Z"), "2026-03-01T09:30:00Z");
    check(timestamp, json!("2026-03-01T09:30:00.1234567+02:00"), "2026-03-01T07:30:00.123456Z");
    check(timestamp, json!("0001-01-01T00:00:00Z"), "0001-01-01T00:00:00Z");
    check(timestamp, json!("9999-12-31T23:59:59-01:00"), REJECTED);
    check(timestamp, json!("2026-03-01T09:30:00"), REJECTED);
    check(timestamp, json!("2026-03-01"), REJECTED);
    check(timestamp, json!("2026-02-30T09:30:00Z"), REJECTED);
    check(timestamp, json!(""), REJECTED);
    check(timestamp, json!(1772357400), "$: invalid_type (expected a string, found an integer)");
}

#[test]
fn currencies_are_iso_codes() {
    check(currency, json!("USD"), "USD");
    check(currency, json!("usd"), "$: invalid (must be an ISO 4217 currency code, like USD)");
    check(currency, json!("XXY"), "$: invalid (must be an ISO 4217 currency code, like USD)");
    check(currency, json!(840), "$: invalid_type (expected a string, found an integer)");
}

#[test]
fn a_report_is_limited_and_counts_the_rest() {
    let values = json!(vec![1; 12_000]);
    let invalid = Document::from(values).read(array(0..=20_000, boolean)).unwrap_err();
    assert_eq!(
        invalid.to_string(),
        "12000 fields are not valid, of which the first 10000 are listed"
    );
    assert_eq!(invalid.errors.len(), 10_000);
}

#[test]
fn collected_errors_have_the_limits_of_a_report() {
    let errors = |count| (0..count).map(|n| FieldError::invalid(format!("$.refunds[{n}]"), "no"));
    let invalid = ValidationError::from_errors(errors(12_000)).unwrap();
    assert_eq!((invalid.errors.len(), invalid.omitted), (10_000, 2_000));
    let invalid = ValidationError::from_errors(errors(2)).unwrap();
    assert_eq!(invalid.errors, errors(2).collect::<Vec<_>>());
    assert_eq!(ValidationError::from_errors(errors(0)), None);
}

#[test]
fn an_unstorable_value_is_counted_once() {
    let values = json!(vec![json!(["a\0", "b\0", u64::MAX, { "c\0": "d\0" }]); 3_000]);
    let all = array(0..=4, |field: Field<'_>| match field.value().as_str() {
        Some(_) => text(1..=9)(field).map(drop),
        None => integer(0..=9)(field).map(drop),
    });
    let invalid = Document::from(values).read(array(0..=3_000, all)).unwrap_err();
    // Five errors a row: two texts, a number, a key with its text, an object instead of a number.
    assert_eq!((invalid.errors.len(), invalid.omitted), (10_000, 5_000));
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e15..1e15).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".{0,8}", inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_document_equals_what_serde_json_parses(value in json_value()) {
        let written = serde_json::to_vec(&value).unwrap();
        prop_assert_eq!(Document::parse(&written).unwrap().value().to_value(), value);
    }

    #[test]
    fn any_bytes_can_be_parsed_without_panic(body in prop::collection::vec(any::<u8>(), 0..64)) {
        let strict = Document::parse(&body).is_ok();
        prop_assert!(!strict || serde_json::from_slice::<Value>(&body).is_ok());
    }
}

#[test]
fn a_full_report_only_counts_further_unknown_fields() {
    let mut texts = 0;
    let report = super::errors::Report::default();
    for number in 0..90_000 {
        report.add_with(|| {
            texts += 1;
            FieldError::invalid(format!("$.k{number}"), "unknown field")
        });
    }
    let error = report.into_error().unwrap();
    assert_eq!((texts, error.errors.len(), error.omitted), (10_000, 10_000, 80_000));
}
