//! `POST /returns_portal_orders`.

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, post, web};
use domain::access::Scope;
use domain::json::FieldError;
use domain::order::{
    OrderMessage, OrderOutcome, OrderPolicy, OrderSnapshot, OrderStored, ReturnsPortalOrderMessage,
};
use platform::http::{ErrorBody, JsonSource, Sequential};
use platform::identity::Caller;
use platform::{ErrorKind, Failure, Problem};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::App;
use crate::write_batch::{Publication, Published};

/// The only supported value of the `Api-Version` header.
const API_VERSION: &str = "3";

/// The result of each order of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PublishedOrders {
    #[schema(example = "2 orders: 1 stored, 1 unchanged")]
    message: String,
    /// In the order of the message.
    orders: Vec<PublishedOrder>,
    /// Amounts that do not add up. The orders are stored anyway.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<FieldError>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PublishedOrder {
    identifier: String,
    result: OrderOutcome,
}

/// Publishes orders.
///
/// Each order is a complete snapshot. The snapshot with the latest `updated_at` wins, and repeating a
/// snapshot changes nothing. A message is stored as a whole or not at all.
#[utoipa::path(
    tag = "orders",
    params(
        ("Api-Version" = String, Header, description = "Always 3", example = "3"),
        ("X-Service-Id" = Option<String>, Header, description = "The merchant; required when the token has none"),
    ),
    request_body = ReturnsPortalOrderMessage,
    responses(
        (status = 200, description = "Every order was processed", body = PublishedOrders),
        (status = 400, description = "The message is malformed", body = ErrorBody),
        (status = 401, description = "The token is missing or invalid", body = ErrorBody),
        (status = 403, description = "The token lacks the required scope", body = ErrorBody),
        (status = 408, description = "The body did not arrive in time", body = ErrorBody),
        (status = 413, description = "The body is larger than 5 MiB", body = ErrorBody),
        (status = 415, description = "The body is not JSON, or its encoding is not supported", body = ErrorBody),
        (status = 422, description = "Some fields are invalid; nothing was stored", body = ErrorBody),
        (status = 503, description = "Temporarily unavailable; see Retry-After", body = ErrorBody),
    ),
    security(("bearer" = [])),
)]
#[post("/returns_portal_orders")]
pub(crate) async fn publish_orders(
    app: web::Data<App>,
    Sequential(caller, (_version, source)): Sequential<Caller, (ApiVersion, JsonSource)>,
) -> Result<web::Json<PublishedOrders>, Problem> {
    let JsonSource { document, bytes, memory } = source;
    caller.require(Scope::Orders)?;
    let merchant = app.merchants.merchant_for(&caller)?;
    let policy = OrderPolicy {
        strict_amounts: merchant.settings.strict_amounts,
        strict_refund_dates: merchant.settings.strict_refund_dates,
    };
    let OrderMessage { snapshots, warnings } = OrderMessage::read(&document, policy)?;
    drop(document);
    let identifiers: Vec<_> = snapshots.iter().map(|it| it.order.identifier.clone()).collect();
    let received_at = app.clock.now();
    let mut orders = Vec::with_capacity(snapshots.len());
    for (snapshot, document) in snapshots.into_iter().zip(order_documents(&bytes)?) {
        let merchant = merchant.identifier.clone();
        let stored = OrderStored { merchant, order: snapshot.order };
        let event = app.outbox.serialize(received_at, &stored)?;
        let snapshot = OrderSnapshot { order: stored.order, ..snapshot };
        orders.push(Published { snapshot, document: document.get().to_owned(), event });
    }
    let merchant = merchant.identifier.clone();
    let publication = Publication { merchant, policy, received_at, orders, _memory: memory };
    let outcomes = app.write_queue.submit(publication).await??;
    let message = summary(&outcomes);
    let orders = identifiers.into_iter().zip(outcomes);
    let orders = orders.map(|(identifier, result)| PublishedOrder { identifier, result });
    Ok(web::Json(PublishedOrders { message, orders: orders.collect(), warnings }))
}

/// The message with the JSON text of each order unchanged.
#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow)]
    returns_portal_order: RawOrders<'a>,
}

#[derive(Deserialize)]
struct RawOrders<'a> {
    #[serde(borrow)]
    orders: Vec<&'a RawValue>,
}

#[derive(Debug, thiserror::Error)]
#[error("a valid message could not be split into its orders")]
struct InvalidRawMessage(#[from] serde_json::Error);

impl Failure for InvalidRawMessage {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Internal
    }
}

fn order_documents(message: &[u8]) -> Result<Vec<&RawValue>, InvalidRawMessage> {
    Ok(serde_json::from_slice::<RawMessage<'_>>(message)?.returns_portal_order.orders)
}

fn summary(outcomes: &[OrderOutcome]) -> String {
    let kinds = [
        (OrderOutcome::Stored, "stored"),
        (OrderOutcome::Unchanged, "unchanged"),
        (OrderOutcome::Stale, "stale"),
    ];
    let counted: Vec<_> = kinds
        .into_iter()
        .map(|(kind, word)| (outcomes.iter().filter(|it| **it == kind).count(), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let orders = if outcomes.len() == 1 { "order" } else { "orders" };
    format!("{} {orders}: {}", outcomes.len(), counted.join(", "))
}

/// Rejects requests without the supported `Api-Version`.
pub(crate) struct ApiVersion;

#[derive(Debug, thiserror::Error)]
#[error("the Api-Version header must be {API_VERSION}")]
struct WrongVersion;

impl Failure for WrongVersion {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}

impl FromRequest for ApiVersion {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let asked = request.headers().get("api-version").and_then(|value| value.to_str().ok());
        let right = asked.is_some_and(|version| version.trim() == API_VERSION);
        std::future::ready(if right { Ok(Self) } else { Err(WrongVersion.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_orders_by_result() {
        use OrderOutcome::{Stale, Stored, Unchanged};
        assert_eq!(summary(&[Stored]), "1 order: 1 stored");
        assert_eq!(
            summary(&[Stale, Stored, Unchanged, Stored]),
            "4 orders: 2 stored, 1 unchanged, 1 stale"
        );
    }
}
