//! Logs on standard output, metrics for Prometheus, and traces over OTLP if an endpoint is set.
//!
//! Every process passes the W3C trace context on, even if it exports no traces itself, so that a
//! caller's trace continues through it.

mod age_gauge;
mod logs;
mod metrics;
mod traces;

#[cfg(test)]
mod tests;

use anyhow::Context as _;
use opentelemetry::global;
use opentelemetry_sdk::{propagation::TraceContextPropagator, trace::SdkTracerProvider};
use serde::{Deserialize, Deserializer, de::Error as _};
use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::{FilterExt as _, LevelFilter, Targets},
    fmt::MakeWriter,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};
use url::Url;

pub(crate) use self::metrics::metrics;
pub use self::{
    age_gauge::AgeGauge,
    metrics::meter,
    traces::{adopt, link, traceparent},
};

/// `[telemetry]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    #[serde(deserialize_with = "log_filter")]
    pub log: String,
    pub format: Format,
    #[serde(deserialize_with = "http_url")]
    pub otlp_endpoint: Option<Url>,
    pub sample_ratio: f64,
}

/// Checks the log filter when the settings are read, so that a process with a bad filter does not start.
fn log_filter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let log = String::deserialize(deserializer)?;
    match EnvFilter::try_new(&log) {
        Ok(_) => Ok(log),
        Err(error) => Err(D::Error::custom(format!("{log:?} is not a log filter: {error}"))),
    }
}

/// Reads a URL; an empty text means that there is none.
fn http_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    match Url::parse(&text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Some(url)),
        _ => Err(D::Error::custom(format!("{text:?} is not an http:// or https:// URL"))),
    }
}

/// Format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Json,
    Text,
}

/// The telemetry of a running process.
pub struct Telemetry {
    tracer: SdkTracerProvider,
}

impl Telemetry {
    /// Sets up logs, metrics and traces for the whole process. Call it once.
    pub fn start(service: &'static str, settings: &Settings) -> anyhow::Result<Self> {
        let tracer = traces::tracer_provider(service, settings)?;
        subscriber(settings, &tracer, std::io::stdout)?.try_init()?;
        global::set_text_map_propagator(TraceContextPropagator::new());
        metrics::start();
        Ok(Self { tracer })
    }

    /// Exports the remaining spans before the process ends.
    pub fn finish(self) {
        if let Err(error) = self.tracer.shutdown() {
            tracing::warn!(%error, "some spans were not exported");
        }
    }
}

/// The subscriber for logs and traces. The two have separate filters: a trace is exported whatever the
/// log level is.
fn subscriber<W: for<'a> MakeWriter<'a> + Send + Sync + 'static>(
    settings: &Settings,
    tracer: &SdkTracerProvider,
    writer: W,
) -> anyhow::Result<impl Subscriber + Send + Sync + use<W>> {
    let filter = EnvFilter::try_new(&settings.log).context("telemetry.log")?;
    let logs = logs::layer(settings.format, writer)
        .with_filter(filter.and(without_foreign_text(LevelFilter::TRACE)));
    let traces = traces::layer(tracer).with_filter(without_foreign_text(LevelFilter::INFO));
    Ok(tracing_subscriber::registry().with(logs).with(traces))
}

/// Excludes two targets. lapin logs the whole body of a returned message, and bodies contain shoppers'
/// names and addresses. actix logs every request that it cannot parse as an error of the server.
fn without_foreign_text(max_level: LevelFilter) -> Targets {
    Targets::new()
        .with_default(max_level)
        .with_target("lapin::returned_messages", LevelFilter::OFF)
        .with_target("actix_http::h1", LevelFilter::OFF)
}
