//! An order as support sees it: lines with their units, refunds and returns.

use api::returns::{LineView, OrderView, RefundView, UnitView};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::order::OrderLine;

use crate::error::Error;
use crate::orders::units::OrderUnits;
use crate::shipped_units::{AppliedRefund, ShippedUnits, Unit, unit_id};
use crate::store::orders::Projected;
use crate::store::returns;

/// Limit on the returns that are shown with an order.
const MAX_RETURNS: i64 = 100;

pub(crate) async fn load(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    order_units: &OrderUnits,
    identifier: &str,
) -> Result<OrderView, Error> {
    let no_order = || Error::NoOrder(identifier.to_owned());
    let projected = order_units.orders.get(identifier).ok_or_else(no_order)?;
    let Projected { order, shipped_units, .. } = projected;
    Ok(OrderView {
        merchant: merchant.clone(),
        order_identifier: order.identifier.clone(),
        status: order.status,
        currency: order.currency.code().to_owned(),
        total_amount_cents: order.total_amount_cents,
        customer: order.customer.clone(),
        created_at: order.created_at,
        updated_at: order.updated_at,
        stored_at: projected.stored_at,
        original_order_identifier: projected.original_order_identifier.clone(),
        lines: order.items.iter().map(|line| show_line(order_units, projected, line)).collect(),
        refunds: shipped_units.refunds().iter().map(show_refund).collect(),
        returns: returns::of_order(conn, merchant, identifier, MAX_RETURNS).await?,
    })
}

fn show_line(order_units: &OrderUnits, projected: &Projected, line: &OrderLine) -> LineView {
    let Projected { order, shipped_units, .. } = projected;
    let show_unit = |unit: &Unit| {
        let id = unit_id(&order.identifier, &line.identifier, unit.unit);
        UnitView {
            unit: unit.unit,
            paid_amount_cents: unit.amounts.paid(),
            rma_identifier: order_units.return_of(&id).map(str::to_owned),
            refund_identifier: refund_of(shipped_units, unit).map(str::to_owned),
        }
    };
    LineView {
        identifier: line.identifier.clone(),
        sku: line.sku.clone(),
        upc: line.upc.clone(),
        title: line.title.clone(),
        image_url: line.image_url.clone(),
        quantity: line.quantity,
        quantity_shipped: line.quantity_shipped,
        quantity_canceled: line.quantity_canceled,
        unit_price_amount_cents: line.unit_price_amount_cents,
        units: shipped_units.units(&line.identifier).iter().map(show_unit).collect(),
    }
}

fn refund_of<'a>(shipped_units: &'a ShippedUnits, unit: &Unit) -> Option<&'a str> {
    Some(shipped_units.refunds().get(unit.refund?)?.identifier.as_str())
}

fn show_refund(refund: &AppliedRefund) -> RefundView {
    RefundView {
        identifier: refund.identifier.clone(),
        amount_cents: refund.amount_cents,
        quantities: refund.quantities.clone(),
        rma_identifier: refund.rma_identifier.clone(),
        is_unmatched: refund.is_unmatched,
    }
}
