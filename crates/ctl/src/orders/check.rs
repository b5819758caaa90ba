//! Validation of one order, without sending it.

use domain::json::{
    Code, Document, FieldError, JsonValue, MAX_DEPTH, MAX_VALUES, ParseError, Position,
};
use domain::order::{OrderMessage, OrderPolicy};
use domain::printable::one_line;
use platform::Clock;
use serde::de::IgnoredAny;

use super::file::{MAX_ORDER_BYTES, RawOrder};
use super::message::{message, order_error};
use super::unknown_fields::unknown_fields;

/// The result of a validation. All paths are relative to the order.
#[derive(Debug, Default)]
pub(crate) struct CheckedOrder {
    /// The line of the file: that of the syntax error, or that on which the order starts.
    pub(crate) line: u64,
    /// Empty if it cannot be read.
    pub(crate) identifier: String,
    pub(crate) errors: Vec<FieldError>,
    /// Amounts that do not add up, and fields that are not read.
    pub(crate) warnings: Vec<FieldError>,
}

impl CheckedOrder {
    fn unreadable(line: u64, detail: &str) -> Self {
        Self { line, errors: vec![order_is_invalid(detail)], ..Self::default() }
    }
}

/// An error with its order, line and field, or the detail alone if the order cannot be read. The order's
/// identifier may be empty.
pub(crate) fn describe_error(order: &str, error: &FieldError) -> String {
    if let ("", "$", Some(detail)) = (order, error.field.as_str(), &error.detail) {
        return one_line(detail);
    }
    one_line(&format!("{}: {error}", subject(order, error)))
}

/// A warning in one line, with its order, line and field. The order's identifier may be empty.
pub(crate) fn describe_warning(order: &str, warning: &FieldError) -> String {
    let detail = warning.detail.as_deref().unwrap_or("is not valid");
    one_line(&format!("warning: {}: {}: {detail}", subject(order, warning), warning.field))
}

/// The order and the line that an error or a warning concerns, for example `order 1001, line 2`.
fn subject(order: &str, error: &FieldError) -> String {
    let mut subject = match order {
        "" => "order".to_owned(),
        identifier => format!("order {identifier}"),
    };
    let index = error.field.strip_prefix("$.items[").and_then(|rest| rest.split_once(']'));
    if let Some(index) = index.and_then(|(index, _)| index.parse::<usize>().ok()) {
        subject.push_str(&format!(", line {}", index + 1));
    }
    subject
}

pub(crate) fn check(raw: &RawOrder, policy: OrderPolicy) -> CheckedOrder {
    let line = raw.line;
    let order = raw.bytes.as_slice();
    if order.len() > MAX_ORDER_BYTES {
        let detail = "larger than 5 MiB: the file must have one order per line, or a JSON array";
        return CheckedOrder::unreadable(line, detail);
    }
    // As a message, because the limits of a message apply. Bytes that are not one value could end the message and
    // go on.
    let is_one_value = serde_json::from_slice::<IgnoredAny>(order).is_ok();
    let parsed = match is_one_value {
        true => Document::parse(&message([order])),
        false => Document::parse(order),
    };
    let document = match parsed {
        Ok(document) => document,
        Err(error) => return unreadable(raw, &error),
    };
    let order = document.value().get("returns_portal_order").and_then(|it| it.get("orders"));
    let order = order.and_then(|orders| orders.elements().next());
    let (errors, warnings) = OrderMessage::check(&document, policy, Clock::system().now());
    let errors = errors.into_iter().map(relative_to_order).collect();
    let mut warnings: Vec<_> = warnings.into_iter().map(relative_to_order).collect();
    warnings.extend(order.map(unknown_fields).into_iter().flatten());
    CheckedOrder { line, identifier: order.map(identifier).unwrap_or_default(), errors, warnings }
}

/// The error of an order that is not JSON, or not within the limits of a message. Positions are those in the
/// file.
fn unreadable(order: &RawOrder, in_message: &ParseError) -> CheckedOrder {
    match Document::parse(&order.bytes) {
        // The position in the message is not that in the file.
        Ok(alone) => CheckedOrder {
            identifier: identifier(alone.value()),
            ..CheckedOrder::unreadable(order.line, &describe_malformed(in_message).0)
        },
        Err(error) => match describe_malformed(&error) {
            (reason, Some(at)) => {
                let lines = at.line.saturating_sub(1);
                let column = if lines == 0 { order.column + at.column - 1 } else { at.column };
                let line = order.line + u64::try_from(lines).unwrap_or_default();
                CheckedOrder::unreadable(line, &format!("{reason} (column {column})"))
            }
            (reason, None) => CheckedOrder::unreadable(order.line, &reason),
        },
    }
}

/// The reason why an order cannot be parsed, and the position of the error in the order.
fn describe_malformed(error: &ParseError) -> (String, Option<Position>) {
    match error {
        ParseError::Empty => ("not JSON: expected an order".to_owned(), None),
        ParseError::NotUtf8 { at } => ("not UTF-8: invalid byte".to_owned(), Some(*at)),
        ParseError::Syntax { reason, at } => (format!("not JSON: {reason}"), Some(*at)),
        ParseError::DuplicateKey { key, at } => {
            (format!("the key {key:?} appears twice in one object"), Some(*at))
        }
        ParseError::TooDeep { at } => (format!("nested deeper than {MAX_DEPTH} levels"), Some(*at)),
        ParseError::TooLong => ("longer than 4 GiB".to_owned(), None),
        ParseError::TooMany { at } => {
            (format!("more than {MAX_VALUES} values and keys"), Some(*at))
        }
    }
}

fn identifier(order: JsonValue<'_>) -> String {
    order.get("identifier").and_then(JsonValue::as_str).unwrap_or_default().to_owned()
}

fn relative_to_order(error: FieldError) -> FieldError {
    order_error(&error).map_or(error, |(_, error)| error)
}

/// An error that concerns the whole order.
pub(crate) fn order_is_invalid(detail: &str) -> FieldError {
    FieldError { field: "$".to_owned(), code: Code::Invalid, detail: Some(detail.to_owned()) }
}

#[cfg(test)]
mod tests {
    use domain::order::sample::{Orders, document};
    use serde_json::json;

    use super::*;

    fn check(order: &[u8]) -> CheckedOrder {
        check_at(7, 3, order)
    }

    fn check_at(line: u64, column: usize, order: &[u8]) -> CheckedOrder {
        let order = RawOrder { line, column, bytes: order.to_vec() };
        super::check(&order, OrderPolicy::default())
    }

    #[test]
    fn paths_are_relative_to_the_order() {
        let errors = check(br#"{"identifier": 7}"#).errors;
        assert!(
            errors.iter().any(|error| error.to_string().starts_with("$.identifier: invalid_type"))
        );
        assert!(errors.iter().any(|error| error.to_string() == "$.currency: missing_field"));
        let errors = check(b"{\"a\": 1, \"a\": 2}").errors;
        assert_eq!(
            errors[0].to_string(),
            r#"$: invalid (the key "a" appears twice in one object (column 14))"#
        );
    }

    #[test]
    fn an_order_is_one_value() {
        for order in ["{}, {}", "{}]}, \"a\": {\"orders\": [{}", "{} {}"] {
            let errors = check(order.as_bytes()).errors;
            assert!(errors[0].to_string().contains("trailing characters"), "{}", errors[0]);
        }
    }

    #[test]
    fn an_error_names_its_order_and_line() {
        let order = br#"{"identifier": "A-1", "items": [{"sku": "S"}, {"identifer": "2"}]}"#;
        let checked = check(order);
        let subjects = |errors: &[FieldError]| -> Vec<_> {
            errors.iter().map(|error| subject(&checked.identifier, error)).collect()
        };
        assert!(subjects(&checked.errors).contains(&"order A-1, line 2".to_owned()));
        assert!(subjects(&checked.errors).contains(&"order A-1".to_owned()));
        assert_eq!(subjects(&checked.warnings), ["order A-1, line 2"]);
        assert_eq!(subject("", &checked.errors[0]), "order");
    }

    #[test]
    fn an_identifier_cannot_add_a_line() {
        let checked = check(br#"{"identifier": "a\r\n=1;x", "extra": 1}"#);
        for error in &checked.errors {
            let line = describe_error(&checked.identifier, error);
            assert!(line.starts_with("order a\\r\\n=1;x"), "{line:?}");
        }
        for warning in &checked.warnings {
            let line = describe_warning(&checked.identifier, warning);
            assert!(line.starts_with("warning: order a\\r\\n=1;x"), "{line:?}");
        }
        let malformed = order_is_invalid("two\nlines");
        assert_eq!(describe_error("", &malformed), "two\\nlines");
    }

    #[test]
    fn a_syntax_error_has_its_position_in_the_file() {
        let describe = |order: &[u8]| {
            let checked = check_at(4, 7, order);
            format!("{}: {}", checked.line, describe_error("", &checked.errors[0]))
        };
        let pretty = b"{\n  \"identifier\": \"1\",\n  \"status\": \"Shipped\"\n  \"items\": []\n}";
        assert_eq!(describe(pretty), "7: not JSON: expected `,` or `}` (column 3)");
        assert_eq!(describe(b"{\"a\" 1}"), "4: not JSON: expected `:` (column 12)");
        assert_eq!(describe(b"{\"a\": \"\xff\"}"), "4: not UTF-8: invalid byte (column 14)");
        assert_eq!(describe(b""), "4: not JSON: expected an order");
    }

    #[test]
    fn an_order_has_errors_and_warnings_about_amounts_at_once() {
        let orders = Orders::new(1, "2026-03-01T00:00:00Z".parse().unwrap());
        let mut order = document(&orders.into_iter().next().unwrap());
        order["items"][0].as_object_mut().unwrap().remove("title");
        order["items"][0]["product_amount_cents"] = json!(1);
        let checked = check(order.to_string().as_bytes());
        let fields = |errors: &[FieldError]| -> Vec<_> {
            errors.iter().map(|error| error.field.clone()).collect()
        };
        assert_eq!(fields(&checked.errors), ["$.items[0].title"]);
        let amount = "$.items[0].product_amount_cents".to_owned();
        assert!(fields(&checked.warnings).contains(&amount), "{:?}", checked.warnings);
    }

    #[test]
    fn an_order_has_a_size_limit() {
        let errors = check(&vec![b' '; MAX_ORDER_BYTES + 1]).errors;
        assert_eq!(
            errors[0].to_string(),
            "$: invalid (larger than 5 MiB: the file must have one order per line, or a JSON array)"
        );
    }

    #[test]
    fn the_limits_of_a_message_apply() {
        let nested = |depth: usize| {
            let order = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            check(order.as_bytes()).errors[0].to_string()
        };
        assert_eq!(nested(MAX_DEPTH - 4), "$.identifier: missing_field");
        // Within the depth limit as a document of its own, but not inside a message.
        assert!(nested(MAX_DEPTH - 3).starts_with("$: invalid"), "{}", nested(MAX_DEPTH - 3));
    }
}
