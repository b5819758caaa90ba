//! `POST /v1/policies/preview`: what a draft of a policy would decide.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse, post, web};
use domain::json::{Object, object, parsed, text};
use domain::merchant::{Merchant, Policy, Settings};
use platform::Problem;
use platform::http::{ErrorBody, Json, Sequential};
use platform::identity::Caller;
use serde::Serialize;
use utoipa::ToSchema;

use super::{budgeted_response, readable_merchant};
use crate::App;
use crate::policy_previews::{self, HistoryPreview, OrderPreview};
use crate::returns::listing::read_cursor;

/// A draft of a policy, and what to look at.
#[derive(ToSchema)]
#[schema(as = PolicyPreviewRequest)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct PreviewBody {
    /// The draft. `rules` and `shoppers` each replace those of the merchant.
    policy: Policy,
    /// Look at this order instead of the returns of the last 90 days.
    #[schema(nullable = false, min_length = 1, max_length = 255)]
    order_identifier: Option<String>,
    /// The `next` of the previous response.
    #[schema(nullable = false, max_length = 1000)]
    after: Option<String>,
}

/// The preview of an order, or of returns.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Preview {
    Order(Box<OrderPreview>),
    History(HistoryPreview),
}

/// Preview a policy
///
/// With `order_identifier`, the units of the order under the merchant's policy and under the draft. Without it, the
/// decisions about the returns of the last 90 days, at the times when they were started: at most 2000 in a response. Add
/// up the figures of all responses. A merchant has one preview at a time. Changes nothing.
#[utoipa::path(
    tag = "returns", security(("bearer" = ["returns"]), ("bearer" = ["read"])),
    params(("X-Service-Id" = Option<String>, Header)),
    request_body(content = PreviewBody, example = json!({ "policy": { "rules": [{ "id": "long", "then": { "window": { "days": 60 } } }] } })),
    responses(
        (status = 200, description = "The decisions", body = Preview),
        (status = 429, description = "The merchant has another preview in progress", body = ErrorBody),
    ),
)]
#[post("/v1/policies/preview")]
pub(crate) async fn preview_policy(
    app: web::Data<App>,
    head: HttpRequest,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = readable_merchant(&app, &caller)?;
    let owner = Arc::clone(&merchant);
    let read = object(move |body| read_preview(body, &owner));
    let (draft, order, after) = body.read(read).await?;
    let preview = match order {
        Some(order) => {
            let preview = policy_previews::of_order(&app, &merchant, draft, &order).await?;
            Preview::Order(Box::new(preview))
        }
        None => Preview::History(policy_previews::of_history(&app, &merchant, draft, after).await?),
    };
    budgeted_response(&head, &preview)
}

pub(crate) type Read = (Settings, Option<String>, Option<(platform::Timestamp, String)>);

pub(crate) fn read_preview(body: &Object<'_>, merchant: &Merchant) -> Option<Read> {
    body.reject_unknown(&["policy", "order_identifier", "after"]);
    let Merchant { settings, warehouses, .. } = merchant;
    let draft = body.required("policy", object(|it| settings.with_policy(it, warehouses)));
    let order = body.optional("order_identifier", text(1..=255));
    let after = body.optional("after", parsed(1..=1_000, read_cursor));
    if body.has("order_identifier") && body.has("after") {
        body.invalid("after", "does not come with order_identifier");
    }
    Some((draft?, order?, after?))
}
