//! The changes of one transaction, decided in memory before anything is written.
//!
//! Publications are applied one after the other, each to the stored state and the changes staged
//! before it. A publication with an error stages nothing.

use std::collections::{BTreeMap, HashMap};

use domain::access::MerchantId;
use domain::json::{Digest, FieldError, ValidationError};
use domain::order::{OrderOutcome, OrderPolicy, OrderSnapshot, OrderVersion, RefundVersion};
use messaging::SerializedEvent;
use platform::Timestamp;
use platform::http::RequestMemory;

use platform::batching::Job;

/// An order that is larger than this counts as several.
const USUAL_BYTES: usize = 8 * 1024;

/// The orders of one message, ready to be stored.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) merchant: MerchantId,
    pub(crate) policy: OrderPolicy,
    pub(crate) received_at: Timestamp,
    pub(crate) orders: Vec<Published>,
    /// Reserved until the publication is dropped, even if the request is canceled.
    pub(crate) _memory: RequestMemory,
}

impl Job for Publication {
    fn owner(&self) -> &str {
        self.merchant.as_str()
    }

    fn weight(&self) -> usize {
        let weight = |order: &Published| order.document.len().div_ceil(USUAL_BYTES).max(1);
        self.orders.iter().map(weight).sum()
    }
}

#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) snapshot: OrderSnapshot,
    /// The JSON text of the order in the message, including unknown fields.
    pub(crate) document: String,
    /// The event to publish if the order is stored.
    pub(crate) event: SerializedEvent,
}

/// A merchant and the identifier of one of its orders, refunds or refund lines.
pub(crate) type Key<'a> = (&'a str, &'a str);

/// An order to write.
pub(crate) struct Row<'a> {
    pub(crate) published: &'a Published,
    pub(crate) received_at: Timestamp,
    /// The digest of the stored snapshot, if it was loaded.
    pub(crate) replaces: Option<Digest>,
}

/// A refund that is not stored yet.
pub(crate) struct NewRefund<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) version: RefundVersion,
    pub(crate) received_at: Timestamp,
}

/// The refund of a line. The digest is computed once for all lines of the refund.
#[derive(Clone, Copy)]
struct RefundOfLine<'a> {
    identifier: &'a str,
    digest: Digest,
}

/// The stored state of the orders and refunds in a batch.
#[derive(Default)]
pub(crate) struct Stored<'a> {
    pub(crate) orders: HashMap<Key<'a>, OrderVersion>,
    pub(crate) refunds: HashMap<Key<'a>, RefundVersion>,
    /// Digests of the identifiers of the lines' refunds.
    pub(crate) refund_lines: HashMap<Key<'a>, Digest>,
}

/// The stored state and the changes to it.
pub(crate) struct WriteBatch<'a> {
    stored: Stored<'a>,
    staged: Staged<'a>,
}

#[derive(Default)]
struct Staged<'a> {
    orders: BTreeMap<Key<'a>, (&'a Published, Timestamp)>,
    refunds: BTreeMap<Key<'a>, (RefundVersion, Timestamp)>,
    refund_lines: BTreeMap<Key<'a>, RefundOfLine<'a>>,
    events: Vec<&'a SerializedEvent>,
}

impl<'a> WriteBatch<'a> {
    pub(crate) fn new(stored: Stored<'a>) -> Self {
        Self { stored, staged: Staged::default() }
    }

    /// Decides the outcome of every order of a publication and stages the changes.
    pub(crate) fn apply(
        &mut self,
        publication: &'a Publication,
    ) -> Result<Vec<OrderOutcome>, ValidationError> {
        let mut current = Staged::default();
        let mut outcomes = Vec::with_capacity(publication.orders.len());
        let mut errors = Vec::new();
        for published in &publication.orders {
            match self.decide(&current, publication, published) {
                Ok(outcome) => {
                    current.stage(publication, published, outcome);
                    outcomes.push(outcome);
                }
                Err(found) => errors.extend(found),
            }
        }
        if let Some(invalid) = ValidationError::from_errors(errors) {
            return Err(invalid);
        }
        self.staged.merge(current);
        Ok(outcomes)
    }

    fn decide(
        &self,
        current: &Staged<'a>,
        publication: &'a Publication,
        published: &'a Published,
    ) -> Result<OrderOutcome, Vec<FieldError>> {
        let Published { snapshot, .. } = published;
        let merchant = publication.merchant.as_str();
        let key = (merchant, snapshot.order.identifier.as_str());
        let staged = current.orders.get(&key).or_else(|| self.staged.orders.get(&key));
        let staged = staged.map(|(published, _)| published.snapshot.version());
        let stored = staged.as_ref().or_else(|| self.stored.orders.get(&key));
        snapshot.decide(
            stored,
            |identifier| {
                let key = (merchant, identifier);
                let staged = current.refunds.get(&key).or_else(|| self.staged.refunds.get(&key));
                staged.map(|(version, _)| version).or_else(|| self.stored.refunds.get(&key))
            },
            |identifier| {
                let key = (merchant, identifier);
                let staged =
                    current.refund_lines.get(&key).or_else(|| self.staged.refund_lines.get(&key));
                let staged = staged.map(|refund| refund.digest);
                staged.or_else(|| self.stored.refund_lines.get(&key).copied())
            },
            publication.policy,
            publication.received_at,
        )
    }

    /// The orders to write, each once, sorted by key.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = (Key<'a>, Row<'a>)> {
        self.staged.orders.iter().map(|(key, (published, received_at))| {
            let replaces = self.stored.orders.get(key).map(|stored| stored.digest);
            (*key, Row { published, received_at: *received_at, replaces })
        })
    }

    /// The refunds to write, sorted by key.
    pub(crate) fn new_refunds(&self) -> impl Iterator<Item = NewRefund<'a>> {
        let new =
            self.staged.refunds.iter().filter(|(key, _)| !self.stored.refunds.contains_key(*key));
        new.map(|(key, (version, received_at))| NewRefund {
            key: *key,
            version: *version,
            received_at: *received_at,
        })
    }

    /// The lines of the new refunds, sorted by key, each with the digest of its refund.
    pub(crate) fn new_refund_lines(&self) -> impl Iterator<Item = (Key<'a>, Digest)> {
        let all = self.staged.refund_lines.iter();
        let new = all.filter(|((merchant, _), refund)| {
            !self.stored.refunds.contains_key(&(*merchant, refund.identifier))
        });
        new.map(|(key, refund)| (*key, refund.digest))
    }

    /// The events to publish, in the order of the changes.
    pub(crate) fn events(&self) -> &[&'a SerializedEvent] {
        &self.staged.events
    }
}

impl<'a> Staged<'a> {
    fn stage(
        &mut self,
        publication: &'a Publication,
        published: &'a Published,
        outcome: OrderOutcome,
    ) {
        let Publication { merchant, received_at, .. } = publication;
        let Published { snapshot, event, .. } = published;
        match outcome {
            OrderOutcome::Stored => {
                let key = (merchant.as_str(), snapshot.order.identifier.as_str());
                // A later snapshot of an order replaces the earlier one.
                self.orders.insert(key, (published, *received_at));
                // A refund and its lines never change: `decide` has rejected a refund that differs from one that is
                // stored or staged, and a line of another refund. So the first entry stays.
                for (identifier, version) in snapshot.refund_versions() {
                    let key = (merchant.as_str(), identifier);
                    self.refunds.entry(key).or_insert((version, *received_at));
                }
                for refund in &snapshot.order.refunds {
                    let digest = Digest::of_text(&refund.identifier);
                    let refund_of_line = RefundOfLine { identifier: &refund.identifier, digest };
                    for line in &refund.refund_line_items {
                        let key = (merchant.as_str(), line.identifier.as_str());
                        self.refund_lines.entry(key).or_insert(refund_of_line);
                    }
                }
                self.events.push(event);
            }
            OrderOutcome::Stale | OrderOutcome::Unchanged => {}
        }
    }

    fn merge(&mut self, current: Self) {
        self.orders.extend(current.orders);
        self.refunds.extend(current.refunds);
        self.refund_lines.extend(current.refund_lines);
        self.events.extend(current.events);
    }
}
