//! Validation of one order, without sending it.

use domain::json::{Code, Document, FieldError, ParseError};
use domain::order::{OrderMessage, OrderPolicy};
use platform::Clock;

use super::file::MAX_ORDER_BYTES;
use super::message::{message, order_error};

/// The order's identifier, or all its errors, with paths relative to the order.
pub(crate) fn check(order: &[u8], policy: OrderPolicy) -> Result<String, Vec<FieldError>> {
    if order.len() > MAX_ORDER_BYTES {
        let detail = "larger than 5 MiB: the file must have one order per line, or a JSON array";
        return Err(vec![order_is_invalid(detail)]);
    }
    // First alone, so that positions in errors are those of the file. Then as a message, because the
    // limits of a message apply.
    let parse = |bytes: &[u8]| {
        let malformed = |it: ParseError| vec![FieldError::invalid("$", it.to_string())];
        Document::parse(bytes).map_err(malformed)
    };
    parse(order)?;
    let now = Clock::system().now();
    match OrderMessage::read(&parse(&message([order]))?, policy, now) {
        Ok(message) => {
            let identifiers = message.snapshots.into_iter().map(|it| it.order.identifier);
            Ok(identifiers.collect())
        }
        Err(invalid) => Err(invalid.errors.into_iter().map(relative_to_order).collect()),
    }
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
        let errors = check(br#"{"identifier": 7}"#, OrderPolicy::default()).unwrap_err();
        assert!(
            errors.iter().any(|error| error.to_string().starts_with("$.identifier: invalid_type"))
        );
        assert!(errors.iter().any(|error| error.to_string() == "$.currency: missing_field"));
        let errors = check(b"{\"a\": 1, \"a\": 2}", OrderPolicy::default()).unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            r#"$: invalid (the key "a" appears twice in one object at line 1 column 12)"#
        );
    }

    #[test]
    fn an_order_has_a_size_limit() {
        let errors = check(&vec![b' '; MAX_ORDER_BYTES + 1], OrderPolicy::default()).unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "$: invalid (larger than 5 MiB: the file must have one order per line, or a JSON array)"
        );
    }

    #[test]
    fn the_limits_of_a_message_apply() {
        let nested = |depth: usize| {
            let order = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            check(order.as_bytes(), OrderPolicy::default()).unwrap_err()[0].to_string()
        };
        assert_eq!(nested(MAX_DEPTH - 4), "$.identifier: missing_field");
        // Within the depth limit as a document of its own, but not inside a message.
        assert!(nested(MAX_DEPTH - 3).starts_with("$: invalid"), "{}", nested(MAX_DEPTH - 3));
    }
}
