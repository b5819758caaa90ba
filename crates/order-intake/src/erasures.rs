//! Erasures of shoppers' data: request, show and list.
//!
//! See docs/decisions/erasing-shoppers.md.

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::erasure::EmailDigest;
use domain::json::{Digest, FieldError, Object, ValidationError, array, text};
use platform::database::DatabaseError;
use platform::http::PageLimit;
use platform::idempotency::{self, KeyHeader};
use platform::{ErrorKind, Failure};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::App;
use crate::erasure_view::{Confirmation, Erasure, ErasureDetails, Erasures};
use crate::store::{self, NewErasure, Selected};

/// Orders of one erasure.
const MAX_ORDERS: usize = 10_000;
/// Orders that a request can name.
const MAX_NAMED: usize = 1000;

/// A request to erase a shopper's data. It names the shopper, orders, or some of the shopper's orders.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErasureRequest {
    /// The shopper's e-mail address, case-insensitive. It is not stored.
    #[schema(required = false, min_length = 3, max_length = 255)]
    email: Option<String>,
    /// Only these orders.
    #[schema(required = false, min_items = 1, max_items = 1000)]
    order_identifiers: Vec<String>,
    /// Erase the data of open returns too.
    #[schema(required = false, default = false)]
    force: bool,
    /// List the orders, and erase nothing.
    #[schema(required = false, default = false)]
    pub(crate) dry_run: bool,
}

/// The orders that an erasure would concern.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErasureDryRun {
    merchant: MerchantId,
    order_identifiers: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ErasureError {
    #[error("there is no erasure {0}")]
    NoErasure(Uuid),
    #[error("order {0} is not one of the shopper's orders")]
    OtherOrder(String),
    #[error("the shopper has more than {MAX_ORDERS} orders: name some of them")]
    TooMany,
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    #[error("JSON conversion failed")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<diesel::result::Error> for ErasureError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error.into())
    }
}

impl Failure for ErasureError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoErasure(_) | Self::OtherOrder(_) => ErrorKind::Missing,
            Self::TooMany => ErrorKind::Conflict,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Json(_) => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }

    fn fields(&self) -> &[FieldError] {
        match self {
            Self::Invalid(error) => error.fields(),
            _ => &[],
        }
    }
}

impl ErasureRequest {
    pub(crate) fn read(body: &Object<'_>) -> Option<Self> {
        body.reject_unknown(&["email", "order_identifiers", "force", "dry_run"]);
        let email = body.optional("email", text(3..=255));
        let orders = body.optional("order_identifiers", array(1..=MAX_NAMED, text(1..=255)));
        if !body.has("email") && !body.has("order_identifiers") {
            body.missing("email");
        }
        let force = body.flag("force");
        let dry_run = body.flag("dry_run");
        let mut orders = orders?.unwrap_or_default();
        orders.sort_unstable();
        orders.dedup();
        Some(Self {
            email: email?.map(|email| email.trim().to_lowercase()),
            order_identifiers: orders,
            force: force?,
            dry_run: dry_run?,
        })
    }

    /// The orders to erase. Orders that only other services know can be named too.
    async fn orders(
        &self,
        conn: &mut AsyncPgConnection,
        merchant: &MerchantId,
    ) -> Result<Vec<String>, ErasureError> {
        let Some(email) = &self.email else { return Ok(self.order_identifiers.clone()) };
        let limit = i64::try_from(MAX_ORDERS + 1).unwrap_or(i64::MAX);
        let of_shopper = store::orders_of_shopper(conn, merchant, email, limit).await?;
        if let Some(other) = self.order_identifiers.iter().find(|it| !of_shopper.contains(it)) {
            return Err(ErasureError::OtherOrder(other.clone()));
        }
        if !self.order_identifiers.is_empty() {
            return Ok(self.order_identifiers.clone());
        }
        if of_shopper.len() > MAX_ORDERS { Err(ErasureError::TooMany) } else { Ok(of_shopper) }
    }

    /// The shopper, if all orders are erased. Named orders are not the whole shopper: returns in which the shopper is
    /// the giftee stay.
    fn whole_shopper(&self) -> Option<EmailDigest> {
        let email = self.email.as_deref().filter(|_| self.order_identifiers.is_empty());
        email.map(EmailDigest::of)
    }
}

/// Lists the orders that a request concerns.
pub(crate) async fn dry_run(
    app: &App,
    merchant: &MerchantId,
    request: &ErasureRequest,
) -> Result<ErasureDryRun, ErasureError> {
    let order_identifiers = request.orders(&mut *app.pool.get().await?, merchant).await?;
    Ok(ErasureDryRun { merchant: merchant.clone(), order_identifiers })
}

/// Stores an erasure, which the eraser then does. A request with a key that was used gets the first erasure, also if
/// it writes the e-mail address or the orders in another way.
pub(crate) async fn request(
    app: &App,
    merchant: &MerchantId,
    header: &KeyHeader,
    request: &ErasureRequest,
    requested_by: &str,
) -> Result<String, ErasureError> {
    let id = Uuid::now_v7();
    let now = app.clock.now();
    let key = header.key_for(merchant, "erasures", Digest::of_value(&json!(request)));
    let mut conn = app.pool.get().await?;
    let response = conn
        .transaction(async |conn| {
            idempotency::run(conn, key.as_ref(), now, async |conn| {
                let orders = request.orders(conn, merchant).await?;
                let email = request.whole_shopper();
                let new = NewErasure {
                    id,
                    merchant,
                    email: email.as_ref(),
                    force: request.force,
                    force_before: None,
                    requested_by,
                    orders: &orders,
                    at: now,
                };
                store::insert_erasure(conn, &new).await?;
                tracing::info!(
                    erasure.id = %id, %merchant, orders = orders.len(), force = new.force,
                    requested_by, "erasure requested"
                );
                details(conn, Some(merchant), id).await
            })
            .await
        })
        .await?;
    app.new_erasures.notify_one();
    Ok(response)
}

/// Shows an erasure of a merchant, or of any.
pub(crate) async fn show(
    app: &App,
    merchant: Option<&MerchantId>,
    id: Uuid,
) -> Result<ErasureDetails, ErasureError> {
    details(&mut *app.pool.get().await?, merchant, id).await
}

async fn details(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    id: Uuid,
) -> Result<ErasureDetails, ErasureError> {
    let found = store::erasures(conn, merchant, Selected::One(id), 1).await?;
    let erasure = found.into_iter().next().ok_or(ErasureError::NoErasure(id))?;
    let confirmations = store::confirmations(conn, id).await?;
    Ok(ErasureDetails {
        erasure: erasure.try_into()?,
        confirmations: confirmations.into_iter().map(Confirmation::from).collect(),
        kept_returns: store::kept_returns(conn, id).await?,
    })
}

/// Lists erasures, newest first.
pub(crate) async fn list(
    app: &App,
    merchant: Option<&MerchantId>,
    after: Option<Uuid>,
    limit: PageLimit,
) -> Result<Erasures, ErasureError> {
    let mut conn = app.pool.reader(merchant.map(MerchantId::as_str)).await?;
    let selected = Selected::Before(after);
    let mut found = store::erasures(&mut conn, merchant, selected, limit.rows()).await?;
    let next = limit.next(&mut found, |row| row.id.to_string());
    let erasures: Result<_, DatabaseError> = found.into_iter().map(Erasure::try_from).collect();
    Ok(Erasures { erasures: erasures?, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_database_names_the_limit() {
        testkit::check_database_refusals::<ErasureError>();
    }
}
