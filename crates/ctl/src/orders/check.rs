//! Validation of one order, without sending it.

use domain::json::{Code, Document, FieldError, JsonValue, ParseError};
use domain::order::{OrderMessage, OrderPolicy};
use platform::Clock;
use serde::de::IgnoredAny;

use super::file::MAX_ORDER_BYTES;
use super::message::{message, order_error};
use super::unknown_fields::unknown_fields;

/// The result of a validation. All paths are relative to the order.
#[derive(Debug, Default)]
pub(crate) struct CheckedOrder {
    /// Empty if it cannot be read.
    pub(crate) identifier: String,
    pub(crate) errors: Vec<FieldError>,
    /// Amounts that do not add up, and fields that are not read.
    pub(crate) warnings: Vec<FieldError>,
}

impl CheckedOrder {
    fn unreadable(error: FieldError) -> Self {
        Self { errors: vec![error], ..Self::default() }
    }
}

/// An error with its order, line and field. The order's identifier may be empty.
pub(crate) fn describe_error(order: &str, error: &FieldError) -> String {
    format!("{}: {error}", subject(order, error))
}

/// A warning with its order, line and field. The order's identifier may be empty.
pub(crate) fn describe_warning(order: &str, warning: &FieldError) -> String {
    let detail = warning.detail.as_deref().unwrap_or("is not valid");
    format!("warning: {}: {}: {detail}", subject(order, warning), warning.field)
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

/// Validates an order.
pub(crate) fn check(order: &[u8], policy: OrderPolicy) -> CheckedOrder {
    if order.len() > MAX_ORDER_BYTES {
        let detail = "larger than 5 MiB: the file must have one order per line, or a JSON array";
        return CheckedOrder::unreadable(order_is_invalid(detail));
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
        Err(error) => return unreadable(order, &error),
    };
    let order = document.value().get("returns_portal_order").and_then(|it| it.get("orders"));
    let order = order.and_then(|orders| orders.elements().next());
    let (errors, mut warnings) = match OrderMessage::read(&document, policy, Clock::system().now())
    {
        Ok(message) => (Vec::new(), message.warnings),
        Err(invalid) => (invalid.errors, Vec::new()),
    };
    let errors = errors.into_iter().map(relative_to_order).collect();
    warnings = warnings.into_iter().map(relative_to_order).collect();
    warnings.extend(order.map(unknown_fields).into_iter().flatten());
    CheckedOrder { identifier: order.map(identifier).unwrap_or_default(), errors, warnings }
}

/// The error of an order that is not JSON, or not within the limits of a message. Positions are those of the
/// order alone, as in the file.
fn unreadable(order: &[u8], in_message: &ParseError) -> CheckedOrder {
    let malformed = |it: &ParseError| FieldError::invalid("$", it.to_string());
    match Document::parse(order) {
        Ok(alone) => CheckedOrder {
            identifier: identifier(alone.value()),
            ..CheckedOrder::unreadable(malformed(in_message))
        },
        Err(error) => CheckedOrder::unreadable(malformed(&error)),
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
    use domain::json::MAX_DEPTH;

    use super::*;

    #[test]
    fn paths_are_relative_to_the_order() {
        let errors = check(br#"{"identifier": 7}"#, OrderPolicy::default()).errors;
        assert!(
            errors.iter().any(|error| error.to_string().starts_with("$.identifier: invalid_type"))
        );
        assert!(errors.iter().any(|error| error.to_string() == "$.currency: missing_field"));
        let errors = check(b"{\"a\": 1, \"a\": 2}", OrderPolicy::default()).errors;
        assert_eq!(
            errors[0].to_string(),
            r#"$: invalid (the key "a" appears twice in one object at line 1 column 12)"#
        );
    }

    #[test]
    fn an_order_is_one_value() {
        for order in ["{}, {}", "{}]}, \"a\": {\"orders\": [{}", "{} {}"] {
            let errors = check(order.as_bytes(), OrderPolicy::default()).errors;
            assert!(errors[0].to_string().contains("trailing characters"), "{}", errors[0]);
        }
    }

    #[test]
    fn an_error_names_its_order_and_line() {
        let order = br#"{"identifier": "A-1", "items": [{"sku": "S"}, {"identifer": "2"}]}"#;
        let checked = check(order, OrderPolicy::default());
        let subjects = |errors: &[FieldError]| -> Vec<_> {
            errors.iter().map(|error| subject(&checked.identifier, error)).collect()
        };
        assert!(subjects(&checked.errors).contains(&"order A-1, line 2".to_owned()));
        assert!(subjects(&checked.errors).contains(&"order A-1".to_owned()));
        assert_eq!(subjects(&checked.warnings), ["order A-1, line 2"]);
        assert_eq!(subject("", &checked.errors[0]), "order");
    }

    #[test]
    fn an_order_has_a_size_limit() {
        let errors = check(&vec![b' '; MAX_ORDER_BYTES + 1], OrderPolicy::default()).errors;
        assert_eq!(
            errors[0].to_string(),
            "$: invalid (larger than 5 MiB: the file must have one order per line, or a JSON array)"
        );
    }

    #[test]
    fn the_limits_of_a_message_apply() {
        let nested = |depth: usize| {
            let order = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            check(order.as_bytes(), OrderPolicy::default()).errors[0].to_string()
        };
        assert_eq!(nested(MAX_DEPTH - 4), "$.identifier: missing_field");
        // Within the depth limit as a document of its own, but not inside a message.
        assert!(nested(MAX_DEPTH - 3).starts_with("$: invalid"), "{}", nested(MAX_DEPTH - 3));
    }
}
