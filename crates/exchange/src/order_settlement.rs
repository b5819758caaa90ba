//! Settles exchange orders and publishes the outcome, in the transaction that settles the delivery or
//! when an operator abandons the order. Both lock the message before the exchange order, see `store`.

use api::exchange::{Abandonment, State};
use delivery::outcome::Outcome;
use delivery::{Decision, Deliveries, MessageWriter, Settlement, SettlementObserver};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::exchange::{
    ExchangeFailed, ExchangeOrderResponse, ExchangePlaced, ExchangeUndeliverable, FailedItem,
    FailureReason,
};
use domain::message_kind::MessageKind;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use messaging::Outbox;
use platform::{Clock, Timestamp, database::DatabaseError};

use crate::App;
use crate::error::Error;
use crate::store::orders::{self, Locked, Settled};

#[derive(Clone)]
pub(crate) struct OrderSettlement {
    pub(crate) outbox: Outbox,
    pub(crate) clock: Clock,
}

impl SettlementObserver for OrderSettlement {
    fn on_settled<'a>(
        &'a self,
        _: &'a MessageWriter,
        conn: &'a mut AsyncPgConnection,
        settled: &'a [&'a Settlement],
    ) -> BoxFuture<'a, Result<(), DatabaseError>> {
        async move {
            for settlement in
                settled.iter().filter(|settled| settled.kind() == MessageKind::ExchangeOrder)
            {
                match settlement.decision {
                    Decision::Delivered => self.placed(conn, settlement).await?,
                    Decision::Dead => self.undeliverable(conn, settlement).await?,
                    Decision::RetryAt(_) => {}
                }
            }
            Ok(())
        }
        .boxed()
    }
}

impl OrderSettlement {
    /// Changes nothing if the order was placed or abandoned.
    async fn placed(
        &self,
        conn: &mut AsyncPgConnection,
        settlement: &Settlement,
    ) -> Result<(), DatabaseError> {
        let now = self.clock.now();
        let response = ExchangeOrderResponse::read(&settlement.response);
        let placed = orders::place(conn, settlement.id(), &response, now).await?;
        let event = placed.map(|order| {
            let identifier =
                order.exchange_order_identifier.unwrap_or_else(|| order.own_identifier.clone());
            ExchangePlaced {
                merchant: order.merchant,
                rma_identifier: order.rma_identifier,
                original_order_id: order.original_order_id,
                rejected_identifier: response.order_identifier.filter(|name| *name != identifier),
                exchange_order_identifier: identifier,
                own_identifier: order.own_identifier,
                items: order.items,
                ordered_at: order.ordered_at,
                placed_at: now,
            }
        });
        self.outbox.append(conn, now, event).await
    }

    /// Leaves the units waiting for an operator, who replays or abandons the order. Publishes nothing
    /// when a replay fails again.
    async fn undeliverable(
        &self,
        conn: &mut AsyncPgConnection,
        settlement: &Settlement,
    ) -> Result<(), DatabaseError> {
        let now = self.clock.now();
        let id = settlement.id();
        // After a 409 the order may be ours: the response to an earlier attempt can be lost.
        let (before, after) = match settlement.outcome() {
            Outcome::AlreadyExists { .. } => {
                (&[State::Sending, State::Undeliverable][..], State::AlreadyExists)
            }
            _ => (&[State::Sending][..], State::Undeliverable),
        };
        let settled = orders::fail(conn, id, before, after, now).await?;
        let event = settled.map(|order| ExchangeUndeliverable {
            merchant: order.merchant,
            rma_identifier: order.rma_identifier,
            original_order_id: order.original_order_id,
            items: order.items.into_iter().map(|item| item.unit).collect(),
            reason: format!(
                "the merchant {}; replay delivery {id} or abandon the exchange order",
                settlement.outcome().detail().replace('\0', "\u{FFFD}")
            ),
            at: now,
        });
        self.outbox.append(conn, now, event).await
    }
}

/// Abandons an undeliverable exchange order: its delivery is deleted and its units are refunded.
///
/// The row stays, so that the original order gets no second exchange order: the merchant may have
/// processed the first one. Abandoning an abandoned order with the same note changes nothing, and with another
/// note is refused.
#[tracing::instrument(skip_all, fields(merchant = %merchant, order.id = original_order_id))]
pub(crate) async fn abandon(
    app: &App,
    merchant: &MerchantId,
    original_order_id: &str,
    abandonment: &Abandonment,
) -> Result<(), Error> {
    app.pool
        .transaction_of(merchant.as_str(), async |conn| {
            let now = app.order_settlement.clock.now();
            let named = || original_order_id.to_owned();
            let delivery = orders::delivery(conn, merchant, original_order_id).await?;
            let delivery = delivery.ok_or_else(|| Error::NoExchange(named()))?;
            // Undone if the order cannot be abandoned.
            let is_settled = Deliveries::delete_settled(conn, delivery).await?;
            let locked = orders::lock(conn, merchant, original_order_id).await?;
            let Locked { state, abandonment: earlier } =
                locked.ok_or_else(|| Error::NoExchange(named()))?;
            match state {
                State::Abandoned => {
                    return match earlier {
                        Some(earlier) if earlier.note != abandonment.note => {
                            Err(Error::AlreadyAbandoned { order: named(), by: earlier.by })
                        }
                        _ => Ok(()),
                    };
                }
                State::Undeliverable | State::AlreadyExists => {}
                other => {
                    return Err(Error::NotUndeliverable { order: named(), state: other.as_str() });
                }
            }
            if !is_settled {
                return Err(Error::BeingReplayed(named()));
            }
            let actor = &abandonment.by;
            let abandoned = orders::abandon(conn, delivery, abandonment, now).await?;
            let event = abandoned.map(|order| {
                let detail = format!(
                    "the order could not be delivered to the merchant; abandoned by {actor}"
                );
                exchange_failed(order, FailureReason::Abandoned, &detail, now)
            });
            app.order_settlement.outbox.append(conn, now, event).await?;
            tracing::info!(by = %actor, "exchange order for order {original_order_id} abandoned");
            Ok(())
        })
        .await
}

fn exchange_failed(
    order: Settled,
    reason: FailureReason,
    detail: &str,
    failed_at: Timestamp,
) -> ExchangeFailed {
    let items = order.items.into_iter().map(|item| FailedItem {
        unit: item.unit,
        reason,
        detail: detail.to_owned(),
    });
    ExchangeFailed {
        merchant: order.merchant,
        rma_identifier: order.rma_identifier,
        original_order_id: order.original_order_id,
        items: items.collect(),
        failed_at,
    }
}
