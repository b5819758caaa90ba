//! How exchange orders ended at the merchant, and telling of it, in the transaction that settles
//! the message.

use delivery::witness::{Ended, Ending, Witness};
use diesel_async::AsyncPgConnection;
use domain::exchange::{ExchangeFailed, ExchangePlaced, FailureCause, Reply};
use domain::kind::Kind;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use messaging::Outbox;
use platform::{Clock, database::DatabaseError};

use crate::store::orders::{self, Settled};

pub(crate) struct Endings {
    pub(crate) outbox: Outbox,
    pub(crate) clock: Clock,
}

impl Witness for Endings {
    fn ended<'a>(
        &'a self,
        conn: &'a mut AsyncPgConnection,
        ended: &'a [Ended],
    ) -> BoxFuture<'a, Result<(), DatabaseError>> {
        async move {
            for ended in ended.iter().filter(|ended| ended.kind == Kind::ExchangeOrder) {
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
        let placed = orders::place(conn, ended.id, &Reply::read(&ended.answer), now).await?;
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
        let event = failed.map(|order: Settled| ExchangeFailed {
            merchant: order.merchant,
            rma_identifier: order.rma_identifier,
            original_order_id: order.original_order_id,
            units: order.units,
            cause: FailureCause::Undeliverable,
            detail: format!("the merchant did not take the order; replay delivery {}", ended.id),
            failed_at: now,
        });
        self.outbox.append(conn, now, event).await
    }
}
