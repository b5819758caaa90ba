//! Actions on a merchant's order and its returns.

use std::sync::Arc;

use domain::access::MerchantId;
use domain::exchange::{ExchangeFailed, ExchangePlaced, FailedItem, FailureReason, PlacedItem};
use domain::json::{Digest, Document};
use domain::merchant::ReviewDecision;
use domain::order::{Order, OrderStored, Refund, RefundLine};
use domain::returns::{Finding, Receipt, RefundType, ReturnRequest, Rma, TrackingEvent, UnitId};
use platform::Clock;
use proptest::prelude::*;
use serde_json::json;

use super::super::projecting::{later, order};
use crate::returns::parcels::Reported;
use crate::shipped_units::unit_id;

pub(super) const LINES: usize = 2;
const UNITS: i64 = 4;
const REASONS: [FailureReason; 4] = [
    FailureReason::OutOfStock,
    FailureReason::PriceChanged,
    FailureReason::AlreadyExchanged,
    FailureReason::Abandoned,
];
const DECISIONS: [ReviewDecision; 2] = [ReviewDecision::Approve, ReviewDecision::Decline];
/// The price that a unit was sold for, and another one.
const PRICES: [(i64, RefundType); 2] =
    [(2_000, RefundType::EvenExchange), (2_500, RefundType::UnevenExchange)];

/// A random action. Its numbers select among the orders, returns and units that exist when it runs.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Return { units: Vec<(usize, i32)>, exchange: bool, is_reviewed: bool },
    Cancel { rma: usize, unit: Option<usize> },
    Track { rma: usize, event: usize },
    Receive { rma: usize, unit: usize, finding: usize },
    Close { rma: usize },
    Refund { line: usize, units: i64, rma: Option<usize> },
    Ship { line: usize, units: i64 },
    Place { rma: usize, unit: usize, price: usize },
    Fail { rma: usize, unit: usize, cause: usize },
    Expire { rma: usize },
    Waive { rma: usize },
    Decide { rma: usize, decision: ReviewDecision },
}

pub(super) fn any() -> impl Strategy<Value = Action> {
    let units = proptest::collection::vec((0..LINES, 1..=3_i32), 1..=2);
    let rma = 0..12_usize;
    let unit = 0..12_usize;
    let named = proptest::option::weighted(0.4, rma.clone());
    prop_oneof![
        6 => (units, proptest::bool::weighted(0.4), proptest::bool::weighted(0.3))
            .prop_map(|(units, exchange, is_reviewed)| Action::Return { units, exchange, is_reviewed }),
        2 => (rma.clone(), proptest::sample::select(DECISIONS.to_vec()))
            .prop_map(|(rma, decision)| Action::Decide { rma, decision }),
        2 => (rma.clone(), proptest::option::of(unit.clone()))
            .prop_map(|(rma, unit)| Action::Cancel { rma, unit }),
        2 => (rma.clone(), 0..7_usize).prop_map(|(rma, event)| Action::Track { rma, event }),
        3 => (rma.clone(), unit.clone(), 0..5_usize)
            .prop_map(|(rma, unit, finding)| Action::Receive { rma, unit, finding }),
        1 => rma.clone().prop_map(|rma| Action::Close { rma }),
        2 => rma.clone().prop_map(|rma| Action::Expire { rma }),
        1 => rma.clone().prop_map(|rma| Action::Waive { rma }),
        3 => (0..LINES, 1..=2_i64, named)
            .prop_map(|(line, units, rma)| Action::Refund { line, units, rma }),
        2 => (0..LINES, 0..=UNITS).prop_map(|(line, units)| Action::Ship { line, units }),
        1 => (rma.clone(), unit.clone(), 0..PRICES.len())
            .prop_map(|(rma, unit, price)| Action::Place { rma, unit, price }),
        1 => (rma, unit, 0..REASONS.len()).prop_map(|(rma, unit, cause)| Action::Fail { rma, unit, cause }),
    ]
}

/// An action with all its arguments, which can run any number of times.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Return {
        key: String,
        request: ReturnRequest,
    },
    Cancel {
        rma: String,
        units: Option<Vec<UnitId>>,
    },
    Track(Arc<Reported>),
    Receive {
        key: String,
        rma: String,
        receipt: Option<Receipt>,
    },
    /// A snapshot with the sequence number of its event.
    Project(Box<OrderStored>, i64),
    Place(ExchangePlaced),
    Fail(ExchangeFailed),
    /// All deadlines of a return pass.
    Expire {
        rma: String,
    },
    Waive {
        rma: String,
    },
    Decide {
        rma: String,
        decision: ReviewDecision,
    },
}

/// A merchant, its current order, and the planned actions.
pub(super) struct Model {
    pub(super) merchant: domain::merchant::Merchant,
    pub(super) order: Order,
    /// Returns at the start of a round.
    pub(super) rmas: Vec<Rma>,
    planned: usize,
    /// Number of snapshots.
    sequence: i64,
}

impl Model {
    pub(super) fn new(number: usize) -> Self {
        let mut merchant = testkit::merchant(&format!("m-{number}"));
        merchant.settings.managed_receiving = true;
        let review = json!({ "id": "look", "when": { "reasons": ["DAMAGED"] },
            "then": { "review": { "within_days": 3, "then": "approve" } } });
        merchant.settings.policy.rules = vec![serde_json::from_value(review).unwrap()];
        let mut order = order("A", 3);
        let mut second = order.items[0].clone();
        second.identifier = "A-2".to_owned();
        order.items.push(second);
        let mut model = Self { merchant, order, rmas: Vec::new(), planned: 0, sequence: 0 };
        model.ship(0, 3);
        model.ship(1, 2);
        model
    }

    pub(super) fn id(&self) -> &MerchantId {
        &self.merchant.identifier
    }

    /// The first two snapshots of the order, with the same `updated_at`.
    pub(super) fn begin(&mut self) -> (Operation, Operation) {
        let older = self.snapshot();
        let at = self.order.updated_at;
        self.order.note = Some("Leave it with the neighbours.".to_owned());
        let newer = self.snapshot();
        assert_eq!(self.order.updated_at, at);
        (older, newer)
    }

    /// The action with its arguments; `None` if it is not possible now.
    pub(super) fn plan(&mut self, action: &Action) -> Option<Operation> {
        self.planned += 1;
        let key = format!("operation-{}", self.planned);
        let named = |rma: usize| self.rma(rma).map(|rma| rma.rma_identifier.clone());
        Some(match action.clone() {
            Action::Return { units, exchange, is_reviewed } => {
                let reason = if is_reviewed { "DAMAGED" } else { "TOO_SMALL" };
                Operation::Return { key, request: self.request(units, exchange, reason) }
            }
            Action::Decide { rma, decision } => Operation::Decide { rma: named(rma)?, decision },
            Action::Cancel { rma, unit } => {
                let units = unit.map(|unit| self.unit(rma, unit).into_iter().collect());
                Operation::Cancel { rma: named(rma)?, units }
            }
            Action::Track { rma, event } => self.report(key, rma, event)?,
            Action::Receive { rma, unit, finding } => {
                let findings = vec![finding_of(finding, self.unit(rma, unit)?)];
                Operation::Receive { key, rma: named(rma)?, receipt: Some(Receipt { findings }) }
            }
            Action::Expire { rma } => Operation::Expire { rma: named(rma)? },
            Action::Waive { rma } => Operation::Waive { rma: named(rma)? },
            Action::Close { rma } => Operation::Receive { key, rma: named(rma)?, receipt: None },
            Action::Refund { line, units, rma } => {
                let rma = rma.and_then(named);
                self.refund(&key, line, units, rma)?
            }
            Action::Ship { line, units } => {
                self.ship(line, units);
                self.snapshot()
            }
            Action::Place { rma, unit, price } => Operation::Place(ExchangePlaced {
                merchant: self.id().clone(),
                rma_identifier: named(rma)?,
                original_order_id: "A".to_owned(),
                exchange_order_identifier: "EX-A".to_owned(),
                own_identifier: "X-A".to_owned(),
                rejected_identifier: None,
                items: vec![PlacedItem {
                    unit: self.unit(rma, unit)?,
                    refund_type: PRICES[price].1,
                    unit_price_amount_cents: Some(PRICES[price].0),
                }],
                ordered_at: Clock::system().now(),
                placed_at: Clock::system().now(),
            }),
            Action::Fail { rma, unit, cause } => Operation::Fail(ExchangeFailed {
                merchant: self.id().clone(),
                rma_identifier: named(rma)?,
                original_order_id: "A".to_owned(),
                items: vec![FailedItem {
                    unit: self.unit(rma, unit)?,
                    reason: REASONS[cause],
                    detail: String::new(),
                }],
                failed_at: Clock::system().now(),
            }),
        })
    }

    fn rma(&self, number: usize) -> Option<&Rma> {
        self.rmas.get(number % self.rmas.len().max(1))
    }

    fn unit(&self, rma: usize, number: usize) -> Option<UnitId> {
        let units = &self.rma(rma)?.units;
        units.get(number % units.len()).map(|unit| unit.id.clone())
    }

    fn report(&self, key: String, rma: usize, event: usize) -> Option<Operation> {
        Some(Operation::Track(Arc::new(Reported {
            digest: Digest::of_value(&json!(key)),
            event_identifier: key,
            event: TrackingEvent::ALL[event],
            rma_identifier: Some(self.rma(rma)?.rma_identifier.clone()),
            tracking_number: Some("1Z".to_owned()),
            units: None,
            label_url: None,
            label_kind: None,
            occurred_at: None,
            detail: None,
        })))
    }

    fn request(&self, mut units: Vec<(usize, i32)>, exchange: bool, reason: &str) -> ReturnRequest {
        units.sort_unstable();
        units.dedup();
        let variant = json!({ "sku": "M", "title": "M", "unit_price_amount_cents": 2000 });
        let units: Vec<_> = units
            .iter()
            .map(|(line, number)| {
                let mut unit = json!(unit_id("A", &format!("A-{}", line + 1), *number));
                unit["return_reason"] = json!(reason);
                unit["resolution"] = json!(if exchange { "exchange" } else { "refund" });
                if exchange {
                    unit["variant"] = variant.clone();
                }
                unit
            })
            .collect();
        let body = json!({ "return_method": "mail-back", "units": units });
        ReturnRequest::read(&Document::from(body), &self.merchant.settings.returns).unwrap()
    }

    /// A merchant never refunds more units of a line than it has.
    fn refund(
        &mut self,
        key: &str,
        line: usize,
        units: i64,
        rma: Option<String>,
    ) -> Option<Operation> {
        let identifier = self.order.items[line].identifier.clone();
        let lines = self.order.refunds.iter().flat_map(|it| &it.refund_line_items);
        let before: i64 =
            lines.filter(|it| it.order_item_identifier == identifier).map(|it| it.quantity).sum();
        if before + units > UNITS {
            return None;
        }
        self.order.refunds.push(Refund {
            identifier: key.to_owned(),
            total_refund_amount_cents: 1,
            refund_line_items: vec![RefundLine {
                identifier: format!("{key}-1"),
                quantity: units,
                order_item_identifier: identifier,
            }],
            note: None,
            created_at: self.order.updated_at,
            rma_identifier: rma,
            tags: Vec::new(),
        });
        Some(self.snapshot())
    }

    fn ship(&mut self, line: usize, units: i64) {
        let line = &mut self.order.items[line];
        (line.quantity, line.quantity_shipped, line.quantity_canceled) = (UNITS, units, 0);
        line.product_amount_cents = 2_000 * units;
        // Amounts differ between units.
        line.tax_amount_cents = 165 * units + i64::from(units > 1);
    }

    /// Every other snapshot has the `updated_at` of the one before.
    fn snapshot(&mut self) -> Operation {
        self.sequence += 1;
        self.order = later(&self.order, self.sequence % 2);
        let stored =
            OrderStored { merchant: self.id().clone(), order: self.order.clone(), is_reset: false };
        Operation::Project(Box::new(stored), self.sequence)
    }
}

fn finding_of(finding: usize, unit: UnitId) -> Finding {
    match finding {
        0 => Finding::Received { unit },
        1 => Finding::Damaged { unit, note: None },
        2 => Finding::Short { unit },
        3 => Finding::Wrong { unit, found_sku: None, note: None },
        _ => Finding::Undo { unit },
    }
}
