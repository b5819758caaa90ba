//! Look-ups: a shopper names an order and a fact about it, and gets a proof.
//!
//! All failures have the same response after the same work and at least the same time, so that a caller
//! can find out neither which orders exist nor which part of the input was right.

use std::net::IpAddr;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::erasure::is_erased;
use domain::json::{Object, text};
use domain::merchant::{LookupKey, Merchant};
use platform::database::{DatabaseError, Pool, delete_older_than};
use platform::limits::network;
use platform::shopper_proof::{ProvenOrder, is_same_secret};
use platform::{Process, Timestamp, chain};
use serde::Serialize;
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;

use crate::App;
use crate::error::Error;
use crate::store::deep_links;
use crate::store::lookups::{self as store, Attempt, Limits, StoredFacts};

/// Failures count for this long.
const FAILURE_PERIOD: TimeDelta = TimeDelta::hours(1);
const CLEAN_UP_INTERVAL: Duration = Duration::from_secs(600);
const KEYS: [&str; 3] = ["email", "zip_code", "gift_code"];

/// The input of a shopper.
#[derive(Debug, Clone)]
pub(crate) enum Lookup {
    Order { order_identifier: String, key: OrderFact },
    DeepLink(String),
}

/// The fact about the order that the shopper knows.
#[derive(Debug, Clone)]
pub(crate) enum OrderFact {
    Email(String),
    ZipCode(String),
    GiftCode(String),
}

/// The proof that a shopper knows an order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Proof {
    /// The value for the header `X-Shopper-Proof`.
    proof: String,
    order_identifier: String,
    /// Whether the shopper is the giftee. A giftee sees no amounts and can choose no refund.
    is_gift: bool,
    expires_at: DateTime<Utc>,
}

impl Lookup {
    pub(crate) fn read(body: &Object<'_>) -> Option<Self> {
        body.reject_unknown(&[&KEYS[..], &["order_identifier", "deep_link"]].concat());
        if body.has("deep_link") {
            for other in KEYS.into_iter().chain(["order_identifier"]).filter(|it| body.has(it)) {
                body.invalid(other, "does not come with deep_link");
            }
            return body.required("deep_link", text(1..=4_096)).map(Self::DeepLink);
        }
        let order_identifier = body.required("order_identifier", text(1..=255));
        let mut given = KEYS.into_iter().filter(|key| body.has(key));
        let Some(name) = given.next() else {
            body.missing("email");
            return None;
        };
        for other in given {
            body.invalid(other, format!("does not come with {name}"));
        }
        let fact = body.required(name, text(1..=255))?;
        let key = match name {
            "email" => OrderFact::Email(fact),
            "zip_code" => OrderFact::ZipCode(fact),
            _ => OrderFact::GiftCode(fact),
        };
        Some(Self::Order { order_identifier: order_identifier?.trim().to_owned(), key })
    }
}

/// Returns a proof if the input is right. `address` is the shopper's.
pub(crate) async fn look_up(
    app: &App,
    merchant: &Merchant,
    address: IpAddr,
    lookup: &Lookup,
) -> Result<Proof, Error> {
    let started_at = Instant::now();
    let found = try_look_up(app, merchant, address, lookup).await;
    if matches!(found, Err(Error::LookupFailed)) {
        sleep_until(started_at + app.lookups.min_failure_latency).await;
    }
    found
}

async fn try_look_up(
    app: &App,
    merchant: &Merchant,
    address: IpAddr,
    lookup: &Lookup,
) -> Result<Proof, Error> {
    let id = &merchant.identifier;
    let mut conn = app.pool.get().await?;
    let named = named_order(&mut conn, app, id, lookup).await?;
    let address = network(address).to_string();
    let at = app.clock.now();
    let order_identifier = named.as_ref().map(|named| named.order_identifier.as_str());
    let attempt = Attempt { merchant: id, order_identifier, address: &address, at };
    let limits = Limits {
        since: at - FAILURE_PERIOD,
        of_order: app.lookups.order_failures_per_hour.get(),
        of_address: app.lookups.address_failures_per_hour.get(),
    };
    // Nobody can guess a deep link, so the failures of others do not make its shopper wait.
    let is_link = matches!(lookup, Lookup::DeepLink(_)) && named.is_some();
    let position = store::insert(&mut conn, &attempt).await?;
    let found = store::find(&mut conn, &attempt, position, &limits).await?;
    if let Some(since) = found.limited_since.filter(|_| !is_link) {
        store::delete(&mut conn, position).await?;
        let wait = (since + FAILURE_PERIOD - at).to_std().unwrap_or_default();
        return Err(Error::TooManyLookups(wait));
    }
    let named = named.filter(|named| is_right(app, merchant, lookup, named, found.facts.as_ref()));
    let Some(NamedOrder { order_identifier, is_gift }) = named else {
        return Err(Error::LookupFailed);
    };
    store::delete(&mut conn, position).await?;
    let (proof, expires_at) = app.proof_keys.issue(id, &order_identifier, is_gift)?;
    Ok(Proof { proof, order_identifier, is_gift, expires_at })
}

/// The order that a look-up is about.
struct NamedOrder {
    order_identifier: String,
    is_gift: bool,
}

/// `None` for a deep link that does not open, was revoked or has no record. Its failure does not count for
/// the order, so that an old link cannot make the shopper wait.
async fn named_order(
    conn: &mut AsyncPgConnection,
    app: &App,
    merchant: &MerchantId,
    lookup: &Lookup,
) -> Result<Option<NamedOrder>, Error> {
    match lookup {
        Lookup::DeepLink(token) => {
            let Some(link) = app.proof_keys.open_deep_link(merchant, token) else {
                return Ok(None);
            };
            let is_valid = deep_links::is_valid(conn, merchant, link.id).await?;
            let ProvenOrder { order_identifier, is_gift, .. } = link.order;
            Ok(is_valid.then_some(NamedOrder { order_identifier, is_gift }))
        }
        Lookup::Order { order_identifier: typed, key } => {
            let spellings = spellings(typed);
            let known = store::known_identifier(conn, merchant, &spellings).await?;
            let order_identifier = known.unwrap_or_else(|| typed.clone());
            let is_gift = matches!(key, OrderFact::GiftCode(_));
            Ok(Some(NamedOrder { order_identifier, is_gift }))
        }
    }
}

/// The identifiers that a shopper may mean, best first: shops print `#` before a number, and shoppers do not
/// care about capitals.
fn spellings(typed: &str) -> Vec<String> {
    let plain = typed.trim_start_matches('#').trim();
    let mut spellings = vec![typed.to_owned()];
    for text in [plain.to_owned(), format!("#{plain}")] {
        spellings.extend([text.to_uppercase(), text.to_lowercase(), text]);
    }
    spellings
}

/// Compares the input with the order. An order that does not exist costs the same comparison.
fn is_right(
    app: &App,
    merchant: &Merchant,
    lookup: &Lookup,
    named: &NamedOrder,
    facts: Option<&StoredFacts>,
) -> bool {
    let allowed = &merchant.settings.appearance.lookup_keys;
    let (is_allowed, is_same) = match lookup {
        Lookup::DeepLink(_) => (true, true),
        Lookup::Order { key: OrderFact::Email(given), .. } => {
            let email = facts.and_then(|it| it.customer.email_address());
            (allowed.contains(&LookupKey::Email), is_same(given, email, normalized_email))
        }
        Lookup::Order { key: OrderFact::ZipCode(given), .. } => {
            let zip_code = facts.and_then(StoredFacts::zip_code);
            (allowed.contains(&LookupKey::ZipCode), is_same(given, zip_code, normalized_zip_code))
        }
        Lookup::Order { key: OrderFact::GiftCode(code), .. } => {
            let order = &named.order_identifier;
            (true, app.proof_keys.is_gift_code(&merchant.identifier, order, code))
        }
    };
    facts.is_some() && is_allowed && is_same
}

/// The placeholder of an erased fact proves nothing.
fn is_same(given: &str, stored: Option<&str>, normalized: fn(&str) -> String) -> bool {
    let stored = stored.filter(|fact| !is_erased(fact));
    let given = normalized(given);
    let stored = normalized(stored.unwrap_or_default());
    is_same_secret(&given, &stored) && !given.is_empty()
}

fn normalized_email(email: &str) -> String {
    email.trim().to_lowercase()
}

fn normalized_zip_code(code: &str) -> String {
    let letters = code.chars().filter(|letter| !letter.is_whitespace() && *letter != '-');
    letters.flat_map(char::to_uppercase).collect()
}

impl StoredFacts {
    /// The zip code of the shipping address, else of the billing address.
    fn zip_code(&self) -> Option<&str> {
        let codes = [&self.shipping_address.zip_code, &self.billing_address.zip_code];
        codes.into_iter().flatten().map(String::as_str).find(|code| !code.trim().is_empty())
    }
}

/// Starts the task that deletes failures that no longer count, and records of expired deep links.
pub(crate) fn start_clean_up(process: &Process) {
    let pool = process.pool.clone();
    let clock = process.clock.clone();
    process.tasks.spawn_interval("look-up failures", CLEAN_UP_INTERVAL, move || {
        let pool = pool.clone();
        let now = clock.now();
        async move {
            if let Err(error) = delete_expired(&pool, now).await {
                tracing::warn!(error = chain(&error), "deleting look-up failures failed");
            }
        }
    });
}

pub(crate) async fn delete_expired(pool: &Pool, now: Timestamp) -> Result<(), DatabaseError> {
    crate::shoppers::deep_links::delete_expired(pool, now).await?;
    delete_older_than(pool, "lookup_failures", "at", now, FAILURE_PERIOD).await
}

#[cfg(test)]
mod tests {
    use domain::erasure::{ERASED, ERASED_EMAIL};

    use super::*;

    #[test]
    fn the_typed_identifier_comes_first() {
        let spellings = spellings("#a-1");
        assert_eq!(spellings.first().map(String::as_str), Some("#a-1"));
        for other in ["A-1", "a-1", "#A-1"] {
            assert!(spellings.iter().any(|spelling| spelling == other), "{other}");
        }
    }

    #[test]
    fn the_placeholder_of_an_erased_fact_proves_nothing() {
        assert!(is_same(" Ada@mail.example", Some("ada@mail.example"), normalized_email));
        assert!(!is_same(ERASED_EMAIL, Some(ERASED_EMAIL), normalized_email));
        assert!(is_same("ec1a 1bb", Some("EC1A1BB"), normalized_zip_code));
        assert!(!is_same(ERASED, Some(ERASED), normalized_zip_code));
    }
}
