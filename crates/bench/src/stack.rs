//! The running services, which scripts/bench started, and the loads of all benchmarks.

pub(crate) mod merchants;
pub(crate) mod receiver;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ctl::api_client::{ApiClient, REQUEST_TIMEOUT};
use ctl::oauth::{OPERATOR, TokenClient};
use ctl::settings::{Setting, Settings};

use crate::poll::poll;
use crate::postgres::Postgres;
use crate::processes::Processes;
use crate::settings::{database_url, setting};
use merchants::Merchant;
use receiver::Receiver;

/// Longest time without progress until a benchmark fails.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Stack {
    pub(crate) settings: Settings,
    pub(crate) operator: ApiClient,
    pub(crate) processes: Processes,
    pub(crate) receiver: Receiver,
    /// Ten merchants whose messages arrive, and one that hangs.
    merchants: Vec<Merchant>,
    hanging: Option<Merchant>,
    /// The number of names so far.
    names: AtomicUsize,
}

/// Merchants of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Ten,
    One,
    /// Nine merchants, and one whose endpoint does not respond.
    OneHangs,
}

impl Stack {
    pub(crate) async fn connect() -> anyhow::Result<Self> {
        let settings = Settings::load()?;
        let tokens = TokenClient::from_settings(&settings, OPERATOR)?;
        let operator = ApiClient::log_in(&tokens, REQUEST_TIMEOUT).await?;
        let processes = Processes::find(&settings).await?;
        let receiver = Receiver::start()?;
        Ok(Self {
            settings,
            operator,
            processes,
            receiver,
            merchants: Vec::new(),
            hanging: None,
            names: AtomicUsize::new(0),
        })
    }

    /// Creates the merchants. Returns false if an earlier benchmark did.
    pub(crate) async fn create_merchants(&mut self) -> anyhow::Result<bool> {
        if !self.merchants.is_empty() {
            return Ok(false);
        }
        self.merchants = merchants::create(self).await?;
        self.hanging = self.merchants.pop();
        Ok(true)
    }

    pub(crate) fn merchants(&self, group: Group) -> Vec<&Merchant> {
        let number = match group {
            Group::Ten => 10,
            Group::One => 1,
            Group::OneHangs => 9,
        };
        let hanging = self.hanging.iter().filter(|_| group == Group::OneHangs);
        self.merchants.iter().take(number).chain(hanging).collect()
    }

    /// Host and port of a service.
    pub(crate) fn address(&self, service: Setting) -> anyhow::Result<String> {
        Ok(self.settings.require(service)?.trim_start_matches("http://").to_owned())
    }

    /// Connects to the database of a service.
    pub(crate) async fn database(&self, service: &str) -> anyhow::Result<Postgres> {
        let prefix = setting(&self.settings, "BENCH_DATABASES")?;
        let name = format!("{prefix}_{}", service.replace('-', "_"));
        Postgres::connect(&database_url(&self.settings, &name)?).await
    }

    /// The first of numbers that no request has used, to name orders, units and parcels.
    pub(crate) fn unused(&self, numbers: usize) -> usize {
        self.names.fetch_add(numbers, Ordering::Relaxed)
    }

    /// Waits until this number of messages has arrived, or none arrives any more.
    pub(crate) async fn await_arrivals(&self, number: usize) -> anyhow::Result<()> {
        let mut last = (0, Instant::now());
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        while self.receiver.number() < number && last.1.elapsed() < TIMEOUT {
            ticks.tick().await;
            if self.receiver.number() > last.0 {
                last = (self.receiver.number(), Instant::now());
            }
        }
        Ok(())
    }

    /// Waits until the deliveries of a service are settled, except those to the merchant that hangs. The query reads
    /// one row, because its CPU time counts.
    pub(crate) async fn await_settled(&self, service: &str) -> anyhow::Result<()> {
        let postgres = self.database(service).await?;
        let hanging = merchants::HANGING;
        let any = format!("SELECT EXISTS (SELECT FROM deliveries WHERE merchant <> '{hanging}')");
        poll("all messages are settled", TIMEOUT, async || {
            Ok((!postgres.value::<bool>(&any).await?).then_some(()))
        })
        .await
    }
}
