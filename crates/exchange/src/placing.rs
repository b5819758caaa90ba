//! Places exchange orders: checks stock and prices again, then decides a confirmed return in one transaction.
//!
//! Invariant: a confirmation is decided once, and its events are written in the same transaction. A
//! replica leases the confirmations it works on; if it dies, another leases them when the lease expires.
//!
//! See docs/decisions/exchange-orders.md.

mod check;
mod tasks;

use std::sync::Arc;

use delivery::{Deliveries, NewMessage};
use diesel_async::AsyncPgConnection;
use domain::exchange::{CheckedUnit, ExchangeFailed, ExchangeOrder, FailedItem, FailureReason};
use domain::message_kind::MessageKind;
use domain::returns::ReturnConfirmed;
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

use crate::settings::Placing;
use crate::store::confirmations::{self, Capacity, ConfirmationDecision, LeasedConfirmation};
use crate::store::orders::{self, NewOrder};
use crate::variant_cache::VariantCache;
use check::CheckedVariants;
use tasks::PlacingTasks;

/// Violated when another confirmation placed the exchange order first.
const ONE_PER_ORDER: &str = "exchange_orders_one_per_original_order";
/// Limits the database connections that placing uses at once.
pub(crate) const MAX_CONCURRENT_DECISIONS: usize = 4;
/// Value of the `X-Service-Event` header.
const EVENT: &str = "exchange_order.created";

pub(crate) struct Placer {
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) merchants: Arc<Merchants>,
    pub(crate) variant_cache: Arc<VariantCache>,
    pub(crate) deliveries: Deliveries,
    pub(crate) outbox: Outbox,
    pub(crate) settings: Placing,
    pub(crate) new_confirmations: Arc<Notify>,
    pub(crate) decision_permits: Semaphore,
}

impl Placer {
    pub(crate) async fn run(self, stop: CancellationToken) {
        // Without the merchants no variant can be asked for, and all confirmations would fail.
        if stop.run_until_cancelled(self.merchants.loaded()).await.is_none() {
            return;
        }
        let placer = Arc::new(self);
        let max_concurrency = placer.settings.max_concurrency.get();
        let mut tasks = PlacingTasks::new(max_concurrency.try_into().unwrap_or(usize::MAX));
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(3));
        while !stop.is_cancelled() {
            let Err(error) = placer.run_once(&mut tasks, &stop).await else {
                backoff.reset();
                continue;
            };
            tracing::warn!(
                error = chain(&error),
                "confirmed returns could not be processed and wait"
            );
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(backoff.pause()) => {}
            }
        }
        // Tasks that have started are finished.
        while let Some(done) = tasks.done().await {
            if let Err(error) = done {
                tracing::warn!(
                    error = chain(&error),
                    "a confirmed return could not be processed and waits until its lease expires"
                );
            }
        }
    }

    /// Leases as many confirmations as fit, or waits for a finished task or a new confirmation.
    async fn run_once(
        self: &Arc<Self>,
        tasks: &mut PlacingTasks,
        stop: &CancellationToken,
    ) -> Result<(), DatabaseError> {
        let capacity = tasks.capacity();
        if let Some(capacity) = &capacity
            && self.lease(tasks, capacity).await? > 0
        {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            Some(done) = tasks.done() => done,
            () = tokio::time::sleep(self.settings.poll_interval), if capacity.is_some() => Ok(()),
            () = self.new_confirmations.notified(), if capacity.is_some() => Ok(()),
        }
    }

    /// Leases waiting confirmations and starts a task for each. Returns their number.
    async fn lease(
        self: &Arc<Self>,
        tasks: &mut PlacingTasks,
        capacity: &Capacity,
    ) -> Result<usize, DatabaseError> {
        let now = self.clock.now();
        let leased = {
            let mut conn = self.pool.get().await?;
            confirmations::lease_waiting(&mut conn, now, self.settings.lease, capacity).await?
        };
        let number = leased.len();
        for leased in leased {
            let placer = self.clone();
            tasks.begin(leased, async move |leased| placer.place(&leased).await);
        }
        Ok(number)
    }

    async fn place(&self, leased: &LeasedConfirmation) -> Result<(), DatabaseError> {
        let confirmed = &leased.confirmed;
        let span = tracing::info_span!(
            "place", merchant = %confirmed.merchant, order.id = confirmed.original_order_id
        );
        telemetry::set_parent(&span, leased.traceparent.as_deref());
        let placing = async {
            if !leased.has_order {
                let checked = self.check(leased).await;
                match self.decide(leased, Some(&checked)).await {
                    // Another confirmation placed an exchange order after this one was leased.
                    Err(error) if error.constraint() == Some(ONE_PER_ORDER) => {}
                    done => return done,
                }
            }
            self.decide(leased, None).await
        };
        placing.instrument(span).await
    }

    /// Decides a confirmation. `checked` is `None` if the original order already has an exchange order.
    async fn decide(
        &self,
        leased: &LeasedConfirmation,
        checked: Option<&CheckedVariants<'_>>,
    ) -> Result<(), DatabaseError> {
        // The semaphore is never closed. Without it a whole batch would exceed the pool's acquire timeout.
        let _permit = self.decision_permits.acquire().await;
        let mut conn = self.pool.get().await?;
        conn.transaction(async |conn| {
            if !confirmations::lock(conn, leased).await? {
                return Ok(());
            }
            let Some(checked) = checked else {
                return self.reject_as_already_exchanged(conn, leased).await;
            };
            let confirmed = &leased.confirmed;
            let now = self.clock.now();
            let units = &checked.units.exchangeable;
            let merchant = self.merchants.get(&confirmed.merchant);
            let concept = merchant.as_ref().and_then(|it| it.settings.concept.as_deref());
            let decision = match ExchangeOrder::new(confirmed, units, concept, Uuid::new_v4()) {
                Ok(order) => {
                    self.place_order(conn, leased, checked, &order, now).await?;
                    ConfirmationDecision::Ordered
                }
                Err(_no_units) => ConfirmationDecision::NotExchangeable,
            };
            let items = &checked.units.failed;
            confirmations::save_decision(conn, leased.position, decision, items, now).await?;
            let event = (!items.is_empty()).then(|| failed(confirmed, items.clone(), now));
            self.outbox.append(conn, now, event).await
        })
        .await
    }

    /// Appends the message to the merchant and stores the exchange order.
    async fn place_order(
        &self,
        conn: &mut AsyncPgConnection,
        leased: &LeasedConfirmation,
        checked: &CheckedVariants<'_>,
        order: &ExchangeOrder,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let confirmed = &leased.confirmed;
        let version =
            self.deliveries.message_version(&confirmed.merchant, MessageKind::ExchangeOrder);
        let body = serde_json::to_string(order)
            .map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
        let message = NewMessage {
            merchant: confirmed.merchant.clone(),
            kind: MessageKind::ExchangeOrder,
            version,
            ordering_key: Some(format!("order:{}", confirmed.original_order_id)),
            event: EVENT.to_owned(),
            body: body.clone().into(),
        };
        let deliveries = self.deliveries.append(conn, now, &[message]).await?;
        let delivery = deliveries.first().copied().ok_or_else(|| {
            let order = &confirmed.original_order_id;
            DatabaseError::Internal(format!(
                "the message of the exchange of order {order} has no id"
            ))
        })?;
        let items: Vec<_> =
            checked.units.exchangeable.iter().map(CheckedUnit::placed_item).collect();
        let new_order = NewOrder {
            merchant: &confirmed.merchant,
            original_order_id: &confirmed.original_order_id,
            confirmation: leased.position,
            transaction_id: order.payment.transaction_id,
            delivery,
            items: &items,
            message: &body,
            stock_check: checked.stock_check(),
            price_check: checked.price_check(),
            check_detail: checked.detail.as_deref(),
        };
        orders::add(conn, &new_order, now).await
    }

    /// Fails all units of a return whose order already has an exchange order.
    async fn reject_as_already_exchanged(
        &self,
        conn: &mut AsyncPgConnection,
        leased: &LeasedConfirmation,
    ) -> Result<(), DatabaseError> {
        let confirmed = &leased.confirmed;
        let now = self.clock.now();
        let decision = ConfirmationDecision::AlreadyExchanged;
        confirmations::save_decision(conn, leased.position, decision, &[], now).await?;
        let order = &confirmed.original_order_id;
        let detail = format!("order {order} already has an exchange order");
        let items = confirmed.units.iter().map(|unit| FailedItem {
            unit: unit.id.clone(),
            reason: FailureReason::AlreadyExchanged,
            detail: detail.clone(),
        });
        let event = failed(confirmed, items.collect(), now);
        self.outbox.append(conn, now, [event]).await
    }
}

fn failed(
    confirmed: &ReturnConfirmed,
    items: Vec<FailedItem>,
    failed_at: Timestamp,
) -> ExchangeFailed {
    ExchangeFailed {
        merchant: confirmed.merchant.clone(),
        rma_identifier: confirmed.rma_identifier.clone(),
        original_order_id: confirmed.original_order_id.clone(),
        items,
        failed_at,
    }
}
