//! Decides random returns for `tests/return_policies.py`, which compares the decisions with its own.
//!
//! Each line of the input is a merchant's settings with cases; each line of the output has the decisions about them, and
//! the offers about their units.

use std::error::Error;
use std::io::{BufRead as _, Write as _, stdin, stdout};

use chrono::{DateTime, Utc};
use domain::json::{Document, object};
use domain::merchant::guard::Guard;
use domain::merchant::{Outcome, ReturnMethod, Settings, SettingsChange};
use domain::order::Order;
use domain::policy::{
    PolicyAt, ReturnDecision, ReturnTo, ShopperFacts, UnitFacts, UnitRequest, decide_return,
};
use domain::warehouse::Warehouses;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Input {
    settings: Value,
    warehouses: Warehouses,
    cases: Vec<Case>,
}

/// A return of units of one order.
#[derive(Deserialize)]
struct Case {
    now: DateTime<Utc>,
    order: Order,
    returned_at: Option<Vec<DateTime<Utc>>>,
    method: ReturnMethod,
    order_kept_cents: i64,
    units: Vec<CaseUnit>,
}

#[derive(Deserialize)]
struct CaseUnit {
    line: usize,
    is_shipped: bool,
    rma_identifier: Option<String>,
    is_refunded: bool,
    is_order_exchanged: bool,
    paid_amount_cents: i64,
    has_variants: bool,
    reason: String,
    outcome: Outcome,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut output = stdout().lock();
    for line in stdin().lock().lines() {
        let Input { settings, warehouses, cases } = serde_json::from_str(&line?)?;
        let settings = read(&settings, &warehouses)?;
        let decided: Result<Vec<_>, _> = cases.iter().map(|case| decide(&settings, case)).collect();
        writeln!(output, "{}", json!(decided?))?;
    }
    Ok(())
}

/// The settings as the API reads them.
fn read(change: &Value, warehouses: &Warehouses) -> Result<Settings, Box<dyn Error>> {
    let guard = Guard::new(false, &[]);
    let change = Document::from(change).read(object(|body| SettingsChange::read(body, &guard)))?;
    let mut settings = Settings::new("Acme");
    change.apply(&mut settings, warehouses)?;
    Ok(settings)
}

fn decide(settings: &Settings, case: &Case) -> Result<Value, Box<dyn Error>> {
    let mut shopper = ShopperFacts::new(&settings.policy, &case.order);
    shopper.returned_at.clone_from(&case.returned_at);
    let units = case.units.iter();
    let lines = units.map(|unit| Some((case.order.items.get(unit.line)?, unit)));
    let lines = lines.collect::<Option<Vec<_>>>().ok_or("no such line")?;
    let requests: Vec<_> = lines
        .into_iter()
        .map(|(line, unit)| UnitRequest {
            facts: UnitFacts {
                order: &case.order,
                line,
                is_shipped: unit.is_shipped,
                rma_identifier: unit.rma_identifier.as_deref(),
                is_refunded: unit.is_refunded,
                is_order_exchanged: unit.is_order_exchanged,
                paid_amount_cents: unit.paid_amount_cents,
                order_kept_cents: case.order_kept_cents,
                shopper: &shopper,
            },
            reason: &unit.reason,
            outcome: unit.outcome,
        })
        .collect();
    let policy = PolicyAt::new(settings, case.now);
    let ReturnDecision { units, cost, review, return_to } =
        decide_return(&policy, case.method, &requests, None);
    let units = units.iter().zip(&requests).zip(&case.units).map(|((decided, request), unit)| {
        let refusal = decided.eligibility.as_ref().err();
        let decision = &decided.decision;
        let offers = policy.unit(request.facts).offers(unit.has_variants);
        json!({
            "code": refusal.map(|it| it.code),
            "rule": refusal.and_then(|it| it.rule.as_deref()),
            "window_ends_at": decision.window_ends_at.timestamp(),
            "bonus": decision.bonus.map(|(percent, rule)| json!([percent, rule.id])),
            "is_returnable": offers.ineligible.is_none(),
            "choices": offers.choices,
        })
    });
    Ok(json!({
        "cost": [cost.cents, cost.rule.map(|rule| &rule.id)],
        "return_to": return_to.map(ReturnTo::from),
        "review": review.map(|(terms, rule)| json!([terms.within_days, terms.then, rule.id])),
        "units": units.collect::<Vec<_>>(),
    }))
}
