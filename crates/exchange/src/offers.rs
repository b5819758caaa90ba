//! What merchants offer instead of a product: asked for, kept for a moment, shared by everyone who
//! wants to know the same.
//!
//! The invariant: whoever asks has an answer within the budget, and a merchant is asked once for a
//! product however many want to know at that moment. That there is no answer is an answer, too.

mod breaker;
mod unavailable;

use std::sync::Arc;

use delivery::Deliveries;
use delivery::attempt::{Query, Try};
use delivery::endpoint::Endpoint;
use delivery::outcome::{Jitter, Outcome};
use domain::access::MerchantId;
use domain::exchange::{VariantIdentifier, Variants};
use domain::merchant::{Interface, Merchant};
use domain::message_kind::VARIANTS_API_VERSION;
use moka::future::Cache;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Counter;
use platform::{Clock, Timestamp, chain, telemetry};
use tokio::time::{Duration, Instant, timeout_at};

use crate::settings;
use breaker::Breakers;
pub(crate) use unavailable::{Reason, Unavailable};

/// What is left of the budget when a question is given up, so that its answer is still in time.
const MARGIN: Duration = Duration::from_millis(100);

/// What is made of an answer takes a few times its length.
const COPIES: u32 = 3;

/// A merchant's answer.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) variants: Variants,
    pub(crate) asked_at: Timestamp,
    /// About how much memory it takes.
    weight: u32,
}

impl Offer {
    /// About how long it is when it is written out.
    pub(crate) fn length(&self) -> usize {
        usize::try_from(self.weight / COPIES).unwrap_or(usize::MAX)
    }
}

/// A product of a merchant as it is now: a changed merchant is asked anew.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    merchant: MerchantId,
    version: i64,
    product: VariantIdentifier,
}

pub(crate) struct Offers {
    deliveries: Deliveries,
    clock: Clock,
    settings: settings::Variants,
    kept: Cache<Key, Arc<Offer>>,
    breakers: Breakers,
    answers: Counter<u64>,
    questions: Counter<u64>,
}

impl Offers {
    pub(crate) fn new(deliveries: Deliveries, clock: Clock, settings: settings::Variants) -> Self {
        let meter = telemetry::meter();
        Self {
            deliveries,
            clock,
            kept: Cache::builder()
                .max_capacity(settings.kept_bytes)
                .weigher(|_, offer: &Arc<Offer>| offer.weight)
                .time_to_live(settings.keep)
                .build(),
            breakers: Breakers::new(&settings),
            settings,
            answers: meter
                .u64_counter("variant_answers")
                .with_description("Answers about variants: kept, asked, or why there is none")
                .build(),
            questions: meter
                .u64_counter("variant_questions")
                .with_description("Questions to merchants by what came of them")
                .build(),
        }
    }

    /// What a shopper can have instead, from memory if the merchant said so a moment ago.
    pub(crate) async fn of(
        &self,
        merchant: &Merchant,
        product: &VariantIdentifier,
    ) -> Result<Arc<Offer>, Unavailable> {
        let key = Key::new(merchant, product);
        if let Some(offer) = self.kept.get(&key).await {
            self.count("kept");
            return Ok(offer);
        }
        let asked = self.shared(key, merchant).await;
        self.count(asked.as_ref().map_or_else(|none| none.reason.as_str(), |_| "asked"));
        asked
    }

    /// The same, asked for at this moment or later.
    pub(crate) async fn since(
        &self,
        moment: Timestamp,
        merchant: &Merchant,
        product: &VariantIdentifier,
    ) -> Result<Arc<Offer>, Unavailable> {
        let key = Key::new(merchant, product);
        // The second look is for a question that was under way already at the first.
        for _ in 0..2 {
            let offer = self.shared(key.clone(), merchant).await?;
            if offer.asked_at >= moment {
                return Ok(offer);
            }
            self.kept.invalidate(&key).await;
        }
        self.shared(key, merchant).await
    }

    /// Asks, or waits for whoever asks the same already.
    async fn shared(&self, key: Key, merchant: &Merchant) -> Result<Arc<Offer>, Unavailable> {
        let end = Instant::now() + self.settings.budget;
        let product = key.product.clone();
        let asking = Box::pin(self.ask(merchant, &product, end - MARGIN.min(self.settings.budget)));
        match timeout_at(end, self.kept.try_get_with(key, asking)).await {
            Ok(answer) => answer.map_err(|none| Unavailable::clone(&none)),
            Err(_) => Err(Outcome::TimedOut.into()),
        }
    }

    async fn ask(
        &self,
        merchant: &Merchant,
        product: &VariantIdentifier,
        end: Instant,
    ) -> Result<Arc<Offer>, Unavailable> {
        let asked_at = self.clock.now();
        let (endpoint, patience) = self.endpoint(merchant, product, asked_at)?;
        let passage = self.breakers.enter(merchant, Instant::now())?;
        let question = Query {
            merchant: merchant.identifier.to_string(),
            api_version: VARIANTS_API_VERSION,
            traceparent: telemetry::traceparent(),
            longest_answer: self.settings.longest_answer,
        };
        let mut endpoint_client = self.deliveries.endpoint_client().clone();
        endpoint_client.deadline = patience.min(end.saturating_duration_since(Instant::now()));
        let tried = endpoint_client.ask(&question, &endpoint, asked_at, Jitter::draw()).await;
        passage.settle(is_well(&tried.outcome), Instant::now());
        self.questions.add(1, &[KeyValue::new("outcome", tried.outcome.name())]);
        let weight = weight(tried.answer.len());
        let offer = read(&tried).map(|variants| Arc::new(Offer { variants, asked_at, weight }));
        if let Err(none) = &offer {
            tracing::info!(
                merchant.id = %merchant.identifier, reason = none.reason.as_str(),
                "no variants from merchant {}: {}", merchant.identifier, none.detail
            );
        }
        offer
    }

    /// Where a merchant is asked about a product, and how long it may take if it has a say.
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
        Ok((opened.endpoint.at(url), opened.timeout.unwrap_or(Duration::MAX)))
    }

    fn count(&self, result: &'static str) {
        self.answers.add(1, &[KeyValue::new("result", result)]);
    }
}

impl Key {
    fn new(merchant: &Merchant, product: &VariantIdentifier) -> Self {
        let Merchant { identifier, version, .. } = merchant;
        Self { merchant: identifier.clone(), version: *version, product: product.clone() }
    }
}

/// Whether the merchant's side works: a prompt no to one product says nothing about the next.
fn is_well(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Delivered { .. } | Outcome::AnswerTooLarge { .. } | Outcome::Gone => true,
        Outcome::Rejected { status, .. } => {
            (400..500).contains(status) && !matches!(status, 403 | 408 | 429)
        }
        _ => false,
    }
}

/// How much memory what is made of an answer takes: something even if it is empty.
fn weight(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX).saturating_mul(COPIES).saturating_add(500)
}

fn read(tried: &Try) -> Result<Variants, Unavailable> {
    match &tried.outcome {
        Outcome::Delivered { .. } => Variants::read(&tried.answer)
            .map_err(|error| Unavailable::new(Reason::AnswerInvalid, chain(&error))),
        outcome => Err(outcome.clone().into()),
    }
}
