//! The benchmarks by name.

use crate::front_doors::Door;
use crate::front_doors::requests::announce_units;
use crate::report::Report;
use crate::size::Size;
use crate::stack::Stack;
use crate::{idle, orders, republish, rules, variants};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bench {
    Idle,
    Receipts,
    Returns,
    Rules,
    CarrierEvents,
    Orders,
    Variants,
    Republish,
}

/// First the idle stack, which nothing has used before; last the republish, which leaves 100,000 merchants.
const ALL: [Bench; 8] = [
    Bench::Idle,
    Bench::Receipts,
    Bench::Returns,
    Bench::Rules,
    Bench::CarrierEvents,
    Bench::Orders,
    Bench::Variants,
    Bench::Republish,
];

impl Bench {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Receipts => "receipts",
            Self::Returns => "returns",
            Self::Rules => "rules",
            Self::CarrierEvents => "carrier-events",
            Self::Orders => "orders",
            Self::Variants => "variants",
            Self::Republish => "republish",
        }
    }

    pub(crate) async fn run(
        self,
        stack: &mut Stack,
        report: &mut Report,
        size: Size,
    ) -> anyhow::Result<()> {
        eprintln!("==> {}", self.name());
        if self != Self::Idle && stack.create_merchants().await? {
            announce_units(stack).await?;
        }
        match self {
            Self::Idle => idle::measure(stack, report, size).await,
            Self::Receipts => Door::Receipts.measure(stack, report, size).await,
            Self::Returns => Door::Returns.measure(stack, report, size).await,
            Self::Rules => rules::measure(stack, report, size).await,
            Self::CarrierEvents => Door::CarrierEvents.measure(stack, report, size).await,
            Self::Orders => orders::measure(stack, report, size).await,
            Self::Variants => variants::measure(stack, report, size).await,
            Self::Republish => republish::measure(stack, report, size).await,
        }
    }
}

/// The benchmark with this name, or all.
pub(crate) fn selected(name: &str) -> anyhow::Result<Vec<Bench>> {
    let found: Vec<_> =
        ALL.into_iter().filter(|bench| name == "all" || bench.name() == name).collect();
    let names = ALL.map(Bench::name).join(", ");
    anyhow::ensure!(!found.is_empty(), "there is no benchmark {name}, but: all, {names}");
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_are_selected_by_name() {
        assert!(selected("all").unwrap().len() == ALL.len());
        assert!(selected("returns").unwrap() == [Bench::Returns]);
        assert!(selected("return").is_err());
    }
}
