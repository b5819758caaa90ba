//! Placing exchange orders: asks for stock again, then decides, in one transaction, what becomes
//! of a confirmed return.
//!
//! The invariant: a confirmation is decided once, and whatever is decided is announced with it.
//! Whoever works on one holds it for a while; if that replica dies, another takes it up.

mod stock;
mod under_way;

use std::sync::Arc;

use delivery::{Deliveries, NewMessage};
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::exchange::{ExchangeFailed, ExchangeOrder, FailureCause};
use domain::message_kind::MessageKind;
use domain::returns::{ConfirmedUnit, ReturnConfirmed, UnitId};
use merchants::Merchants;
use messaging::Outbox;
use platform::database::{DatabaseError, Pool};
use platform::retry::Backoff;
use platform::{Clock, Timestamp, chain, telemetry};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Duration;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::offers::Offers;
use crate::settings::Placing;
use crate::store::confirmations::{self, Claimed, Decision, Space};
use crate::store::orders::{self, NewOrder};
use stock::Stock;
use under_way::UnderWay;

/// Broken when somebody else placed the order first.
const ONE_PER_ORDER: &str = "exchange_orders_one_per_original_order";
/// However many merchants are asked at once, so many connections decide.
pub(crate) const DECIDING: usize = 4;
/// What merchants see as `X-Service-Event`.
const EVENT: &str = "exchange_order.created";

pub(crate) struct Placer {
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) merchants: Arc<Merchants>,
    pub(crate) offers: Arc<Offers>,
    pub(crate) deliveries: Deliveries,
    pub(crate) outbox: Outbox,
    pub(crate) settings: Placing,
    pub(crate) heard: Arc<Notify>,
    pub(crate) deciding: Semaphore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Worked,
    Idle,
}

impl Placer {
    pub(crate) async fn run(self, stop: CancellationToken) {
        let placer = Arc::new(self);
        let most = placer.settings.batch.get().try_into().unwrap_or(usize::MAX);
        let mut under_way = UnderWay::new(most);
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));
        while !stop.is_cancelled() {
            let Err(error) = placer.turn(&mut under_way, &stop).await else {
                backoff.reset();
                continue;
            };
            tracing::warn!(error = chain(&error), "confirmed returns wait");
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(backoff.pause()) => {}
            }
        }
        // What was begun is finished.
        while let Some(done) = under_way.done().await {
            if let Err(error) = done {
                tracing::warn!(error = chain(&error), "a confirmed return waits for its lease");
            }
        }
    }

    /// Takes up what there is room for, or waits until there may be more of it.
    async fn turn(
        self: &Arc<Self>,
        under_way: &mut UnderWay,
        stop: &CancellationToken,
    ) -> Result<(), DatabaseError> {
        let space = under_way.space();
        if let Some(space) = &space
            && self.take_up(under_way, space).await? == Step::Worked
        {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            Some(done) = under_way.done() => done,
            () = tokio::time::sleep(self.settings.poll), if space.is_some() => Ok(()),
            () = self.heard.notified(), if space.is_some() => Ok(()),
        }
    }

    async fn take_up(
        self: &Arc<Self>,
        under_way: &mut UnderWay,
        space: &Space,
    ) -> Result<Step, DatabaseError> {
        let now = self.clock.now();
        let claimed = {
            let mut conn = self.pool.get().await?;
            confirmations::claim(&mut conn, now, self.settings.lease, space).await?
        };
        let step = if claimed.is_empty() { Step::Idle } else { Step::Worked };
        for claimed in claimed {
            let placer = self.clone();
            under_way.begin(claimed, async move |claimed| placer.attend(&claimed).await);
        }
        Ok(step)
    }

    async fn attend(&self, claimed: &Claimed) -> Result<(), DatabaseError> {
        let confirmed = &claimed.confirmed;
        let span = tracing::info_span!(
            "place", merchant.id = %confirmed.merchant, order.id = confirmed.original_order_id
        );
        telemetry::adopt(&span, claimed.traceparent.as_deref());
        let placing = async {
            if !claimed.taken {
                let stock = self.ask_stock(claimed).await;
                match self.transact(claimed, Some(&stock)).await {
                    // Somebody placed an order between our look and our attempt.
                    Err(error) if error.constraint() == Some(ONE_PER_ORDER) => {}
                    done => return done,
                }
            }
            self.transact(claimed, None).await
        };
        placing.instrument(span).await
    }

    /// Decides with what is known of stock, or without it when there is an order already.
    async fn transact(
        &self,
        claimed: &Claimed,
        stock: Option<&Stock<'_>>,
    ) -> Result<(), DatabaseError> {
        // Never closed, and the pool's own patience is too short for a whole batch.
        let _turn = self.deciding.acquire().await;
        let mut conn = self.pool.get().await?;
        conn.transaction(async |conn| {
            if !confirmations::lock(conn, claimed.position).await? {
                return Ok(());
            }
            let Some(stock) = stock else { return self.refuse(conn, claimed).await };
            let confirmed = &claimed.confirmed;
            let now = self.clock.now();
            let transaction_id = Uuid::new_v4();
            let decision =
                match ExchangeOrder::new(confirmed, &stock.units.exchangeable, transaction_id) {
                    Ok(order) => {
                        self.order(conn, claimed, stock, &order, now).await?;
                        Decision::Ordered
                    }
                    Err(_nothing_left) => Decision::OutOfStock,
                };
            let gone = ids(&stock.units.out_of_stock);
            confirmations::decide(conn, claimed.position, decision, &gone, now).await?;
            let failed = (!gone.is_empty()).then(|| {
                let detail = "what was chosen is no longer in stock".to_owned();
                failed(confirmed, gone, FailureCause::OutOfStock, detail, now)
            });
            self.outbox.append(conn, now, failed).await
        })
        .await
    }

    async fn order(
        &self,
        conn: &mut AsyncPgConnection,
        claimed: &Claimed,
        stock: &Stock<'_>,
        order: &ExchangeOrder,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let confirmed = &claimed.confirmed;
        let body = serde_json::to_string(order)
            .map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
        let message = NewMessage {
            merchant: confirmed.merchant.clone(),
            kind: MessageKind::ExchangeOrder,
            ordering_key: Some(format!("order:{}", confirmed.original_order_id)),
            event: EVENT.to_owned(),
            body: body.clone().into(),
        };
        let delivery = self.deliveries.append(conn, now, &[message]).await?;
        let order = NewOrder {
            merchant: &confirmed.merchant,
            original_order_id: &confirmed.original_order_id,
            confirmation: claimed.position,
            transaction_id: order.payment.transaction_id,
            delivery: delivery.first().copied().unwrap_or_default(),
            units: &ids(&stock.units.exchangeable),
            message: &body,
            stock: stock.word(),
            stock_detail: stock.detail.as_deref(),
        };
        orders::add(conn, &order, now).await
    }

    async fn refuse(
        &self,
        conn: &mut AsyncPgConnection,
        claimed: &Claimed,
    ) -> Result<(), DatabaseError> {
        let (confirmed, now) = (&claimed.confirmed, self.clock.now());
        let decision = Decision::AlreadyExchanged;
        confirmations::decide(conn, claimed.position, decision, &[], now).await?;
        let units: Vec<_> = confirmed.units.iter().collect();
        let order = &confirmed.original_order_id;
        let detail = format!("an exchange order was placed for order {order} before");
        let cause = FailureCause::AlreadyExchanged;
        let event = failed(confirmed, ids(&units), cause, detail, now);
        self.outbox.append(conn, now, [event]).await
    }
}

fn ids(units: &[&ConfirmedUnit]) -> Vec<UnitId> {
    units.iter().map(|unit| unit.id.clone()).collect()
}

fn failed(
    confirmed: &ReturnConfirmed,
    units: Vec<UnitId>,
    cause: FailureCause,
    detail: String,
    failed_at: Timestamp,
) -> ExchangeFailed {
    ExchangeFailed {
        merchant: confirmed.merchant.clone(),
        rma_identifier: confirmed.rma_identifier.clone(),
        original_order_id: confirmed.original_order_id.clone(),
        units,
        cause,
        detail,
        failed_at,
    }
}
