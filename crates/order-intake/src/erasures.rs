//! Erasures of shoppers' data: request, show and list.
//!
//! See docs/decisions/erasing-shoppers.md.

use domain::access::MerchantId;
use domain::erasure::EmailDigest;
use domain::json::{Object, array, text};
use platform::database::DatabaseError;
use platform::http::PageLimit;
use platform::{ErrorKind, Failure};
use serde::Serialize;
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
    #[error("database")]
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
            Self::Database(error) => error.kind(),
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
    async fn orders(&self, app: &App, merchant: &MerchantId) -> Result<Vec<String>, ErasureError> {
        let Some(email) = &self.email else { return Ok(self.order_identifiers.clone()) };
        let limit = i64::try_from(MAX_ORDERS + 1).unwrap_or(i64::MAX);
        let mut conn = app.pool.get().await?;
        let of_shopper = store::orders_of_shopper(&mut conn, merchant, email, limit).await?;
        if let Some(other) = self.order_identifiers.iter().find(|it| !of_shopper.contains(it)) {
            return Err(ErasureError::OtherOrder(other.clone()));
        }
        if !self.order_identifiers.is_empty() {
            return Ok(self.order_identifiers.clone());
        }
        if of_shopper.len() > MAX_ORDERS { Err(ErasureError::TooMany) } else { Ok(of_shopper) }
    }
}

/// Lists the orders that a request concerns.
pub(crate) async fn dry_run(
    app: &App,
    merchant: &MerchantId,
    request: &ErasureRequest,
) -> Result<ErasureDryRun, ErasureError> {
    let order_identifiers = request.orders(app, merchant).await?;
    Ok(ErasureDryRun { merchant: merchant.clone(), order_identifiers })
}

/// Stores an erasure, which the eraser then does.
pub(crate) async fn request(
    app: &App,
    merchant: &MerchantId,
    request: &ErasureRequest,
    requested_by: &str,
) -> Result<ErasureDetails, ErasureError> {
    let orders = request.orders(app, merchant).await?;
    // Named orders are not the whole shopper: returns in which the shopper is the giftee stay.
    let is_whole_shopper = request.order_identifiers.is_empty();
    let email = request.email.as_deref().filter(|_| is_whole_shopper).map(EmailDigest::of);
    let new = NewErasure {
        id: Uuid::now_v7(),
        merchant,
        email: email.as_ref(),
        force: request.force,
        force_before: None,
        requested_by,
        orders: &orders,
        at: app.clock.now(),
    };
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| store::insert_erasure(conn, &new).await).await?;
    drop(conn);
    app.new_erasures.notify_one();
    tracing::info!(
        erasure.id = %new.id, %merchant, orders = orders.len(), force = new.force, requested_by,
        "erasure requested"
    );
    show(app, Some(merchant), new.id).await
}

/// Shows an erasure of a merchant, or of any.
pub(crate) async fn show(
    app: &App,
    merchant: Option<&MerchantId>,
    id: Uuid,
) -> Result<ErasureDetails, ErasureError> {
    let mut conn = app.pool.get().await?;
    let found = store::erasures(&mut conn, merchant, Selected::One(id), 1).await?;
    let erasure = found.into_iter().next().ok_or(ErasureError::NoErasure(id))?;
    let confirmations = store::confirmations(&mut conn, id).await?;
    Ok(ErasureDetails {
        erasure: erasure.try_into()?,
        confirmations: confirmations.into_iter().map(Confirmation::from).collect(),
        kept_returns: store::kept_returns(&mut conn, id).await?,
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
