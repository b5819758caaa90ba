//! Consumes `returns.erased`: erases the shopper's data in confirmations and exchange orders.
//!
//! The event names every return that is erased. Another return of the same order keeps its data, so an erasure
//! that comes late erases nothing that is newer.

use std::borrow::Cow;
use std::collections::HashSet;

use delivery::{Deliveries, ErasedMessages};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::erasure::{ErasureCounts, ReturnsErased, erase as erase_all, erase_email};
use domain::returns::ReturnConfirmed;
use messaging::{Envelope, ErasedEvents, HandleError, Handler, Outbox};
use platform::database::DatabaseError;
use platform::{Clock, Service as _};
use serde_json::Value;

use crate::App;
use crate::error::Error;
use crate::store::erasures;

pub(crate) struct Erasures {
    pub(crate) outbox: Outbox,
    pub(crate) clock: Clock,
}

impl Handler for Erasures {
    type Event = ReturnsErased;

    /// Each event may be about a hundred orders.
    const MAX_BATCH_COST: usize = 1;

    fn cost(_: &ReturnsErased) -> usize {
        1
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ReturnsErased>],
    ) -> Result<(), HandleError> {
        for event in events {
            self.apply(conn, &event.data).await.map_err(Error::from)?;
        }
        Ok(())
    }
}

impl Erasures {
    async fn apply(
        &self,
        conn: &mut AsyncPgConnection,
        event: &ReturnsErased,
    ) -> Result<(), DatabaseError> {
        let ReturnsErased { merchant, rma_identifiers: returns, .. } = event;
        erasures::lock_returns(conn, event).await?;
        erasures::add_erased_returns(conn, merchant, returns, None).await?;
        let (mut records, mut deliveries) =
            erase_returns(conn, merchant, returns, erase_all).await?;
        if let Some(email) = &event.email_sha256 {
            // The other data of a gift is the buyer's.
            let gifts = &event.gift_rma_identifiers;
            erasures::add_erased_returns(conn, merchant, gifts, Some(email)).await?;
            let erase_giftee = |value: &mut Value| erase_email(value, email);
            let (gift_records, sent) = erase_returns(conn, merchant, gifts, erase_giftee).await?;
            records += gift_records;
            deliveries += sent;
        }
        let counts = ErasureCounts { records, events: 0, deliveries };
        let confirmed = event.confirmed_by(App::NAME, counts);
        self.outbox.append(conn, self.clock.now(), [confirmed]).await?;
        tracing::info!(
            erasure.id = %event.erasure_id, batch = event.batch, %merchant, records,
            "erased a shopper's data"
        );
        Ok(())
    }
}

/// Applies `erase` to the records and messages of these returns, and returns the numbers of those that changed.
async fn erase_returns(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    returns: &[String],
    erase: impl Fn(&mut Value) + Copy,
) -> Result<(usize, usize), DatabaseError> {
    let orders = erasures::orders_of(conn, merchant, returns).await?;
    let keys: Vec<_> = orders.iter().map(|order| format!("order:{order}")).collect();
    let names: HashSet<_> = returns.iter().map(String::as_str).collect();
    let is_of_returns = |message: &Value| {
        message["rma_identifier"].as_str().is_some_and(|name| names.contains(name))
    };
    // In the lock order, see `store`. A confirmation that is being placed appends its message before it is unlocked.
    let confirmations = erasures::erase_confirmations(conn, merchant, returns, erase).await?;
    let messages = ErasedMessages { ordering_keys: &keys, before: None };
    let deliveries = Deliveries::erase(conn, merchant, messages, is_of_returns, erase).await?;
    let orders = erasures::erase_orders(conn, merchant, returns, erase).await?;
    Ok((confirmations + orders, deliveries))
}

/// Confirmations of returns whose shopper was erased.
pub(crate) struct ErasedConfirmations;

impl ErasedEvents for ErasedConfirmations {
    type Event = ReturnConfirmed;

    async fn are_erased(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[Envelope<ReturnConfirmed>],
    ) -> Result<Vec<bool>, DatabaseError> {
        let mut erased = Vec::with_capacity(events.len());
        for Envelope { data, .. } in events {
            let found = erasures::of_return(conn, &data.merchant, &data.rma_identifier).await?;
            erased.push(!found.is_empty());
        }
        Ok(erased)
    }
}

/// A confirmed return. If its shopper was erased, the data is erased, because events of different types may
/// overtake each other. The caller has waited for erasures of the return.
pub(crate) async fn without_erased<'e>(
    conn: &mut AsyncPgConnection,
    confirmed: &'e ReturnConfirmed,
) -> Result<Cow<'e, ReturnConfirmed>, Error> {
    let mut confirmed = Cow::Borrowed(confirmed);
    let erased = erasures::of_return(conn, &confirmed.merchant, &confirmed.rma_identifier).await?;
    for giftee in erased {
        confirmed = Cow::Owned(match giftee {
            Some(email) => {
                erasures::erased_confirmation(&confirmed, |value| erase_email(value, &email))
            }
            None => erasures::erased_confirmation(&confirmed, erase_all),
        }?);
    }
    Ok(confirmed)
}
