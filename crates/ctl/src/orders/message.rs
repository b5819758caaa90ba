//! The order message: how orders are put into it and how its field paths map to orders.

use domain::json::FieldError;

const ORDERS_PATH: &str = "$.returns_portal_order.orders[";

/// A message that carries these orders, byte for byte.
pub(crate) fn message<'a>(orders: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut message = br#"{"returns_portal_order":{"orders":["#.to_vec();
    for (index, order) in orders.into_iter().enumerate() {
        if index > 0 {
            message.push(b',');
        }
        message.extend_from_slice(order);
    }
    message.extend_from_slice(b"]}}");
    message
}

/// The index of the order that an error concerns, and the error with its path relative to that order.
pub(crate) fn order_error(error: &FieldError) -> Option<(usize, FieldError)> {
    let (index, rest) = error.field.strip_prefix(ORDERS_PATH)?.split_once(']')?;
    Some((index.parse().ok()?, FieldError { field: format!("${rest}"), ..error.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_message_names_its_order() {
        let error = FieldError::invalid("$.returns_portal_order.orders[12].items[0].sku", "why");
        let (index, error) = order_error(&error).unwrap();
        assert_eq!((index, error.field.as_str()), (12, "$.items[0].sku"));
        assert_eq!(order_error(&FieldError::invalid("$.other", "why")), None);
    }
}
