//! Consumes `returns.erased`: erases the shopper's data in confirmations and exchange orders.

use std::borrow::Cow;

use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::erasure::{
    EmailDigest, ErasureConfirmed, ErasureCounts, ReturnsErased, erase, erase_email,
};
use domain::returns::ReturnConfirmed;
use messaging::{Envelope, HandleError, Handler, Outbox};
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
            self.erase(conn, event).await.map_err(Error::from)?;
        }
        Ok(())
    }
}

impl Erasures {
    async fn erase(
        &self,
        conn: &mut AsyncPgConnection,
        event: &Envelope<ReturnsErased>,
    ) -> Result<(), DatabaseError> {
        let (sequence, event) = (event.sequence_number(), &event.data);
        let (merchant, orders) = (&event.merchant, &event.order_identifiers);
        erasures::add_erased_orders(conn, merchant, orders, sequence).await?;
        let mut records = erasures::erase_orders(conn, merchant, orders, erase).await?;
        let mut deliveries =
            Deliveries::erase(conn, merchant, &ordering_keys(orders), erase).await?;
        if let Some(email) = &event.email_sha256 {
            let (gifts, sent) = erase_gifts(conn, event, email).await?;
            records += gifts;
            deliveries += sent;
        }
        let counts = ErasureCounts { records, events: 0, deliveries };
        let confirmed = ErasureConfirmed {
            erasure_id: event.erasure_id,
            batch: event.batch,
            merchant: merchant.clone(),
            service: App::NAME.to_owned(),
            counts,
            kept_returns: Vec::new(),
        };
        self.outbox.append(conn, self.clock.now(), [confirmed]).await?;
        tracing::info!(
            erasure.id = %event.erasure_id, batch = event.batch, %merchant, records,
            "erased a shopper's data"
        );
        Ok(())
    }
}

fn ordering_keys(orders: &[String]) -> Vec<String> {
    orders.iter().map(|order| format!("order:{order}")).collect()
}

/// Erases the giftee in exchange orders of gifts. The other data is the buyer's. Returns the numbers of
/// records and messages.
async fn erase_gifts(
    conn: &mut AsyncPgConnection,
    event: &ReturnsErased,
    email: &EmailDigest,
) -> Result<(usize, usize), DatabaseError> {
    let merchant = &event.merchant;
    let orders = erasures::orders_of(conn, merchant, &event.gift_rma_identifiers).await?;
    let erase = |value: &mut Value| erase_email(value, email);
    let records = erasures::erase_orders(conn, merchant, &orders, erase).await?;
    let deliveries = Deliveries::erase(conn, merchant, &ordering_keys(&orders), erase).await?;
    Ok((records, deliveries))
}

/// The confirmed return of an event. A confirmation from before the erasure of its order is erased, because
/// events of different types may overtake each other.
pub(crate) async fn without_erased<'e>(
    conn: &mut AsyncPgConnection,
    event: &'e Envelope<ReturnConfirmed>,
) -> Result<Cow<'e, ReturnConfirmed>, Error> {
    let confirmed = &event.data;
    let (merchant, order) = (&confirmed.merchant, &confirmed.original_order_id);
    let erased = erasures::erased_before(conn, merchant, order).await?;
    if erased.is_none_or(|until| event.sequence_number() >= until) {
        return Ok(Cow::Borrowed(confirmed));
    }
    Ok(Cow::Owned(erasures::erased_confirmation(confirmed)?))
}
