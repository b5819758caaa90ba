//! Rules for the returns that shoppers start themselves.

use domain::json::{Document, FieldError, ValidationError};
use domain::returns::{Resolution, ReturnRequest};
use platform::shopper_proof::{ProofError, ProvenOrders};

/// Whether the response must contain no amounts.
pub(crate) fn is_by_giftee(request: &ReturnRequest, shopper: Option<&ProvenOrders>) -> bool {
    shopper.is_some() && request.gift_refund_only
}

/// Rejects a body with a unit of an order that was not proven. This comes before everything else that a
/// body can lead to, such as the stored response of an idempotency key.
pub(crate) fn check_proofs(document: &Document, shopper: &ProvenOrders) -> Result<(), ProofError> {
    let units = document.value().get("units").into_iter().flat_map(|units| units.elements());
    for order in units.filter_map(|unit| unit.get("order_identifier")?.as_str()) {
        shopper.require(order)?;
    }
    Ok(())
}

/// Checks a request against the shopper's proofs. A gift can be exchanged or become a gift card, and
/// only a giftee starts a gift return.
pub(crate) fn check(
    request: &ReturnRequest,
    shopper: &ProvenOrders,
) -> Result<(), ValidationError> {
    let is_gift = request.gift_refund_only;
    let mut orders = request.units.iter().map(|unit| unit.id.order_identifier.as_str());
    if !orders.all(|order| shopper.contains(order, is_gift)) {
        let detail = if is_gift { "the orders are not gifts" } else { "must be true for a gift" };
        return Err(FieldError::invalid("$.gift_refund_only", detail).into());
    }
    let units = request.units.iter().enumerate();
    let refunds = units.filter(|(_, unit)| is_gift && unit.resolution == Resolution::Refund);
    let error = |index: usize| {
        let detail = "a gift can be exchanged or become a gift card";
        FieldError::invalid(format!("$.units[{index}].resolution"), detail)
    };
    let errors = refunds.map(|(index, _)| error(index));
    ValidationError::from_errors(errors).map_or(Ok(()), Err)
}
