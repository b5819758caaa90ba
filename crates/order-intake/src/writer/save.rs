//! Decides the outcomes of a batch and saves it.

use std::collections::BTreeSet;

use diesel_async::AsyncPgConnection;
use domain::order::OrderSnapshot;
use messaging::Outbox;
use platform::database::DatabaseError;

use super::publish_error::{PublishError, PublishResult};
use crate::store::{self, WriteError, WriteMode};
use crate::write_batch::{Key, Publication, Published, Stored, WriteBatch};
use platform::batching::QueuedJob;

/// `None` for a publication that its request must store alone.
pub(crate) type WriteResult = Option<PublishResult>;
pub(super) type QueuedJobs = Vec<QueuedJob<Publication, WriteResult>>;

pub(super) fn publications(queued: &QueuedJobs) -> Vec<&Publication> {
    queued.iter().map(|queued| &queued.job).collect()
}

/// Writes a batch without loading the stored state. Nearly all batches hold only new orders or newer
/// snapshots, and take one round trip.
pub(super) async fn write_optimistic(
    conn: &AsyncPgConnection,
    outbox: &Outbox,
    publications: &[&Publication],
) -> Result<Vec<PublishResult>, WriteError> {
    let mut batch = WriteBatch::new(Stored::default());
    let results = apply(&mut batch, publications);
    let orders: usize = publications.iter().map(|publication| publication.orders.len()).sum();
    if batch.rows().len() != orders {
        return Err(WriteError::Conflict);
    }
    save(conn, outbox, publications, &batch, WriteMode::Optimistic).await?;
    Ok(results)
}

/// Loads the stored state, decides and writes: two round trips for any number of orders. The write is
/// one atomic statement.
pub(super) async fn write_checked(
    conn: &AsyncPgConnection,
    outbox: &Outbox,
    publications: &[&Publication],
) -> Result<Vec<PublishResult>, WriteError> {
    let mut batch = WriteBatch::new(load(conn, publications).await?);
    let results = apply(&mut batch, publications);
    save(conn, outbox, publications, &batch, WriteMode::Checked).await?;
    Ok(results)
}

fn apply<'a>(batch: &mut WriteBatch<'a>, publications: &[&'a Publication]) -> Vec<PublishResult> {
    let results = publications.iter();
    results.map(|it| batch.apply(it).map_err(PublishError::Refunds)).collect()
}

async fn save(
    conn: &AsyncPgConnection,
    outbox: &Outbox,
    publications: &[&Publication],
    batch: &WriteBatch<'_>,
    mode: WriteMode,
) -> Result<(), WriteError> {
    match publications.iter().map(|publication| publication.received_at).max() {
        Some(now) => store::write(conn, outbox, batch, mode, now).await,
        None => Ok(()),
    }
}

/// The keys of the orders, each once.
pub(super) fn orders<'a>(publications: &[&'a Publication]) -> Vec<Key<'a>> {
    let orders = publications.iter().flat_map(|publication| keys(publication));
    BTreeSet::from_iter(orders).into_iter().collect()
}

/// The keys of the orders of a publication.
pub(super) fn keys(publication: &Publication) -> impl Iterator<Item = Key<'_>> {
    let orders = publication.orders.iter();
    orders.map(|it| (publication.merchant.as_str(), it.snapshot.order.identifier.as_str()))
}

/// Loads the stored state of all orders and refunds in these publications.
async fn load<'a>(
    conn: &AsyncPgConnection,
    publications: &[&'a Publication],
) -> Result<Stored<'a>, DatabaseError> {
    let mut refunds = BTreeSet::new();
    let mut lines = BTreeSet::new();
    for publication in publications {
        let merchant = publication.merchant.as_str();
        for Published { snapshot: OrderSnapshot { order, .. }, .. } in &publication.orders {
            for refund in &order.refunds {
                refunds.insert((merchant, refund.identifier.as_str()));
                let of_refund = refund.refund_line_items.iter();
                lines.extend(of_refund.map(|line| (merchant, line.identifier.as_str())));
            }
        }
    }
    let orders = orders(publications);
    let [refunds, lines] = [refunds, lines].map(Vec::from_iter);
    store::load_stored(conn, &orders, &refunds, &lines).await
}
