//! Logs as JSON lines on standard output, metrics for Prometheus, traces over OTLP when told
//! where to.
//!
//! Every process carries W3C trace context on, also when it exports no traces itself, so that a
//! trace begun elsewhere is never cut here.

use std::sync::OnceLock;

use actix_web::{HttpResponse, http::header};
use anyhow::Context as _;
use opentelemetry::{
    Context, KeyValue, global,
    metrics::Meter,
    propagation::{Extractor, Injector},
    trace::{TraceContextExt as _, TraceId, TracerProvider as _},
};
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::{
    Resource,
    metrics::SdkMeterProvider,
    propagation::TraceContextPropagator,
    trace::{Sampler, SdkTracerProvider},
};
use prometheus::{Registry, TextEncoder};
use serde::{Deserialize, Deserializer, de::Error as _};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::{LevelFilter, ParseError},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};
use url::Url;

/// `[telemetry]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    #[serde(deserialize_with = "log_filter")]
    pub log: String,
    pub format: Format,
    #[serde(deserialize_with = "http_address")]
    pub otlp_endpoint: Option<Url>,
    pub sample_ratio: f64,
}

/// Refuses a bad filter where settings are read, so that nothing starts with it.
fn log_filter<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let log = String::deserialize(deserializer)?;
    let refused =
        |error: ParseError| D::Error::custom(format!("{log:?} is no log filter: {error}"));
    EnvFilter::try_new(&log).map_err(refused)?;
    Ok(log)
}

/// An address, or none when it is empty.
fn http_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    match Url::parse(&text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Some(url)),
        _ => Err(D::Error::custom(format!("{text:?} is no http:// or https:// address"))),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Json,
    Text,
}

/// Flushes what is still unsent when the process ends.
pub struct Telemetry {
    tracer: SdkTracerProvider,
}

impl Telemetry {
    /// Sets up logging and tracing for the whole process; once.
    pub fn start(service: &'static str, settings: &Settings) -> anyhow::Result<Self> {
        let tracer = tracer_provider(service, settings)?;
        subscriber(settings, &tracer)?.try_init()?;
        global::set_text_map_propagator(TraceContextPropagator::new());
        registry();
        Ok(Self { tracer })
    }

    pub fn finish(self) {
        if let Err(error) = self.tracer.shutdown() {
            tracing::warn!(%error, "some traces were not sent");
        }
    }
}

/// Logs and traces, each by a measure of its own: whoever logs less still carries traces on.
fn subscriber(
    settings: &Settings,
    tracer: &SdkTracerProvider,
) -> anyhow::Result<impl Subscriber + Send + Sync + use<>> {
    let filter = EnvFilter::try_new(&settings.log).context("telemetry.log")?;
    let logs = match settings.format {
        Format::Json => tracing_subscriber::fmt::layer().json().flatten_event(true).boxed(),
        Format::Text => tracing_subscriber::fmt::layer().boxed(),
    };
    // Names and times of spans are what is looked at; the rest costs more than it tells.
    let traces = tracing_opentelemetry::layer()
        .with_tracer(tracer.tracer("backhaul"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    let logs = logs.with_filter(filter);
    Ok(tracing_subscriber::registry().with(logs).with(traces.with_filter(LevelFilter::INFO)))
}

fn tracer_provider(
    service: &'static str,
    settings: &Settings,
) -> anyhow::Result<SdkTracerProvider> {
    // Traces that nobody will see are not begun; those begun elsewhere are carried on.
    let begun_here = match settings.otlp_endpoint {
        None => Sampler::AlwaysOff,
        Some(_) => Sampler::TraceIdRatioBased(settings.sample_ratio),
    };
    let sampler = Sampler::ParentBased(Box::new(begun_here));
    let builder =
        SdkTracerProvider::builder().with_sampler(sampler).with_resource(resource(service));
    let Some(endpoint) = &settings.otlp_endpoint else { return Ok(builder.build()) };
    let endpoint = endpoint.to_string();
    // The exporter's blocking client must not be made on an async thread.
    let made = std::thread::spawn(move || {
        opentelemetry_otlp::SpanExporter::builder().with_http().with_endpoint(endpoint).build()
    });
    let exporter = made
        .join()
        .map_err(|_panic| anyhow::anyhow!("the OTLP exporter could not be made"))?
        .context("telemetry.otlp_endpoint")?;
    Ok(builder.with_batch_exporter(exporter).build())
}

fn resource(service: &'static str) -> Resource {
    Resource::builder()
        .with_service_name(service)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Where every counter and histogram of this process is made.
pub fn meter() -> Meter {
    registry();
    global::meter("backhaul")
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let registry = Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .without_target_info()
            .build();
        match exporter {
            Ok(exporter) => global::set_meter_provider(
                SdkMeterProvider::builder().with_reader(exporter).build(),
            ),
            Err(error) => tracing::error!(%error, "no metrics: the exporter could not be made"),
        }
        registry
    })
}

pub(crate) async fn metrics() -> HttpResponse {
    match TextEncoder::new().encode_to_string(&registry().gather()) {
        Ok(text) => HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, prometheus::TEXT_FORMAT))
            .body(text),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            HttpResponse::InternalServerError().finish()
        }
    }
}

/// The `traceparent` of the current span, to be carried along with a message.
pub fn traceparent() -> Option<String> {
    struct Parent(Option<String>);
    impl Injector for Parent {
        fn set(&mut self, key: &str, value: String) {
            if key == "traceparent" {
                self.0 = Some(value);
            }
        }
    }
    let mut parent = Parent(None);
    let context = Span::current().context();
    global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut parent));
    parent.0
}

/// Makes `span` a child of the trace that `traceparent` names, and notes the trace in the span's field
/// `trace_id`, so that logs and traces are found from each other.
pub fn adopt(span: &Span, traceparent: Option<&str>) {
    if let Some(parent) = traceparent
        && let Err(error) = span.set_parent(context_of(parent))
    {
        tracing::debug!(%error, "the caller's trace could not be joined");
    }
    let trace = span.context().span().span_context().trace_id();
    if trace != TraceId::INVALID {
        span.record("trace_id", tracing::field::display(trace));
    }
}

/// Notes that `span` also works on behalf of the trace that `traceparent` names.
pub fn link(span: &Span, traceparent: &str) {
    let other = context_of(traceparent).span().span_context().clone();
    if other.is_valid() {
        span.add_link(other);
    }
}

fn context_of(traceparent: &str) -> Context {
    struct Parent<'a>(&'a str);
    impl Extractor for Parent<'_> {
        fn get(&self, key: &str) -> Option<&str> {
            (key == "traceparent").then_some(self.0)
        }

        fn keys(&self) -> Vec<&str> {
            vec!["traceparent"]
        }
    }
    global::get_text_map_propagator(|propagator| {
        propagator.extract_with_context(&Context::new(), &Parent(traceparent))
    })
}

#[cfg(test)]
mod tests {
    use tracing::{field::Empty, info_span, subscriber::with_default};

    use super::*;

    #[test]
    fn whoever_logs_little_still_carries_traces_on() {
        const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
        let settings = Settings {
            log: "off".to_owned(),
            format: Format::Text,
            otlp_endpoint: None,
            sample_ratio: 1.0,
        };
        global::set_text_map_propagator(TraceContextPropagator::new());
        let tracer = tracer_provider("test", &settings).unwrap();
        let carried = with_default(subscriber(&settings, &tracer).unwrap(), || {
            let span = info_span!("test", trace_id = Empty);
            adopt(&span, Some(&format!("00-{TRACE}-b7ad6b7169203331-01")));
            span.in_scope(traceparent)
        });
        let carried = carried.unwrap_or_default();
        assert!(carried.contains(TRACE), "{carried:?}");
    }
}
