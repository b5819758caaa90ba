//! Lists and shows label requests, and applies the labels that providers report.

use api::labels::LabelRequestView;
use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::labels::LabelRequested;
use platform::http::PageLimit;
use platform::sealing::Sealer;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::responses::{self, Provider, Response};
use super::sealed::open_code;
use crate::App;
use crate::error::Error;
use crate::store::label_request_search::{self, LabelRequestSearch};
use crate::store::label_requests;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LabelRequests {
    /// Newest first.
    label_requests: Vec<LabelRequestView>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A label request with its message to the provider.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LabelRequest)]
pub(crate) struct LabelRequestDetails {
    #[serde(flatten)]
    view: LabelRequestView,
    /// The text of the QR code that the carrier scans on the shopper's screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    qr_code: Option<String>,
    /// The message to the provider. Absent when the history of messages does not reach back so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<LabelRequested>)]
    message: Option<Box<RawValue>>,
}

pub(crate) async fn list(
    conn: &mut AsyncPgConnection,
    wanted: &LabelRequestSearch,
    limit: PageLimit,
) -> Result<LabelRequests, Error> {
    let (mut label_requests, is_truncated) =
        label_request_search::search(conn, wanted, limit.rows()).await?;
    let cursor = |last: &LabelRequestView| last.label_request_id.to_string();
    let next = limit.next_of(&mut label_requests, is_truncated, cursor);
    Ok(LabelRequests { label_requests, next })
}

/// Applies the label or the refusal that a provider reports, like a response to the message.
#[tracing::instrument(skip_all, fields(label_request = %id))]
pub(crate) async fn report(
    app: &App,
    merchant: Option<&MerchantId>,
    actor: &str,
    id: Uuid,
    response: &Response,
) -> Result<LabelRequestDetails, Error> {
    let missing = || Error::NoLabelRequest(id);
    let found = {
        let mut conn = app.pool.get().await?;
        label_request_search::show(&mut conn, merchant, id).await?
    };
    let merchant = found.ok_or_else(missing)?.merchant;
    app.pool
        .transaction_of(merchant.as_str(), async |conn| {
            let locked = super::lock(conn, &merchant, id).await?;
            let (mut rma, request) = locked.ok_or_else(missing)?;
            let provider = Provider { actor, sealer: &app.sealer, now: app.clock.now() };
            let locked = (&mut rma, &request);
            responses::apply(&app.deliveries, conn, locked, response, provider).await?;
            show(conn, &app.sealer, Some(&merchant), id).await
        })
        .await
}

/// Shows a request, of the merchant if one is given.
pub(crate) async fn show(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    merchant: Option<&MerchantId>,
    id: Uuid,
) -> Result<LabelRequestDetails, Error> {
    let found = label_request_search::show(conn, merchant, id).await?;
    let view = found.ok_or(Error::NoLabelRequest(id))?;
    let qr_code = qr_code(conn, sealer, &view).await?;
    let body = Deliveries::body(conn, id).await?;
    let message = body.map(|body| serde_json::from_slice(&body)).transpose()?;
    Ok(LabelRequestDetails { view, qr_code, message })
}

/// The text of the code of a request, if it has one.
pub(crate) async fn qr_code(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    view: &LabelRequestView,
) -> Result<Option<String>, Error> {
    let (merchant, id) = (&view.merchant, view.label_request_id);
    if !view.has_qr_code {
        return Ok(None);
    }
    let sealed = label_requests::sealed_code(conn, merchant, id).await?;
    let code = sealed.map(|sealed| open_code(sealer, merchant, id, &sealed)).transpose()?;
    Ok(code)
}
