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
use serde::Deserialize;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use tracing_subscriber::{
    EnvFilter, Layer as _, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

/// `[telemetry]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub log: String,
    pub format: Format,
    pub otlp_endpoint: String,
    pub sample_ratio: f64,
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
        let filter = EnvFilter::try_new(&settings.log)
            .with_context(|| format!("telemetry.log = {:?} is not a log filter", settings.log))?;
        let logs = match settings.format {
            Format::Json => tracing_subscriber::fmt::layer().json().flatten_event(true).boxed(),
            Format::Text => tracing_subscriber::fmt::layer().boxed(),
        };
        let tracer = tracer_provider(service, settings)?;
        // Names and times of spans are what is looked at; the rest costs more than it tells.
        let traces = tracing_opentelemetry::layer()
            .with_tracer(tracer.tracer("backhaul"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false);
        tracing_subscriber::registry().with(filter).with(logs).with(traces).try_init()?;
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

fn tracer_provider(
    service: &'static str,
    settings: &Settings,
) -> anyhow::Result<SdkTracerProvider> {
    // Traces that nobody will see are not begun; those begun elsewhere are carried on.
    let begun_here = if settings.otlp_endpoint.is_empty() {
        Sampler::AlwaysOff
    } else {
        Sampler::TraceIdRatioBased(settings.sample_ratio)
    };
    let sampler = Sampler::ParentBased(Box::new(begun_here));
    let builder =
        SdkTracerProvider::builder().with_sampler(sampler).with_resource(resource(service));
    if settings.otlp_endpoint.is_empty() {
        return Ok(builder.build());
    }
    let endpoint = settings.otlp_endpoint.clone();
    // The exporter's blocking client must not be made on an async thread.
    let made = std::thread::spawn(move || {
        opentelemetry_otlp::SpanExporter::builder().with_http().with_endpoint(endpoint).build()
    });
    let exporter = made
        .join()
        .map_err(|_panic| anyhow::anyhow!("the OTLP exporter could not be made"))?
        .with_context(|| format!("telemetry.otlp_endpoint = {:?}", settings.otlp_endpoint))?;
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
