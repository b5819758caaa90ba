//! Whether this process lives (`/healthz`) and whether it can do its work now (`/readyz`).
//!
//! Readiness is asked of the things themselves at the moment of asking, each within a second, so
//! that the answer is never older than the question.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_web::{HttpResponse, web};
use anyhow::Context as _;
use futures_util::{FutureExt, future::BoxFuture, future::join_all};
use serde::{Deserialize, Serialize};

use crate::http;

const TIMEOUT: Duration = Duration::from_secs(1);

type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Checks that must pass for this process to be ready.
#[derive(Clone, Default)]
pub struct Health {
    checks: Arc<RwLock<BTreeMap<&'static str, Check>>>,
    draining: Arc<AtomicBool>,
}

/// The answer of `/readyz`: each part and what is wrong with it.
#[derive(Debug, Serialize)]
pub struct Report {
    pub ready: bool,
    pub parts: BTreeMap<&'static str, String>,
}

impl Health {
    /// Adds a part; `check` says what is wrong, if anything.
    pub fn add<F, Fut>(&self, part: &'static str, check: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        let check: Check = Arc::new(move || check().boxed());
        let mut checks = self.checks.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        checks.insert(part, check);
    }

    /// From now on the answer is no: the process is leaving.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub async fn report(&self) -> Report {
        self.report_without(None).await
    }

    /// The same, where the parts whose names begin so are shown and do not decide.
    async fn report_without(&self, left_out: Option<&str>) -> Report {
        let checks = self.checks.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        let asked = checks.into_iter().map(|(part, check)| async move {
            let verdict = tokio::time::timeout(TIMEOUT, check()).await;
            (part, verdict.unwrap_or_else(|_elapsed| Err("no answer within a second".to_owned())))
        });
        let mut parts: BTreeMap<_, _> = join_all(asked).await.into_iter().collect();
        if self.draining.load(Ordering::Relaxed) {
            parts.insert("process", Err("shutting down".to_owned()));
        }
        let decides = |part: &str| left_out.is_none_or(|left_out| !part.starts_with(left_out));
        let ready = parts.iter().all(|(part, verdict)| verdict.is_ok() || !decides(part));
        let words = |verdict: Result<(), String>| verdict.err().unwrap_or_else(|| "ok".to_owned());
        Report {
            ready,
            parts: parts.into_iter().map(|(part, verdict)| (part, words(verdict))).collect(),
        }
    }
}

pub(crate) async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(serde_json::json!({ "status": "alive" }))
}

/// The query of `/readyz`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    exclude: Option<Exclude>,
}

/// Requests need the database only, so a load balancer can exclude the broker.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Exclude {
    Broker,
}

pub(crate) async fn readyz(health: web::Data<Health>, asked: web::Query<Asked>) -> HttpResponse {
    let left_out = asked.exclude.as_ref().map(|Exclude::Broker| "broker");
    let report = health.report_without(left_out).await;
    let mut answer =
        if report.ready { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() };
    answer.json(report)
}

/// Asks a process with these settings whether it lives, from inside the same container.
pub(crate) async fn ask(settings: &http::Settings) -> anyhow::Result<()> {
    alive(&settings.host, settings.port, settings.tls.is_some()).await
}

/// Whether something answers there. Behind TLS it is enough that it listens: the certificate is made
/// out to the name by which the world knows the service, not to this address.
pub async fn alive(host: &str, port: u16, tls: bool) -> anyhow::Result<()> {
    let host = match host {
        "0.0.0.0" => "127.0.0.1",
        "::" => "::1",
        host => host,
    };
    let dial = tokio::time::timeout(TIMEOUT, tokio::net::TcpStream::connect((host, port)));
    dial.await.context("no connection within a second")??;
    if !tls {
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let asked = crate::http_client(TIMEOUT)?.get(format!("http://{host}:{port}/healthz"));
        asked.send().await?.error_for_status()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_failing_part_makes_the_process_unready_and_is_named() {
        let health = Health::default();
        health.add("database", || async { Ok(()) });
        assert!(health.report().await.ready);
        health.add("broker", || async { Err("connection refused".to_owned()) });
        let report = health.report().await;
        assert!(!report.ready);
        assert_eq!(report.parts["broker"], "connection refused");
        assert_eq!(report.parts["database"], "ok");
    }

    #[tokio::test]
    async fn a_part_that_is_left_out_is_named_and_does_not_decide() {
        let health = Health::default();
        health.add("database", || async { Ok(()) });
        health.add("broker.publishing", || async { Err("connection refused".to_owned()) });
        let report = health.report_without(Some("broker")).await;
        assert!(report.ready);
        assert_eq!(report.parts["broker.publishing"], "connection refused");
        health.add("database", || async { Err("gone".to_owned()) });
        assert!(!health.report_without(Some("broker")).await.ready);
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_hangs_is_reported_within_a_second() {
        let health = Health::default();
        health.add("database", std::future::pending);
        assert_eq!(health.report().await.parts["database"], "no answer within a second");
    }

    #[tokio::test]
    async fn a_process_on_its_way_out_is_not_ready() {
        let health = Health::default();
        health.drain();
        assert!(!health.report().await.ready);
    }
}
