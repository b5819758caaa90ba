//! The benchmarks by name.

use std::pin::Pin;

use crate::{
    auth, delivery, idle, import, intake, report::Report, republish, returns, size::Size, variants,
    warehouse,
};

pub(crate) struct Bench {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Upper limit of its duration on two cores.
    pub(crate) minutes: u64,
    /// Disk space for its data and the write-ahead log.
    pub(crate) gigabytes: u64,
    pub(crate) run: RunBench,
}

type RunBench =
    fn(Size, Option<delivery::Part>) -> Pin<Box<dyn Future<Output = anyhow::Result<Report>>>>;

static BENCHES: [Bench; 9] = [
    // First, in servers that have done nothing before.
    Bench {
        name: "idle",
        about: "CPU time and memory of five services, PostgreSQL and RabbitMQ without requests",
        minutes: 2,
        gigabytes: 1,
        run: |size, _| Box::pin(idle::run(size)),
    },
    Bench {
        name: "auth",
        about: "token requests, compared with a JSON echo server",
        minutes: 1,
        gigabytes: 1,
        run: |size, _| Box::pin(auth::run(size)),
    },
    Bench {
        name: "intake",
        about: "messages of one order, compared with pgbench inserting the same rows",
        minutes: 5,
        gigabytes: 8,
        run: |size, _| Box::pin(intake::run(size)),
    },
    Bench {
        name: "import",
        about: "an import of orders, compared with COPY of the same rows",
        minutes: 2,
        gigabytes: 3,
        run: |size, _| Box::pin(import::run(size)),
    },
    Bench {
        name: "returns",
        about: "projection of orders, returns and carrier events until their messages are delivered",
        minutes: 3,
        gigabytes: 3,
        run: |size, _| Box::pin(returns::run(size)),
    },
    Bench {
        name: "variants",
        about: "variant lookups with and without the cache, compared with requests to the merchant",
        minutes: 1,
        gigabytes: 1,
        run: |size, _| Box::pin(variants::run(size)),
    },
    Bench {
        name: "warehouse",
        about: "receipts of one and of a hundred units, compared with pgbench inserting the same rows",
        minutes: 3,
        gigabytes: 3,
        run: |size, _| Box::pin(warehouse::run(size)),
    },
    Bench {
        name: "republish",
        about: "a republish of 100,000 merchants, beside deliveries",
        minutes: 3,
        gigabytes: 5,
        run: |size, _| Box::pin(republish::run(size)),
    },
    Bench {
        name: "delivery",
        about: "the delivery engine, compared with a loop that consumes, posts and acknowledges",
        minutes: 18,
        gigabytes: 10,
        run: |size, only| Box::pin(delivery::run(size, only)),
    },
];

/// The benchmark with this name, or all.
pub(crate) fn selected(name: &str) -> anyhow::Result<Vec<&'static Bench>> {
    let found: Vec<_> =
        BENCHES.iter().filter(|bench| name == "all" || bench.name == name).collect();
    let names: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
    let names = names.join(", ");
    anyhow::ensure!(!found.is_empty(), "there is no benchmark {name}, but: all, {names}");
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::BARS;

    #[test]
    fn every_bar_belongs_to_a_benchmark() {
        for (figure, _) in BARS {
            let bench = figure.split('.').next().unwrap_or_default();
            assert!(selected(bench).is_ok(), "{figure}");
        }
    }

    #[test]
    fn all_benchmarks_take_less_than_40_minutes_and_at_most_10_gigabytes() {
        let all = selected("all").unwrap();
        assert!(all.iter().map(|bench| bench.minutes).sum::<u64>() < 40);
        assert!(all.iter().all(|bench| bench.gigabytes <= 10));
    }
}
