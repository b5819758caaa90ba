//! Started returns of merchants with twenty rules and without rules. Rounds alternate, because the cost of a return varies
//! with the size of the tables.

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::front_doors::Door;
use crate::poll::poll;
use crate::report::{Goal, Report, Table, number};
use crate::size::Size;
use crate::stack::{Group, Stack, TIMEOUT};

const ROUNDS: usize = 3;
/// The CPU time of a return with rules, as a multiple of that without.
const GOAL: f64 = 1.05;

pub(crate) async fn measure(stack: &Stack, report: &mut Report, size: Size) -> anyhow::Result<()> {
    let mut with_rules = Vec::new();
    let mut without_rules = Vec::new();
    for _ in 0..ROUNDS {
        save(stack, &policy()).await?;
        with_rules.push(cost(stack, "20 rules", size).await?);
        // Last, so that benchmarks that follow have no rules.
        save(stack, &json!({ "rules": [], "shoppers": {} })).await?;
        without_rules.push(cost(stack, "no rules", size).await?);
    }
    let rounds: Vec<_> = (1..=ROUNDS).map(|round| format!("round {round}")).collect();
    let headings = ["load"].into_iter().chain(rounds.iter().map(String::as_str));
    let headings: Vec<_> = headings.chain(["median"]).collect();
    let mut table = Table::new("started returns with rules: CPU µs", &headings);
    let mut row = |name: &str, costs: &[f64]| {
        let median = median(costs);
        table.row(name, costs.iter().copied().chain([median]).map(number));
        median
    };
    let without_rules = row("no rules", &without_rules);
    let with_rules = row("20 rules", &with_rules);
    report.table(table);
    let figure = "started returns: CPU with 20 rules, compared with none".to_owned();
    report.goal(Goal { figure, value: with_rules / without_rules, at_most: GOAL });
    Ok(())
}

/// The CPU time of a started return in a closed loop, after a warm-up in which the services learn the rules.
async fn cost(stack: &Stack, name: &str, size: Size) -> anyhow::Result<f64> {
    let messages = size.messages / 2;
    Door::Returns.run(stack, "warm-up", Group::Ten, None, messages / 10).await?;
    let run = Door::Returns.run(stack, name, Group::Ten, None, messages).await?;
    run.arrived.check().with_context(|| format!("started returns, {name}"))?;
    Ok(run.cost.all())
}

/// Saves the policy of ten merchants, and waits until rma-engine has it.
async fn save(stack: &Stack, policy: &Value) -> anyhow::Result<()> {
    let merchants = stack.merchants(Group::Ten);
    for merchant in &merchants {
        let path = ["v1", "merchants", merchant.name.as_str()];
        stack.operator.patch(&path, &json!({ "policy": policy })).await?;
    }
    let rules = policy.get("rules").and_then(Value::as_array).map_or(0, Vec::len);
    let postgres = stack.database("rma-engine").await?;
    let names: Vec<_> = merchants.iter().map(|it| format!("'{}'", it.name)).collect();
    let known = format!(
        "SELECT count(*) FROM replica_merchants WHERE identifier IN ({}) \
         AND jsonb_array_length(document -> 'settings' -> 'policy' -> 'rules') = {rules}",
        names.join(", ")
    );
    poll("rma-engine has the rules", TIMEOUT, async || {
        let known: i64 = postgres.value(&known).await?;
        Ok((usize::try_from(known)? == merchants.len()).then_some(()))
    })
    .await
}

/// Rules with each kind of condition. The last one is about every return, and no rule refuses a return of the benchmark.
/// Those that count returns and those that limit units that shoppers keep cost a statement each.
fn policy() -> Value {
    let conditions = [
        json!({ "line_tags": ["bulky", "freight"] }),
        json!({ "line_tags": ["outlet", "clearance"] }),
        json!({ "order_tags": ["vip", "wholesale"] }),
        json!({ "skus": ["TENT-*", "KAYAK-*"] }),
        json!({ "skus": ["*-GIFT"] }),
        json!({ "unit_price": { "min_cents": 100_000 } }),
        json!({ "weight": { "min": 20 } }),
        json!({ "countries": ["DE", "AT", "CH"] }),
        json!({ "countries": ["GB"] }),
        json!({ "ordered": { "from": "2025-11-01", "until": "2025-12-24" } }),
        json!({ "days_since_order": { "min": 60 } }),
        json!({ "days_since_shipping": { "min": 45 } }),
        json!({ "days_since_delivery": { "min": 30 } }),
        json!({ "reasons": ["DAMAGED", "WRONG_ITEM"] }),
        json!({ "methods": ["express-returns"] }),
        json!({ "outcomes": ["exchange"] }),
        json!({ "concepts": ["Outlet"] }),
        json!({ "returns_of_shopper": { "days": 90, "min": 5 } }),
        json!({ "shoppers": ["trusted"] }),
    ];
    let rule = |(number, when): (usize, Value)| {
        let cost = json!({ "shipping_cost_cents": 900 });
        json!({ "id": format!("rule-{number}"), "when": when, "then": { "costs": [cost] } })
    };
    let mut rules: Vec<_> = conditions.into_iter().enumerate().map(rule).collect();
    let all = json!({ "window": { "days": 60 }, "keep": { "up_to_cents": 1_500 } });
    rules.push(json!({ "id": "all", "then": all }));
    let trusted = "a4c14f1b068bf2c602e289b5dfcd89085692c73c63daf5a90a0b481b7328ee35";
    json!({ "rules": rules, "shoppers": { "trusted": [trusted] } })
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use domain::merchant::Policy;

    use super::*;

    #[test]
    fn there_are_twenty_rules_with_different_conditions() {
        let policy: Policy = serde_json::from_value(policy()).unwrap();
        assert_eq!(policy.rules.len(), 20);
        assert!(policy.limits_keeping() && policy.names_shoppers());
        assert_eq!(policy.counted_days(), Some(90));
        assert_eq!(policy.warnings("USD"), []);
    }

    #[test]
    fn the_median_is_the_value_in_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
    }
}
