//! Logs on standard output, metrics for Prometheus, and traces over OTLP if an endpoint is set.
//!
//! Every process passes the W3C trace context on, even if it exports no traces itself, so that a
//! caller's trace continues through it.

mod age_gauge;
mod logs;
mod metrics;
mod process;
mod traces;

#[cfg(test)]
mod tests;

use std::{borrow::Cow, io::IsTerminal as _};

use anyhow::Context as _;
use opentelemetry::global;
use opentelemetry_sdk::{propagation::TraceContextPropagator, trace::SdkTracerProvider};
use serde::{Deserialize, Deserializer, de::Error as _};
use tracing::Subscriber;
use tracing_subscriber::{
    Layer as _,
    filter::{FilterExt as _, LevelFilter, Targets},
    fmt::MakeWriter,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};
use url::Url;

use crate::config::{optional_http_url, range};

pub(crate) use self::metrics::metrics;
pub use self::{
    age_gauge::AgeGauge,
    metrics::meter,
    traces::{link, set_parent, traceparent},
};

/// `[telemetry]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    #[serde(deserialize_with = "checked_filter")]
    pub log: String,
    pub format: Format,
    #[serde(deserialize_with = "optional_http_url")]
    pub otlp_endpoint: Option<Url>,
    #[serde(deserialize_with = "range::ratio")]
    pub sample_ratio: f64,
}

/// Checks the log filter when the settings are read, so that a process with a bad filter does not start.
fn checked_filter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let log = String::deserialize(deserializer)?;
    log_filter(&log).map_err(D::Error::custom)?;
    Ok(log)
}

/// Reads a filter such as `info,delivery=debug`: the level of all modules, and levels of some.
fn log_filter(log: &str) -> Result<Targets, BadFilter> {
    let mut filter = Targets::new();
    for part in log.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (module, level) = part.split_once('=').unwrap_or(("", part));
        filter = match level.parse::<LevelFilter>() {
            // The name of a span would be in brackets, and `Targets` knows no spans.
            Ok(_) if level.is_empty() || module.contains('[') => {
                return Err(BadFilter(part.to_owned()));
            }
            Ok(level) if module.is_empty() => filter.with_default(level),
            Ok(level) => filter.with_target(module, level),
            Err(_unknown) => return Err(BadFilter(part.to_owned())),
        };
    }
    Ok(filter)
}

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is neither a level (off, error, warn, info, debug, trace) nor like delivery=debug")]
struct BadFilter(String);

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
        let is_colored = std::io::stdout().is_terminal();
        subscriber(service, settings, &tracer, is_colored, std::io::stdout)?.try_init()?;
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
    service: &'static str,
    settings: &Settings,
    tracer: &SdkTracerProvider,
    is_colored: bool,
    writer: W,
) -> anyhow::Result<impl Subscriber + Send + Sync + use<W>> {
    let filter = log_filter(&with_quiet_libraries(&settings.log)).context("telemetry.log")?;
    let logs = match settings.format {
        Format::Json => logs::json(service, writer),
        Format::Text => logs::text(is_colored, writer),
    };
    let logs = logs.with_filter(filter.and(without_foreign_text(LevelFilter::TRACE)));
    let traces = traces::layer(tracer).with_filter(without_foreign_text(LevelFilter::INFO));
    Ok(tracing_subscriber::registry().with(logs).with(traces))
}

/// Limits the logs of libraries that the filter does not name. lapin logs every closed connection as an error,
/// also at a clean shutdown; `messaging` logs the failures that matter. The others log each step of a start.
fn with_quiet_libraries(log: &str) -> Cow<'_, str> {
    let libraries = [("lapin", "off"), ("opentelemetry", "warn"), ("actix_server", "warn")];
    let quiet = libraries.iter().filter(|(name, _)| !log.contains(name));
    quiet.fold(log.into(), |log, (name, level)| format!("{name}={level},{log}").into())
}

/// Excludes two targets. lapin logs the whole body of a returned message, and bodies contain shoppers'
/// names and addresses. actix logs every request that it cannot parse as an error of the server.
fn without_foreign_text(max_level: LevelFilter) -> Targets {
    Targets::new()
        .with_default(max_level)
        .with_target("lapin::returned_messages", LevelFilter::OFF)
        .with_target("actix_http::h1", LevelFilter::OFF)
}
