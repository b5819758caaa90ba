//! Erases a shopper's data after order-intake did, and publishes the erasure to the other services.
//!
//! Open returns need the data: the warehouse, the merchant and the exchange order depend on it. Unless the
//! event forces it, their orders keep the data, and order-intake learns which these are.
//!
//! An erasure may come late. Snapshots with a higher sequence number than the erasure, and returns that were
//! started from such snapshots, keep the data.
//!
//! See docs/decisions/erasing-shoppers.md.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::marker::PhantomData;

use delivery::{Deliveries, ErasedMessages};
use diesel_async::AsyncPgConnection;
use domain::erasure::{
    ERASED, ErasureConfirmed, ErasureCounts, KeptReturn, ReturnsErased, ShopperErased, erase,
    erase_mail, erase_order,
};
use domain::event::Event;
use domain::order::OrderStored;
use domain::returns::RmaStatus;
use domain::warehouse::UnitReceived;
use messaging::{Envelope, ErasedEvents, Outbox, erase_events};
use platform::database::DatabaseError;
use platform::{Service as _, Timestamp, idempotency};

use crate::App;
use crate::error::Error;
use crate::mails;
use crate::store::erasures::{self, ErasedRecords, LockedReturn};
use crate::store::{erased_orders, lookups, orders::ResourceKey};

/// Erases the orders of an event and their returns, and the returns in which the shopper is the giftee or withdrew
/// from the contract with another address than that of the order.
pub(crate) async fn erase_shopper(
    conn: &mut AsyncPgConnection,
    outbox: &Outbox,
    event: &Envelope<ShopperErased>,
    now: Timestamp,
) -> Result<(), Error> {
    let sequence = event.sequence_number();
    let erased_at = event.time;
    let event = &event.data;
    let merchant = &event.merchant;
    let orders = &event.order_identifiers;
    erased_orders::lock(conn, merchant, orders).await?;
    erasures::lock_orders(conn, merchant, orders).await?;
    let of_orders = erasures::lock_returns(conn, merchant, orders, sequence).await?;
    let of_other = match &event.email_sha256 {
        Some(email) => erasures::lock_returns_of_other(conn, merchant, email, erased_at).await?,
        None => Vec::new(),
    };
    let plan = Plan::new(event, &of_orders, &of_other);
    let counts = apply(conn, event, &plan, (sequence, erased_at)).await?;
    let confirmed = ErasureConfirmed {
        erasure_id: event.erasure_id,
        batch: event.batch,
        merchant: merchant.clone(),
        service: App::NAME.to_owned(),
        counts,
        kept_returns: plan.kept,
    };
    let erased = ReturnsErased {
        erasure_id: event.erasure_id,
        batch: event.batch,
        merchant: merchant.clone(),
        order_identifiers: plan.orders,
        rma_identifiers: identifiers(&plan.returns),
        gift_rma_identifiers: identifiers(&plan.gifts),
        email_sha256: event.email_sha256.clone(),
        erased_at,
    };
    outbox.append(conn, now, [erased]).await?;
    outbox.append(conn, now, [confirmed]).await?;
    tracing::info!(
        erasure.id = %event.erasure_id, batch = event.batch, %merchant,
        records = counts.records, "erased a shopper's data"
    );
    Ok(())
}

/// The records that are erased, and those that are kept.
struct Plan<'a> {
    orders: Vec<String>,
    returns: Vec<&'a LockedReturn>,
    /// Returns of orders that are not erased.
    gifts: Vec<&'a LockedReturn>,
    kept: Vec<KeptReturn>,
}

impl<'a> Plan<'a> {
    fn new(
        event: &ShopperErased,
        of_orders: &'a [LockedReturn],
        of_other: &'a [LockedReturn],
    ) -> Self {
        let is_kept = |it: &&LockedReturn| is_kept(event, it);
        let open: Vec<_> = of_orders.iter().filter(is_kept).collect();
        let kept_orders: BTreeSet<_> =
            open.iter().flat_map(|it| &it.order_identifiers).map(String::as_str).collect();
        let is_order_kept = |order: &String| kept_orders.contains(order.as_str());
        let returns: Vec<_> =
            of_orders.iter().filter(|it| !it.order_identifiers.iter().any(is_order_kept)).collect();
        let is_of_orders = |gift: &&LockedReturn| {
            of_orders.iter().any(|it| it.rma_identifier == gift.rma_identifier)
        };
        let (open_gifts, gifts): (Vec<_>, Vec<_>) =
            of_other.iter().filter(|it| !is_of_orders(it)).partition(is_kept);
        let kept = open.iter().chain(&open_gifts).flat_map(|it| kept_return(it)).collect();
        let orders = event.order_identifiers.iter().filter(|it| !is_order_kept(it));
        Self { orders: orders.cloned().collect(), returns, gifts, kept }
    }
}

fn is_kept(event: &ShopperErased, rma: &LockedReturn) -> bool {
    let is_open = match rma.status {
        RmaStatus::Requested | RmaStatus::Created | RmaStatus::PartialRefund => true,
        RmaStatus::Refunded | RmaStatus::Canceled | RmaStatus::Declined => false,
    };
    is_open && !event.force && event.force_before.is_none_or(|time| rma.updated_at >= time)
}

fn kept_return(rma: &LockedReturn) -> impl Iterator<Item = KeptReturn> {
    rma.order_identifiers.iter().map(|order| KeptReturn {
        rma_identifier: rma.rma_identifier.clone(),
        order_identifier: order.clone(),
    })
}

fn identifiers(returns: &[&LockedReturn]) -> Vec<String> {
    returns.iter().map(|it| it.rma_identifier.clone()).collect()
}

async fn apply(
    conn: &mut AsyncPgConnection,
    event: &ShopperErased,
    plan: &Plan<'_>,
    (sequence, erased_at): (i64, Timestamp),
) -> Result<ErasureCounts, Error> {
    let merchant = &event.merchant;
    erased_orders::add(conn, merchant, &plan.orders, sequence).await?;
    let orders = erasures::erase_orders(conn, merchant, &plan.orders, sequence).await?;
    let returns = [&plan.returns[..], &plan.gifts[..]].concat();
    erasures::erase_returns(conn, merchant, &returns, erased_at).await?;
    let names = identifiers(&returns);
    let records = ErasedRecords { orders: &plan.orders, returns: &names, erased_at };
    erasures::erase_discrepancies(conn, merchant, &records).await?;
    lookups::delete_of_orders(conn, merchant, &plan.orders, erased_at).await?;
    idempotency::erase_responses(conn, merchant, &names, erase).await?;
    let subjects: Vec<_> = names.iter().map(|name| format!("{merchant}/{name}")).collect();
    let events = erase_events(conn, &subjects, erase).await?;
    let keys: Vec<_> = names.iter().map(|name| format!("rma:{name}")).collect();
    let messages = ErasedMessages { ordering_keys: &keys, before: None };
    let deliveries = Deliveries::erase(conn, merchant, messages, |_| true, erase).await?;
    let keys: Vec<_> = names.iter().map(|name| mails::ordering_key(name)).collect();
    let messages = ErasedMessages { ordering_keys: &keys, before: None };
    let mails = Deliveries::erase(conn, merchant, messages, |_| true, erase_mail).await?;
    let deliveries = deliveries + mails;
    Ok(ErasureCounts { records: orders + returns.len(), events, deliveries })
}

/// Snapshots from before the erasure of their order.
pub(crate) struct ErasedSnapshots<E>(pub(crate) PhantomData<fn(E)>);

impl<E: Event + AsRef<OrderStored>> ErasedEvents for ErasedSnapshots<E> {
    type Event = E;

    async fn are_erased(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[Envelope<E>],
    ) -> Result<Vec<bool>, DatabaseError> {
        let keys: Vec<_> = events.iter().map(|event| key(event.data.as_ref())).collect();
        let erased = erased_orders::find(conn, &keys).await?;
        Ok(events.iter().map(|event| is_erased(&erased, event)).collect())
    }
}

fn key(stored: &OrderStored) -> ResourceKey<'_> {
    (stored.merchant.as_str(), stored.order.identifier.as_str())
}

fn is_erased<E: AsRef<OrderStored>>(
    erased: &HashMap<ResourceKey<'_>, i64>,
    event: &Envelope<E>,
) -> bool {
    erased.get(&key(event.data.as_ref())).is_some_and(|until| event.sequence_number() < *until)
}

/// The snapshots of a batch. Those from before the erasure of their order are erased, because events of
/// different types may overtake each other. The caller has locked nothing yet.
pub(crate) async fn without_erased<'e, E: AsRef<OrderStored>>(
    conn: &mut AsyncPgConnection,
    events: &[&'e Envelope<E>],
) -> Result<Vec<Cow<'e, OrderStored>>, Error> {
    let keys: Vec<_> = events.iter().map(|event| key(event.data.as_ref())).collect();
    let erased = erased_orders::find(conn, &keys).await?;
    let snapshot = |event: &&'e Envelope<E>| {
        let stored = event.data.as_ref();
        Ok::<_, Error>(if is_erased(&erased, event) {
            Cow::Owned(OrderStored { order: erase_order(&stored.order)?, ..stored.clone() })
        } else {
            Cow::Borrowed(stored)
        })
    };
    events.iter().map(snapshot).collect()
}

/// Received units from before the erasure of their return.
pub(crate) struct ErasedReceipts;

impl ErasedEvents for ErasedReceipts {
    type Event = UnitReceived;

    async fn are_erased(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[Envelope<UnitReceived>],
    ) -> Result<Vec<bool>, DatabaseError> {
        let mut erased = Vec::with_capacity(events.len());
        for event in events {
            erased.push(is_receipt_erased(conn, &event.data).await?);
        }
        Ok(erased)
    }
}

/// Whether a received unit has personal data that the erasure of its return should have replaced.
async fn is_receipt_erased(
    conn: &mut AsyncPgConnection,
    received: &UnitReceived,
) -> Result<bool, DatabaseError> {
    let UnitReceived { merchant, rma_identifier, reject_reason, received_at, .. } = received;
    if reject_reason.as_deref().is_none_or(|reason| reason == ERASED) {
        return Ok(false);
    }
    let erased_at = erasures::erased_at(conn, merchant, rma_identifier).await?;
    Ok(erased_at.is_some_and(|erased_at| *received_at < erased_at))
}

/// A received unit. If its return was erased after it, its data is erased, because events of different types may
/// overtake each other. The caller has locked the return.
pub(crate) async fn receipt_without_erased<'e>(
    conn: &mut AsyncPgConnection,
    received: &'e UnitReceived,
) -> Result<Cow<'e, UnitReceived>, DatabaseError> {
    Ok(if is_receipt_erased(conn, received).await? {
        let reject_reason = Some(ERASED.to_owned());
        Cow::Owned(UnitReceived { reject_reason, ..received.clone() })
    } else {
        Cow::Borrowed(received)
    })
}
