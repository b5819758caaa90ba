//! Lists and shows label requests, and applies the labels that providers report.

use api::labels::LabelRequestView;
use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::labels::LabelRequested;
use platform::http::PageLimit;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::responses::{self, Provider, Response};
use crate::App;
use crate::error::Error;
use crate::store::label_request_search::{self, LabelRequestSearch};

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
            let provider = Provider { actor, now: app.clock.now() };
            let locked = (&mut rma, &request);
            responses::apply(&app.deliveries, conn, locked, response, provider).await?;
            show(conn, Some(&merchant), id).await
        })
        .await
}

/// Shows a request, of the merchant if one is given.
pub(crate) async fn show(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    id: Uuid,
) -> Result<LabelRequestDetails, Error> {
    let found = label_request_search::show(conn, merchant, id).await?;
    let view = found.ok_or(Error::NoLabelRequest(id))?;
    let body = Deliveries::body(conn, id).await?;
    let message = body.map(|body| serde_json::from_slice(&body)).transpose()?;
    Ok(LabelRequestDetails { view, message })
}
