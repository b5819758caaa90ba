//! Orders that were rejected, with the reasons.

use std::collections::BTreeMap;

use api::orders::RejectedOrder;
use chrono::{DateTime, Utc};
use domain::json::{FieldError, ValidationError};

/// The number of orders that are kept of one message.
const MAX_ORDERS: usize = 10;
/// The number of errors that are kept of one order.
const MAX_ERRORS: usize = 10;
/// The length of a valid identifier. The identifier of a rejected order can be longer.
const MAX_IDENTIFIER_CHARS: usize = 255;
/// The path of the orders in a message.
const ORDERS: &str = "$.returns_portal_order.orders[";

/// The first rejected orders of a message. `identifiers` are those of all orders of the message.
pub(crate) fn rejections(
    identifiers: &[Option<&str>],
    invalid: &ValidationError,
    rejected_at: DateTime<Utc>,
) -> Vec<RejectedOrder> {
    let mut by_order: BTreeMap<Option<usize>, Vec<FieldError>> = BTreeMap::new();
    for error in &invalid.errors {
        let errors = by_order.entry(order_index(&error.field)).or_default();
        if errors.len() < MAX_ERRORS {
            errors.push(error.clone());
        }
    }
    let rejected = by_order.into_iter().take(MAX_ORDERS).map(|(index, errors)| {
        let identifier = index.and_then(|index| *identifiers.get(index)?);
        let shorten = |text: &str| text.chars().take(MAX_IDENTIFIER_CHARS).collect();
        RejectedOrder { rejected_at, order_identifier: identifier.map(shorten), errors }
    });
    rejected.collect()
}

/// The index of the order to which a field belongs.
fn order_index(field: &str) -> Option<usize> {
    field.strip_prefix(ORDERS)?.split_once(']')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(identifiers: &[Option<&str>], fields: &[String]) -> Vec<RejectedOrder> {
        let errors = fields.iter().map(|field| FieldError::invalid(field, "")).collect();
        let invalid = ValidationError { errors, omitted: 0 };
        rejections(identifiers, &invalid, DateTime::UNIX_EPOCH)
    }

    #[test]
    fn errors_are_grouped_by_order() {
        let fields = [
            "$.returns_portal_order.orders[2].items[0].sku",
            "$.returns_portal_order.orders[0].currency",
            "$.returns_portal_order.orders[2]",
            "$.returns_portal_order.orders[1].identifier",
        ];
        let long = "x".repeat(300);
        let identifiers = [Some("A-1"), None, Some(long.as_str())];
        let rejected = rejected(&identifiers, &fields.map(str::to_owned));
        let seen: Vec<_> = rejected
            .iter()
            .map(|order| (order.order_identifier.as_deref(), order.errors.len()))
            .collect();
        assert_eq!(seen, [(Some("A-1"), 1), (None, 1), (Some(&long[..255]), 2)]);
    }

    #[test]
    fn a_message_without_orders_has_no_identifier() {
        let rejected = rejected(&[], &["$.returns_portal_order".to_owned()]);
        assert_eq!(rejected.len(), 1);
        assert_eq!(rejected[0].order_identifier, None);
    }

    #[test]
    fn the_number_of_orders_and_errors_is_limited() {
        let fields: Vec<_> = (0..400)
            .map(|index| format!("$.returns_portal_order.orders[{}].items[{index}]", index / 20))
            .collect();
        let rejected = rejected(&[], &fields);
        let errors: Vec<_> = rejected.iter().map(|order| order.errors.len()).collect();
        assert_eq!(errors, [10; 10]);
    }
}
