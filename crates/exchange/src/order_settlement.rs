//! Settles exchange orders and publishes the outcome, in the transaction that settles the delivery or
//! when an operator abandons the order.

use delivery::{Decision, Settlement, SettlementObserver};
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::access::MerchantId;
use domain::exchange::{ExchangeFailed, ExchangeOrderResponse, ExchangePlaced, FailureCause};
use domain::message_kind::MessageKind;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use messaging::Outbox;
use platform::{Clock, Timestamp, database::DatabaseError};

use crate::App;
use crate::error::Error;
use crate::exchange_orders::State;
use crate::store::orders::{self, Settled};

#[derive(Clone)]
pub(crate) struct OrderSettlement {
    pub(crate) outbox: Outbox,
    pub(crate) clock: Clock,
}

impl SettlementObserver for OrderSettlement {
    fn on_settled<'a>(
        &'a self,
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
    /// Changes nothing if the order is placed already.
    async fn placed(
        &self,
        conn: &mut AsyncPgConnection,
        settlement: &Settlement,
    ) -> Result<(), DatabaseError> {
        let now = self.clock.now();
        let placed = orders::place(
            conn,
            settlement.id(),
            &ExchangeOrderResponse::read(&settlement.response),
            now,
        )
        .await?;
        let event = placed.map(|(order, exchange_order_identifier)| ExchangePlaced {
            merchant: order.merchant,
            rma_identifier: order.rma_identifier,
            original_order_id: order.original_order_id,
            exchange_order_identifier,
            units: order.units,
            placed_at: now,
        });
        self.outbox.append(conn, now, event).await
    }

    /// Publishes nothing when a replay fails again.
    async fn undeliverable(
        &self,
        conn: &mut AsyncPgConnection,
        settlement: &Settlement,
    ) -> Result<(), DatabaseError> {
        let now = self.clock.now();
        let failed = orders::mark_undeliverable(conn, settlement.id(), now).await?;
        let event = failed.map(|order| {
            let detail = format!(
                "the order could not be delivered to the merchant; replay delivery {}",
                settlement.id()
            );
            exchange_failed(order, FailureCause::Undeliverable, detail, now)
        });
        self.outbox.append(conn, now, event).await
    }
}

/// Abandons an undeliverable exchange order: its delivery is deleted and its units are refunded.
///
/// The row stays, so that the original order gets no second exchange order: the merchant may have
/// processed the first one. Abandoning an abandoned order changes nothing.
#[tracing::instrument(skip_all, fields(merchant.id = %merchant, order.id = original_order_id))]
pub(crate) async fn abandon(
    app: &App,
    merchant: &MerchantId,
    original_order_id: &str,
    actor: &str,
) -> Result<(), Error> {
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let now = app.order_settlement.clock.now();
        let named = || original_order_id.to_owned();
        let (state, delivery) = orders::lock(conn, merchant, original_order_id)
            .await?
            .ok_or_else(|| Error::NoExchange(named()))?;
        match state {
            State::Abandoned => return Ok(()),
            State::Undeliverable => {}
            other => {
                return Err(Error::NotUndeliverable { order: named(), state: other.as_str() });
            }
        }
        if !app.deliveries.delete_settled(conn, delivery).await? {
            return Err(Error::BeingReplayed(named()));
        }
        let abandoned = orders::abandon(conn, delivery, now).await?;
        let event = abandoned.map(|order| {
            let detail =
                format!("the order could not be delivered to the merchant; abandoned by {actor}");
            exchange_failed(order, FailureCause::Abandoned, detail, now)
        });
        app.order_settlement.outbox.append(conn, now, event).await?;
        tracing::info!(by = actor, "exchange order for order {original_order_id} abandoned");
        Ok(())
    })
    .await
}

fn exchange_failed(
    order: Settled,
    cause: FailureCause,
    detail: String,
    failed_at: Timestamp,
) -> ExchangeFailed {
    ExchangeFailed {
        merchant: order.merchant,
        rma_identifier: order.rma_identifier,
        original_order_id: order.original_order_id,
        units: order.units,
        cause,
        detail,
        failed_at,
    }
}
