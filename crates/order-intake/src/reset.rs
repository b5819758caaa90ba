//! Resets an order whose stored snapshot has an `updated_at` in the future, so that the merchant's next
//! snapshot is not stale.

use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::json::{Document, ParseError, ValidationError};
use domain::order::{Order, OrderMessage, OrderPolicy, OrderStored};
use platform::database::DatabaseError;
use platform::{ErrorKind, Failure, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::App;
use crate::store::{self, OrderReset};

/// An order whose next snapshot is stored, whatever its `updated_at` is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResetOrder {
    merchant: MerchantId,
    identifier: String,
    /// The time in the future that the order had.
    previous_updated_at: DateTime<Utc>,
    /// The time that the stored snapshot has now.
    updated_at: DateTime<Utc>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ResetError {
    #[error("there is no order {0}")]
    NoSuchOrder(String),
    #[error(
        "order {identifier} is not stuck: its updated_at {} is not in the future, so a newer snapshot is \
         stored",
        .updated_at.format("%Y-%m-%dT%H:%M:%SZ")
    )]
    NotStuck { identifier: String, updated_at: Timestamp },
    #[error("the stored document is not JSON")]
    Malformed(#[from] ParseError),
    #[error("the stored document is not an order")]
    Invalid(#[from] ValidationError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<diesel::result::Error> for ResetError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error.into())
    }
}

impl Failure for ResetError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSuchOrder(_) => ErrorKind::Missing,
            Self::NotStuck { .. } => ErrorKind::Conflict,
            Self::Malformed(_) | Self::Invalid(_) => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }
}

/// Gives the stored snapshot the time of the order's creation, and publishes it again for the services
/// that have its old time.
pub(crate) async fn reset(
    app: &App,
    merchant: &MerchantId,
    identifier: String,
    actor: &str,
) -> Result<ResetOrder, ResetError> {
    let now = app.clock.now();
    // PostgreSQL text cannot contain NUL.
    if identifier.contains('\0') {
        return Err(ResetError::NoSuchOrder(identifier));
    }
    let (previous_updated_at, updated_at) = app
        .pool
        .transaction_of(merchant.as_str(), async |conn| {
            let stored = store::lock_order(conn, merchant, &identifier).await?;
            let stored = stored.ok_or_else(|| ResetError::NoSuchOrder(identifier.clone()))?;
            let previous_updated_at = stored.updated_at;
            if previous_updated_at <= now {
                let identifier = identifier.clone();
                let updated_at = previous_updated_at;
                return Err(ResetError::NotStuck { identifier, updated_at });
            }
            let updated_at = stored.created_at.min(stored.received_at);
            let reset = OrderReset { actor, previous_updated_at, updated_at, at: now };
            store::reset_order(conn, merchant, &identifier, &reset).await?;
            let order = read(&stored.document, previous_updated_at)?;
            let merchant = merchant.clone();
            let event = order.map(|order| OrderStored {
                merchant,
                order: Order { updated_at, ..order },
                is_reset: true,
            });
            app.outbox.append(conn, now, event).await?;
            Ok((previous_updated_at, updated_at))
        })
        .await?;
    tracing::info!(%merchant, order = identifier, actor, %previous_updated_at, "order reset");
    Ok(ResetOrder { merchant: merchant.clone(), identifier, previous_updated_at, updated_at })
}

/// Reads a stored document as it was read at `now`.
fn read(document: &str, now: Timestamp) -> Result<Option<Order>, ResetError> {
    let message = format!("{{\"returns_portal_order\":{{\"orders\":[{document}]}}}}");
    let message = Document::parse(message.as_bytes())?;
    let message = OrderMessage::read(&message, OrderPolicy::default(), now)?;
    Ok(message.snapshots.into_iter().map(|snapshot| snapshot.order).next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_database_names_the_limit() {
        testkit::check_database_refusals::<ResetError>();
    }
}
