//! Whether an order would be accepted, as far as that can be said without sending it.

use domain::json::{Code, Document, FieldError, ParseError};
use domain::order::{OrderMessage, OrderPolicy};

use super::batch::message;
use super::file::MAX_ORDER_BYTES;

/// Where the only order of a message stands.
const ONLY_ORDER: &str = "$.returns_portal_order.orders[0]";

/// The order's identifier, or everything that is wrong with it, with paths from the order's root.
pub(crate) fn check(order: &[u8], policy: OrderPolicy) -> Result<String, Vec<FieldError>> {
    if order.len() > MAX_ORDER_BYTES {
        let problem = "larger than 5 MiB: is the file one order a line, or a JSON array?";
        return Err(vec![whole_order(problem)]);
    }
    // First by itself, so that a place in it is one in the file; then as it will be sent, because a
    // message is read with bounds of its own.
    let parse = |bytes: &[u8]| {
        let malformed = |it: ParseError| vec![FieldError::invalid("$", it.to_string())];
        Document::parse(bytes).map_err(malformed)
    };
    parse(order)?;
    match OrderMessage::read(&parse(&message([order]))?, policy) {
        Ok(message) => {
            let identifiers = message.snapshots.into_iter().map(|it| it.order.identifier);
            Ok(identifiers.collect())
        }
        Err(invalid) => Err(invalid.errors.into_iter().map(from_order).collect()),
    }
}

fn from_order(error: FieldError) -> FieldError {
    match error.field.strip_prefix(ONLY_ORDER) {
        Some(rest) => FieldError { field: format!("${rest}"), ..error },
        None => error,
    }
}

/// Which order of a message an error is about, and the error with its path from that order's root.
pub(crate) fn place_of(error: &FieldError) -> Option<(usize, FieldError)> {
    let rest = error.field.strip_prefix("$.returns_portal_order.orders[")?;
    let (index, rest) = rest.split_once(']')?;
    let detail = error.detail.clone();
    Some((index.parse().ok()?, FieldError { field: format!("${rest}"), code: error.code, detail }))
}

/// An order that was refused for a reason that names no field.
pub(crate) fn whole_order(detail: &str) -> FieldError {
    FieldError { field: "$".to_owned(), code: Code::Invalid, detail: Some(detail.to_owned()) }
}

#[cfg(test)]
mod tests {
    use domain::json::MAX_DEPTH;

    use super::*;

    #[test]
    fn paths_are_those_of_the_order() {
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
    fn an_order_is_bounded() {
        let errors = check(&vec![b' '; MAX_ORDER_BYTES + 1], OrderPolicy::default()).unwrap_err();
        assert_eq!(
            errors[0].to_string(),
            "$: invalid (larger than 5 MiB: is the file one order a line, or a JSON array?)"
        );
    }

    #[test]
    fn the_bounds_are_those_of_a_message() {
        let nested = |depth: usize| {
            let order = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            check(order.as_bytes(), OrderPolicy::default()).unwrap_err()[0].to_string()
        };
        assert_eq!(nested(MAX_DEPTH - 4), "$.identifier: missing_field");
        // An order may be nested as deeply, but not inside a message.
        assert!(nested(MAX_DEPTH - 3).starts_with("$: invalid"), "{}", nested(MAX_DEPTH - 3));
    }

    #[test]
    fn an_error_of_a_message_names_its_order() {
        let error = FieldError::invalid("$.returns_portal_order.orders[12].items[0].sku", "why");
        let (index, error) = place_of(&error).unwrap();
        assert_eq!((index, error.field.as_str()), (12, "$.items[0].sku"));
        assert_eq!(place_of(&FieldError::invalid("$.other", "why")), None);
    }
}
