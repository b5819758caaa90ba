//! Publications with orders that another transaction has locked. Their requests store them, in turns, while the
//! writer goes on.

use messaging::Outbox;
use platform::batching::{JobQueue, SubmitError};
use platform::database::Pool;

use super::metrics::Metrics;
use super::publish_error::PublishResult;
use super::save::{orders, write_checked};
use super::{SINGLE_RETRIES, WriteResult};
use crate::store::{self, WriteError};
use crate::write_batch::Publication;

/// Stores a publication with others, or alone if one of its orders is locked. Returns the publication too.
pub(crate) async fn store(
    queue: &JobQueue<Publication, WriteResult>,
    pool: &Pool,
    outbox: &Outbox,
    publication: Publication,
) -> Result<(Publication, PublishResult), SubmitError> {
    let (publication, result) = queue.submit(publication).await?;
    let result = match result {
        Some(result) => result,
        None => store_alone(pool, outbox, &publication).await,
    };
    Ok((publication, result))
}

async fn store_alone(pool: &Pool, outbox: &Outbox, publication: &Publication) -> PublishResult {
    let publications = [publication];
    let orders = orders(&publications);
    for _ in 0..SINGLE_RETRIES {
        let stored = pool.transaction_of(publication.merchant.as_str(), async |conn| {
            store::lock_orders(conn, &orders).await?;
            write_checked(conn, outbox, &publications).await
        });
        match stored.await {
            Err(WriteError::Conflict) => {}
            Err(error) => return Err(error.into()),
            Ok(results) => {
                Metrics::new().record_batch(&results);
                return results.into_iter().collect::<Result<Vec<_>, _>>().map(|it| it.concat());
            }
        }
    }
    Err(WriteError::Conflict.into())
}
