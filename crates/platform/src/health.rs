//! Liveness (`/healthz`) and readiness (`/readyz`) of a process.
//!
//! Every request to `/readyz` runs all checks, each within a second, so that the response is current.

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

use crate::Timestamp;

const TIMEOUT: Duration = Duration::from_secs(1);

type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Checks that must pass for this process to be ready.
#[derive(Clone, Default)]
pub struct Health {
    checks: Arc<RwLock<BTreeMap<&'static str, Check>>>,
    draining: Arc<AtomicBool>,
    started_at: Option<Timestamp>,
}

/// The response of `/readyz`: each part and its error.
#[derive(Debug, Serialize)]
pub struct Report {
    pub ready: bool,
    pub parts: BTreeMap<&'static str, String>,
    /// Time at which the process started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
}

impl Health {
    /// The health of a process that started at this time.
    pub fn started(at: Timestamp) -> Self {
        Self { started_at: Some(at), ..Self::default() }
    }

    /// Adds a part; `check` returns its error, if there is one.
    pub fn add<F, Fut>(&self, part: &'static str, check: F)
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        let check: Check = Arc::new(move || check().boxed());
        let mut checks = self.checks.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        checks.insert(part, check);
    }

    /// Whether the process is shutting down.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Makes the process not ready, because it is shutting down.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub async fn report(&self) -> Report {
        self.report_without(None).await
    }

    /// Reports all parts. Parts whose name starts with `excluded` do not decide readiness.
    async fn report_without(&self, excluded: Option<&str>) -> Report {
        let checks = self.checks.read().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
        let checked = checks.into_iter().map(|(part, check)| async move {
            let result = tokio::time::timeout(TIMEOUT, check()).await;
            (part, result.unwrap_or_else(|_elapsed| Err("no response within a second".to_owned())))
        });
        let mut parts: BTreeMap<_, _> = join_all(checked).await.into_iter().collect();
        if self.draining.load(Ordering::Relaxed) {
            parts.insert("process", Err("shutting down".to_owned()));
        }
        let decides = |part: &str| excluded.is_none_or(|excluded| !part.starts_with(excluded));
        let ready = parts.iter().all(|(part, result)| result.is_ok() || !decides(part));
        let text = |result: Result<(), String>| result.err().unwrap_or_else(|| "ok".to_owned());
        Report {
            ready,
            parts: parts.into_iter().map(|(part, result)| (part, text(result))).collect(),
            started_at: self.started_at,
        }
    }
}

pub(crate) async fn healthz() -> HttpResponse {
    HttpResponse::Ok().json(serde_json::json!({ "status": "alive" }))
}

/// The query of `/readyz`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadyQuery {
    exclude: Option<Exclude>,
}

/// Requests need the database only, so a load balancer can exclude the broker.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Exclude {
    Broker,
}

pub(crate) async fn readyz(
    health: web::Data<Health>,
    query: web::Query<ReadyQuery>,
) -> HttpResponse {
    let excluded = query.exclude.as_ref().map(|Exclude::Broker| "broker");
    let report = health.report_without(excluded).await;
    let mut response =
        if report.ready { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() };
    response.json(report)
}

/// Checks from the same machine that a process responds at this address. With TLS it only has to listen, because its
/// certificate has its public name and not this address.
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
        let request = crate::http_client(TIMEOUT)?.get(format!("http://{host}:{port}/healthz"));
        request.send().await?.error_for_status()?;
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
    async fn an_excluded_part_is_reported_and_does_not_decide() {
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
        assert_eq!(health.report().await.parts["database"], "no response within a second");
    }

    #[tokio::test]
    async fn a_process_that_is_shutting_down_is_not_ready() {
        let health = Health::default();
        health.drain();
        assert!(!health.report().await.ready);
    }
}
