//! Variants of merchants' products, requested from the merchant and cached for a few seconds.
//!
//! Invariants: a lookup ends within the timeout, with variants or with the reason that there are none;
//! concurrent lookups of one product share one request to the merchant.
//!
//! See docs/decisions/variants.md.

mod breaker;
mod offer;
mod unavailable;

use std::sync::Arc;

use delivery::Deliveries;
use delivery::attempt::{Attempt, Query};
use delivery::endpoint::Endpoint;
use delivery::outcome::{Jitter, Outcome};
use domain::access::MerchantId;
use domain::exchange::{VariantIdentifier, Variants};
use domain::merchant::{Interface, Merchant};
use moka::future::Cache;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;
use platform::{Clock, Timestamp, chain, telemetry};
use tokio::time::{Duration, Instant, timeout_at};

use crate::settings;
use breaker::Breakers;
pub(crate) use offer::{Offer, OfferView};
pub(crate) use unavailable::{Reason, Unavailable};

/// A request to the merchant ends this long before the timeout, so that the response is in time.
const TIMEOUT_MARGIN: Duration = Duration::from_millis(100);

/// The key has the merchant's version, so that a changed merchant gets a new request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    merchant: MerchantId,
    version: i64,
    product: VariantIdentifier,
}

pub(crate) struct VariantCache {
    deliveries: Deliveries,
    clock: Clock,
    settings: settings::Variants,
    cache: Cache<Key, Arc<Offer>>,
    breakers: Breakers,
    lookups: Counter<u64>,
    requests: Counter<u64>,
}

impl VariantCache {
    pub(crate) fn new(deliveries: Deliveries, clock: Clock, settings: settings::Variants) -> Self {
        let meter = telemetry::meter();
        Self {
            deliveries,
            clock,
            cache: Cache::builder()
                .max_capacity(settings.cache_max_bytes)
                .weigher(|_, offer: &Arc<Offer>| offer.weight())
                .time_to_live(settings.cache_ttl)
                .build(),
            breakers: Breakers::new(&settings),
            settings,
            lookups: meter
                .u64_counter("variant_lookups")
                .with_description(
                    "Variant lookups by result: cached, requested or the reason for none",
                )
                .build(),
            requests: meter
                .u64_counter("variant_requests")
                .with_description("Requests for variants to merchants by outcome")
                .build(),
        }
    }

    /// Returns the variants of a product from the cache or from the merchant.
    pub(crate) async fn get(
        &self,
        merchant: &Merchant,
        product: &VariantIdentifier,
    ) -> Result<Arc<Offer>, Unavailable> {
        let key = Key::new(merchant, product);
        if let Some(offer) = self.cache.get(&key).await {
            self.count("cached");
            return Ok(offer);
        }
        let fetched = self.fetch_shared(key, merchant).await;
        self.count(fetched.as_ref().map_or_else(|none| none.reason.as_str(), |_| "requested"));
        fetched
    }

    /// Returns variants that were requested at `moment` or later.
    ///
    /// Two offers may be older: the one in the cache, and that of a request that was in flight at `moment`, which
    /// [`Self::fetch_shared`] waits for. Both are discarded. A third request began after them.
    pub(crate) async fn get_since(
        &self,
        moment: Timestamp,
        merchant: &Merchant,
        product: &VariantIdentifier,
    ) -> Result<Arc<Offer>, Unavailable> {
        let key = Key::new(merchant, product);
        for _older_offer in 0..2 {
            let offer = self.fetch_shared(key.clone(), merchant).await?;
            if offer.requested_at >= moment {
                return Ok(offer);
            }
            self.cache.invalidate(&key).await;
        }
        self.fetch_shared(key, merchant).await
    }

    /// Requests the variants, or waits for a request for the same product that is in flight.
    async fn fetch_shared(&self, key: Key, merchant: &Merchant) -> Result<Arc<Offer>, Unavailable> {
        let deadline = Instant::now() + self.settings.timeout;
        let product = key.product.clone();
        let fetch = Box::pin(self.fetch(
            merchant,
            &product,
            deadline - TIMEOUT_MARGIN.min(self.settings.timeout),
        ));
        match timeout_at(deadline, self.cache.try_get_with(key, fetch)).await {
            Ok(fetched) => fetched.map_err(|none| Unavailable::clone(&none)),
            Err(_) => Err(Outcome::TimedOut.into()),
        }
    }

    async fn fetch(
        &self,
        merchant: &Merchant,
        product: &VariantIdentifier,
        deadline: Instant,
    ) -> Result<Arc<Offer>, Unavailable> {
        let requested_at = self.clock.now();
        let (endpoint, timeout) = self.endpoint(merchant, product, requested_at)?;
        let permit = self.breakers.acquire(merchant, Instant::now())?;
        let query = Query {
            merchant: merchant.identifier.to_string(),
            version: merchant.message_version(Interface::Variants),
            traceparent: telemetry::traceparent(),
            max_response_bytes: self.settings.max_response_bytes,
        };
        let mut endpoint_client = self.deliveries.endpoint_client().clone();
        endpoint_client.timeout = timeout.min(deadline.saturating_duration_since(Instant::now()));
        let attempt = endpoint_client.fetch(&query, &endpoint, requested_at, Jitter::draw()).await;
        permit.settle(is_healthy(&attempt.outcome), Instant::now());
        self.requests.add(1, &[KeyValue::new("outcome", attempt.outcome.name())]);
        let offer = read(&attempt)
            .map(|variants| Arc::new(Offer::new(variants, requested_at, attempt.response.len())));
        if let Err(none) = &offer {
            tracing::info!(
                merchant = %merchant.identifier, reason = none.reason.as_str(),
                "no variants from merchant {}: {}", merchant.identifier, none.detail
            );
        }
        offer
    }

    /// The merchant's endpoint for a product, and its timeout if the merchant has set one.
    fn endpoint(
        &self,
        merchant: &Merchant,
        product: &VariantIdentifier,
        now: Timestamp,
    ) -> Result<(Endpoint, Duration), Unavailable> {
        if merchant.endpoints.get(&Interface::Variants).is_some_and(|endpoint| endpoint.paused) {
            return Err(Unavailable::new(Reason::Paused, "the endpoint is paused"));
        }
        let unset =
            |error: &dyn std::error::Error| Unavailable::new(Reason::NotConfigured, chain(error));
        let endpoints = self.deliveries.endpoints();
        let opened = endpoints
            .find(merchant.identifier.as_str(), Interface::Variants, now)
            .map_err(|error| unset(&error))?;
        let url = product.expand_url(opened.endpoint.url()).map_err(|error| unset(&error))?;
        Ok((opened.endpoint.with_url(url), opened.timeout.unwrap_or(Duration::MAX)))
    }

    fn count(&self, result: &'static str) {
        self.lookups.add(1, &[KeyValue::new("result", result)]);
    }
}

impl Key {
    fn new(merchant: &Merchant, product: &VariantIdentifier) -> Self {
        let Merchant { identifier, version, .. } = merchant;
        Self { merchant: identifier.clone(), version: *version, product: product.clone() }
    }
}

/// Whether the merchant's system works. Most 4xx responses concern one product only.
fn is_healthy(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Delivered { .. } | Outcome::ResponseTooLarge { .. } => true,
        Outcome::Rejected { status, .. } => {
            (400..500).contains(status) && !matches!(status, 403 | 408 | 429)
        }
        _ => false,
    }
}

fn read(attempt: &Attempt) -> Result<Variants, Unavailable> {
    match &attempt.outcome {
        Outcome::Delivered { .. } => Variants::read(&attempt.response)
            .map_err(|error| Unavailable::new(Reason::InvalidResponse, chain(&error))),
        outcome => Err(outcome.clone().into()),
    }
}
