//! How exchange orders ended, and telling of it: at the merchant, in the transaction that settles
//! the message, or by an operator's word.

use delivery::observer::{Ended, Ending, SettlementObserver};
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
use crate::http::exchange_orders::State;
use crate::store::orders::{self, Settled};

#[derive(Clone)]
pub(crate) struct Endings {
    pub(crate) outbox: Outbox,
    pub(crate) clock: Clock,
}

impl SettlementObserver for Endings {
    fn ended<'a>(
        &'a self,
        conn: &'a mut AsyncPgConnection,
        ended: &'a [Ended],
    ) -> BoxFuture<'a, Result<(), DatabaseError>> {
        async move {
            for ended in ended.iter().filter(|ended| ended.kind == MessageKind::ExchangeOrder) {
                match ended.ending {
                    Ending::Delivered => self.placed(conn, ended).await?,
                    Ending::Dead => self.undeliverable(conn, ended).await?,
                }
            }
            Ok(())
        }
        .boxed()
    }
}

impl Endings {
    /// The first time only: an order that is placed stays as it was placed.
    async fn placed(
        &self,
        conn: &mut AsyncPgConnection,
        ended: &Ended,
    ) -> Result<(), DatabaseError> {
        let now = self.clock.now();
        let placed =
            orders::place(conn, ended.id, &ExchangeOrderResponse::read(&ended.answer), now).await?;
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

    /// The first time only: a replay that fails again is no news.
    async fn undeliverable(
        &self,
        conn: &mut AsyncPgConnection,
        ended: &Ended,
    ) -> Result<(), DatabaseError> {
        let now = self.clock.now();
        let failed = orders::give_up(conn, ended.id, now).await?;
        let event = failed.map(|order| {
            let detail =
                format!("the merchant did not take the order; replay delivery {}", ended.id);
            exchange_failed(order, FailureCause::Undeliverable, detail, now)
        });
        self.outbox.append(conn, now, event).await
    }
}

/// Ends an order that the merchant did not take, for good: nothing can send it any more, and its
/// units are refunded instead. The key stays taken, because the merchant may know the order after
/// all. One that was ended before stays as it is.
#[tracing::instrument(skip_all, fields(merchant.id = %merchant, order.id = original_order_id))]
pub(crate) async fn abandon(
    app: &App,
    merchant: &MerchantId,
    original_order_id: &str,
    actor: &str,
) -> Result<(), Error> {
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let now = app.endings.clock.now();
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
        if !app.deliveries.withdraw(conn, delivery).await? {
            return Err(Error::SentAgain(named()));
        }
        let ended = orders::abandon(conn, delivery, now).await?;
        let event = ended.map(|order| {
            let detail = format!("the merchant did not take the order; ended by {actor}");
            exchange_failed(order, FailureCause::Abandoned, detail, now)
        });
        app.endings.outbox.append(conn, now, event).await?;
        tracing::info!(by = actor, "ended the exchange order for order {original_order_id}");
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
