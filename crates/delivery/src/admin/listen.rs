//! Sends copies of a merchant's new messages to a listener, for example `backhaul listen`.
//!
//! A request waits until there are messages, up to a limit. Without listeners nothing is read.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, get, web};
use chrono::{DateTime, TimeDelta, Utc};
use domain::access::{MerchantId, Scope};
use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use platform::http::{ErrorBody, Query, reserve_for_response};
use platform::identity::{Access, Caller};
use platform::{Problem, Timestamp, signing};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::access::readable_merchant;
use super::{Error, parse_merchant};
use crate::Deliveries;
use crate::attempt::{MessageFacts, derived_headers};
use crate::engine::Engine;
use crate::store::{self, StoredMessage, min_id_at};

const MAX_WAIT_SECONDS: u64 = 20;
const POLL_INTERVAL: Duration = Duration::from_millis(500);
const MAX_MESSAGES: i64 = 10;
/// An id is older than the commit of its message. A message that is committed later than this is not
/// copied.
const COMMIT_DELAY: TimeDelta = TimeDelta::seconds(1);
/// A listener that was away for longer starts again. Older messages are not signed again for anybody.
const MAX_AGE: TimeDelta = TimeDelta::minutes(10);

/// The merchant and the position of a listener.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListenQuery {
    /// The merchant, for a token without one.
    merchant: Option<String>,
    /// The `next` of the previous response, at most ten minutes old. Without it the response has no messages,
    /// and a `next` for the messages from now on.
    after: Option<Uuid>,
    /// Seconds to wait for a message, up to 20.
    #[serde(default)]
    #[param(maximum = 20)]
    wait: u64,
}

/// A copy of a message. For a caller with the scope `manage` or `replay` it is signed like a request to the
/// merchant's endpoint.
#[derive(Serialize, ToSchema)]
pub(crate) struct MessageCopy {
    /// The `webhook-id`.
    id: Uuid,
    kind: String,
    #[schema(example = "rma.created")]
    event: String,
    created_at: DateTime<Utc>,
    /// The headers that do not depend on the settings of the endpoint. The timestamp is that of the copy.
    /// Without an endpoint, or without the scope `manage` or `replay`, there is no signature.
    headers: BTreeMap<String, String>,
    body: String,
}

/// New messages of a merchant, oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewMessages {
    messages: Vec<MessageCopy>,
    /// Pass as `after` to get the messages that follow.
    next: Uuid,
}

/// Listen for messages
///
/// Copies of the messages that a merchant gets from now on, at most ten at a time. The request waits until
/// there is one. Copies are for development: a message may be missing, and a copy says nothing about its
/// delivery.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])), params(ListenQuery),
    responses((status = 200, body = NewMessages), (status = 404, body = ErrorBody))
)]
#[get("/v1/messages")]
pub(crate) async fn listen_for_messages(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: Query<ListenQuery>,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let engine = &deliveries.0;
    let requested = parse_merchant(query.merchant.as_deref())?;
    let merchant = readable_merchant(&caller, requested)?.ok_or(Access::NoMerchant)?;
    if engine.merchants.get(&merchant).is_none() {
        return Err(Error::NoMerchant(merchant.to_string()).into());
    }
    let now = engine.clock.now();
    // A position is an id. Ids begin with their time, so the smallest id of a time is the position of that time.
    let Some(from) = query.after else {
        let next = min_id_at(now - COMMIT_DELAY);
        tracing::info!(%merchant, by = caller.actor(), "{} listens for messages of {merchant}", caller.actor());
        return Ok(HttpResponse::Ok().json(NewMessages { messages: Vec::new(), next }));
    };
    if from < min_id_at(now - MAX_AGE) {
        return Err(Error::ListenerTooOld.into());
    }
    let _permit = engine.listeners.try_acquire(&merchant).ok_or(Error::TooManyListeners)?;
    let wait = Duration::from_secs(query.wait.min(MAX_WAIT_SECONDS));
    let MessagesRead { messages, next } = wait_for_messages(engine, &merchant, from, wait).await?;
    reserve_for_response(&request, messages.iter().map(|message| message.body.len()).sum())?;
    let now = engine.clock.now();
    // A signed message can be posted to the endpoint, which is the right to replay.
    let signer = caller.require_any(&[Scope::Manage, Scope::Replay]).is_ok().then_some(&**engine);
    let copy = |message| MessageCopy::new(signer, &merchant, message, now);
    let messages = messages.into_iter().map(copy).collect();
    Ok(HttpResponse::Ok().json(NewMessages { messages, next }))
}

/// Messages of a merchant, and the first id that was not read.
struct MessagesRead {
    messages: Vec<StoredMessage>,
    next: Uuid,
}

/// Reads the messages from this id on, as soon as there are any.
async fn wait_for_messages(
    engine: &Engine,
    merchant: &MerchantId,
    from: Uuid,
    wait: Duration,
) -> Result<MessagesRead, Problem> {
    let deadline = Instant::now() + wait;
    loop {
        let until = min_id_at(engine.clock.now() - COMMIT_DELAY).max(from);
        let mut conn = engine.pool.get().await?;
        let messages =
            store::messages_between(&mut conn, merchant.as_str(), (from, until), MAX_MESSAGES);
        let messages = messages.await?;
        // A waiting listener holds no connection.
        drop(conn);
        let is_full = i64::try_from(messages.len()).is_ok_and(|count| count == MAX_MESSAGES);
        if let Some(last) = messages.last() {
            // A full page ends at its last message; more may follow before `until`.
            let after_last = Uuid::from_u128(last.id.as_u128().saturating_add(1));
            let next = if is_full { after_last } else { until };
            return Ok(MessagesRead { messages, next });
        }
        if Instant::now() + POLL_INTERVAL > deadline || engine.health.is_draining() {
            return Ok(MessagesRead { messages, next: until });
        }
        sleep(POLL_INTERVAL).await;
    }
}

impl MessageCopy {
    /// The signer signs the copy; without one there is no signature.
    fn new(
        signer: Option<&Engine>,
        merchant: &MerchantId,
        message: StoredMessage,
        now: Timestamp,
    ) -> Self {
        let id = message.id.to_string();
        let facts = MessageFacts {
            id: &id,
            merchant: merchant.as_str(),
            event: &message.event,
            sequence: message.sequence,
            body_bytes: message.body.len(),
        };
        let mut headers: BTreeMap<_, _> = derived_headers(&facts, now).into_iter().collect();
        // The listener's HTTP client sets it.
        headers.remove("content-length");
        let traceparent = message.traceparent;
        headers.extend(traceparent.map(|parent| ("traceparent".to_owned(), parent)));
        headers.insert("x-service-api-version".to_owned(), message.version.to_string());
        if let Ok(kind) = message.kind.parse::<MessageKind>() {
            let interface = Interface::Message(kind);
            let resolved =
                signer.and_then(|it| it.endpoints.find(merchant.as_str(), interface, now).ok());
            let secrets = resolved.as_ref().map_or(&[][..], |it| it.endpoint.secrets());
            if !secrets.is_empty() {
                let signature = signing::sign(secrets, &id, now, &message.body);
                headers.insert(signing::SIGNATURE_HEADER.to_owned(), signature);
            }
        }
        Self {
            id: message.id,
            kind: message.kind,
            event: message.event,
            created_at: message.created_at,
            headers,
            body: String::from_utf8_lossy(&message.body).into_owned(),
        }
    }
}
