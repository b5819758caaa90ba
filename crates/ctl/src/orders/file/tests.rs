//! Tests of the reader.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;

use super::*;

fn read(file: impl Into<Vec<u8>>) -> Result<Vec<(u64, String)>, String> {
    let orders = OrderReader::new(io::Cursor::new(file.into())).map_err(|e| e.to_string())?;
    let text = |order: RawOrder| (order.line, String::from_utf8(order.bytes).unwrap());
    orders.map(|order| order.map(text).map_err(|e| e.to_string())).collect()
}

#[track_caller]
fn check(file: &str, expected: &[(u64, &str)]) {
    let expected: Vec<_> =
        expected.iter().map(|(line, text)| (*line, (*text).to_owned())).collect();
    assert_eq!(read(file).as_deref(), Ok(&expected[..]));
    let mut gzipped = GzEncoder::new(Vec::new(), Compression::fast());
    gzipped.write_all(file.as_bytes()).unwrap();
    assert_eq!(read(gzipped.finish().unwrap()).as_deref(), Ok(&expected[..]));
}

#[test]
fn each_line_is_an_order() {
    check("", &[]);
    check("{}\n{\"a\": 1}\n", &[(1, "{}"), (2, "{\"a\": 1}")]);
    check("\n\n{}\r\n\n  {\"a\":1}  ", &[(3, "{}"), (5, "{\"a\":1}")]);
    check("\u{feff}{}\n", &[(1, "{}")]);
    check(
        "{}\nnot JSON\n{\"a\": 1\n{}",
        &[(1, "{}"), (2, "not JSON"), (3, "{\"a\": 1"), (4, "{}")],
    );
}

#[test]
fn each_array_element_is_an_order() {
    check("[]", &[]);
    check(" \n[ {} ]\n", &[(2, "{}")]);
    check(
        "[{\"a\": [1, 2]},\n {\"b\": \"],}\\\"\"}\n]",
        &[(1, "{\"a\": [1, 2]}"), (2, "{\"b\": \"],}\\\"\"}")],
    );
    check("[1,\n\n\"x\"]", &[(1, "1"), (3, "\"x\"")]);
}

#[test]
fn a_message_is_read_as_it_is_published() {
    check(r#"{"returns_portal_order":{"orders":[{"a":1},{}]}}"#, &[(1, "{\"a\":1}"), (1, "{}")]);
    check(
        "{\n  \"returns_portal_order\": {\n    \"orders\": [\n      {\"a\": [1]}\n    ]\n  }\n}\n",
        &[(4, "{\"a\": [1]}")],
    );
    let line = r#"{"returns_portal_order":{"orders":[{}]}}"#;
    check(&format!("{line}\n{line}\n"), &[(1, "{}"), (2, "{}")]);
    check(r#"{"returns_portal_order":{"orders":[]}}"#, &[]);
    let error = read(r#"{"returns_portal_order":{"orders":[{}]}"#).unwrap_err();
    assert_eq!(error, "line 1: expected }");
}

#[test]
fn orders_may_span_lines() {
    check("{\n  \"a\": \"}\"\n}\n", &[(1, "{\n  \"a\": \"}\"\n}")]);
    check("{\n}\n\n{\n  \"b\": [\n{}]}\n", &[(1, "{\n}"), (4, "{\n  \"b\": [\n{}]}")]);
    assert_eq!(read("{\n  \"a\": 1\n").unwrap_err(), "line 3: the file ends inside an order");
    assert_eq!(read("{\n}\nx").unwrap_err(), "line 3: expected an order");
}

#[test]
fn an_order_has_its_column() {
    for (file, expected) in [
        ("{}\n  {}\n{}", vec![(1, 1), (2, 3), (3, 1)]),
        (" [{}, {\n}, {},\n  {}]", vec![(1, 3), (1, 7), (2, 4), (3, 3)]),
        ("{\n} {}\n{}", vec![(1, 1), (2, 3), (3, 1)]),
        (r#"{"returns_portal_order":{"orders":[{}]}}"#, vec![(1, 36)]),
    ] {
        let orders = OrderReader::new(io::Cursor::new(file)).unwrap().map(Result::unwrap);
        let starts: Vec<_> = orders.map(|order| (order.line, order.column)).collect();
        assert_eq!(starts, expected, "{file}");
    }
}

#[test]
fn a_file_that_is_not_json_is_one_error() {
    for file in ["identifier,status\n1001,Shipped\n", "<orders>", "\n\nnot JSON\n{}"] {
        let error = read(file).unwrap_err();
        assert!(error.contains("this is not JSON"), "{error}");
        assert!(error.contains("CSV files cannot be imported"), "{error}");
    }
    assert!(read("\n\nnot JSON").unwrap_err().starts_with("line 3: "));
}

#[test]
fn a_malformed_array_is_an_error() {
    assert_eq!(read("[{}").unwrap_err(), "line 1: the file ends inside the array");
    assert_eq!(read("[{}\n,").unwrap_err(), "line 2: the file ends inside the array");
    assert_eq!(read("[{}]\n{}").unwrap_err(), "line 2: unexpected content after the array");
}

#[test]
fn an_order_that_is_too_large_is_cut() {
    let large = "x ".repeat(MAX_ORDER_BYTES);
    for file in [format!("{{}}\n{large}\n{{}}\n"), format!("[{{}},\n{large},\n{{}}]")] {
        let sizes = read(file).unwrap().into_iter().map(|(line, text)| (line, text.len()));
        assert_eq!(sizes.collect::<Vec<_>>(), [(1, 2), (2, MAX_ORDER_BYTES + 1), (3, 2)]);
    }
}

proptest! {
    #[test]
    fn both_layouts_give_the_same_orders(texts in prop::collection::vec(".{0,20}", 0..8)) {
        let orders: Vec<_> = texts.iter().map(|text| serde_json::json!({ "text": text })).collect();
        let written: Vec<_> = orders.iter().map(ToString::to_string).collect();
        let texts = |read: Vec<(u64, String)>| read.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        prop_assert_eq!(&texts(read(written.join("\n")).unwrap()), &written);
        prop_assert_eq!(&texts(read(format!("[{}]", written.join(" ,\n"))).unwrap()), &written);
    }
}
