//! What one transaction will write, worked out in memory before anything is written.
//!
//! Publications are posted one after the other, each against what is stored and what the ones
//! before it will store. One with a fault leaves no trace: it is all or nothing.

use std::collections::{BTreeMap, HashMap};

use domain::access::MerchantId;
use domain::json::{Digest, FieldError, ValidationError};
use domain::order::{KnownOrder, KnownRefund, OrderOutcome, OrderPolicy, OrderSnapshot};
use messaging::SerializedEvent;
use platform::Timestamp;
use platform::http::RequestMemory;

use crate::group::Job;

/// An order of more than this is as much work as several.
const USUAL_BYTES: usize = 8 * 1024;

/// The orders of one message, ready to be stored.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) merchant: MerchantId,
    pub(crate) policy: OrderPolicy,
    pub(crate) received_at: Timestamp,
    pub(crate) orders: Vec<Published>,
    /// What it takes up for as long as it waits, also when nobody waits for the answer any more.
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

/// One order as it was published.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) snapshot: OrderSnapshot,
    /// The order's own part of the message, unknown fields included.
    pub(crate) document: String,
    /// The event to send if the order is stored.
    pub(crate) event: SerializedEvent,
}

/// A merchant, and the identifier of an order or a refund of theirs.
pub(crate) type Key<'a> = (&'a str, &'a str);

/// An order as it will be written.
pub(crate) struct Row<'a> {
    pub(crate) published: &'a Published,
    pub(crate) received_at: Timestamp,
    /// What was stored when the books were opened, if that was looked up.
    pub(crate) replaces: Option<Digest>,
}

/// A refund seen for the first time.
pub(crate) struct NewRefund<'a> {
    pub(crate) key: Key<'a>,
    pub(crate) known: KnownRefund,
    pub(crate) received_at: Timestamp,
}

/// The refund that a line belongs to: a name that thousands may share, and its digest.
#[derive(Clone, Copy)]
struct Owner<'a> {
    refund: &'a str,
    digest: Digest,
}

/// A snapshot that came too late.
pub(crate) struct Late<'a> {
    pub(crate) merchant: &'a MerchantId,
    pub(crate) snapshot: &'a OrderSnapshot,
    pub(crate) received_at: Timestamp,
}

/// What is stored of the orders and refunds that will be posted.
#[derive(Default)]
pub(crate) struct Stored<'a> {
    pub(crate) orders: HashMap<Key<'a>, KnownOrder>,
    pub(crate) refunds: HashMap<Key<'a>, KnownRefund>,
    /// The names of the refunds that lines belong to, digested.
    pub(crate) refund_lines: HashMap<Key<'a>, Digest>,
}

/// The books of one transaction.
pub(crate) struct Books<'a> {
    stored: Stored<'a>,
    drafted: Draft<'a>,
}

#[derive(Default)]
struct Draft<'a> {
    orders: BTreeMap<Key<'a>, (&'a Published, Timestamp)>,
    refunds: BTreeMap<Key<'a>, (KnownRefund, Timestamp)>,
    refund_lines: BTreeMap<Key<'a>, Owner<'a>>,
    late: Vec<Late<'a>>,
    events: Vec<&'a SerializedEvent>,
}

impl<'a> Books<'a> {
    pub(crate) fn open(stored: Stored<'a>) -> Self {
        Self { stored, drafted: Draft::default() }
    }

    /// Decides about every order of a publication, in the order they were sent.
    pub(crate) fn post(
        &mut self,
        publication: &'a Publication,
    ) -> Result<Vec<OrderOutcome>, ValidationError> {
        let mut draft = Draft::default();
        let mut outcomes = Vec::with_capacity(publication.orders.len());
        let mut faults = Vec::new();
        for published in &publication.orders {
            match self.decide(&draft, publication, published) {
                Ok(outcome) => {
                    draft.enter(publication, published, outcome);
                    outcomes.push(outcome);
                }
                Err(found) => faults.extend(found),
            }
        }
        if let Some(invalid) = ValidationError::from_errors(faults) {
            return Err(invalid);
        }
        self.drafted.absorb(draft);
        Ok(outcomes)
    }

    fn decide(
        &self,
        draft: &Draft<'a>,
        publication: &'a Publication,
        published: &'a Published,
    ) -> Result<OrderOutcome, Vec<FieldError>> {
        let Published { snapshot, .. } = published;
        let merchant = publication.merchant.as_str();
        let key = (merchant, snapshot.order.identifier.as_str());
        let drafted = draft.orders.get(&key).or_else(|| self.drafted.orders.get(&key));
        let drafted = drafted.map(|(published, _)| published.snapshot.known());
        let stored = drafted.as_ref().or_else(|| self.stored.orders.get(&key));
        snapshot.decide(
            stored,
            |identifier| {
                let key = (merchant, identifier);
                let drafted = draft.refunds.get(&key).or_else(|| self.drafted.refunds.get(&key));
                drafted.map(|(known, _)| known).or_else(|| self.stored.refunds.get(&key))
            },
            |identifier| {
                let key = (merchant, identifier);
                let drafted =
                    draft.refund_lines.get(&key).or_else(|| self.drafted.refund_lines.get(&key));
                let drafted = drafted.map(|owner| owner.digest);
                drafted.or_else(|| self.stored.refund_lines.get(&key).copied())
            },
            publication.policy,
            publication.received_at,
        )
    }

    /// The orders to write, each once, sorted by key.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = (Key<'a>, Row<'a>)> {
        self.drafted.orders.iter().map(|(key, (published, received_at))| {
            let replaces = self.stored.orders.get(key).map(|known| known.digest);
            (*key, Row { published, received_at: *received_at, replaces })
        })
    }

    /// The refunds to write, sorted by key.
    pub(crate) fn new_refunds(&self) -> impl Iterator<Item = NewRefund<'a>> {
        let unknown =
            self.drafted.refunds.iter().filter(|(key, _)| !self.stored.refunds.contains_key(*key));
        unknown.map(|(key, (known, received_at))| NewRefund {
            key: *key,
            known: *known,
            received_at: *received_at,
        })
    }

    /// The lines of those refunds, sorted by key, each with its refund.
    pub(crate) fn new_refund_lines(&self) -> impl Iterator<Item = (Key<'a>, Digest)> {
        let all = self.drafted.refund_lines.iter();
        let new = all.filter(|((merchant, _), owner)| {
            !self.stored.refunds.contains_key(&(*merchant, owner.refund))
        });
        new.map(|(key, owner)| (*key, owner.digest))
    }

    pub(crate) fn late(&self) -> &[Late<'a>] {
        &self.drafted.late
    }

    /// The events to send, in the order in which things happened.
    pub(crate) fn events(&self) -> &[&'a SerializedEvent] {
        &self.drafted.events
    }
}

impl<'a> Draft<'a> {
    fn enter(
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
                self.orders.insert(key, (published, *received_at));
                for (identifier, known) in snapshot.known_refunds() {
                    let key = (merchant.as_str(), identifier);
                    self.refunds.entry(key).or_insert((known, *received_at));
                }
                for refund in &snapshot.order.refunds {
                    let digest = Digest::of_text(&refund.identifier);
                    let owner = Owner { refund: &refund.identifier, digest };
                    for line in &refund.refund_line_items {
                        let key = (merchant.as_str(), line.identifier.as_str());
                        self.refund_lines.entry(key).or_insert(owner);
                    }
                }
                self.events.push(event);
            }
            OrderOutcome::Stale => {
                self.late.push(Late { merchant, snapshot, received_at: *received_at });
            }
            OrderOutcome::Unchanged => {}
        }
    }

    fn absorb(&mut self, draft: Self) {
        self.orders.extend(draft.orders);
        self.refunds.extend(draft.refunds);
        self.refund_lines.extend(draft.refund_lines);
        self.late.extend(draft.late);
        self.events.extend(draft.events);
    }
}
