//! Traces: the exporter, and the W3C `traceparent` in requests and events.

use anyhow::Context as _;
use opentelemetry::{
    Context, KeyValue, global,
    propagation::{Extractor, Injector},
    trace::{TraceContextExt as _, TracerProvider as _},
};
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracer, SdkTracerProvider},
};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt as _};
use tracing_subscriber::registry::LookupSpan;

use super::Settings;

/// The layer that turns spans into spans of a trace. Source locations, threads and idle times are left
/// out, because they make every span larger and nothing uses them.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>(
    tracer: &SdkTracerProvider,
) -> OpenTelemetryLayer<S, SdkTracer> {
    tracing_opentelemetry::layer()
        .with_tracer(tracer.tracer("backhaul"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
}

pub(super) fn tracer_provider(
    service: &'static str,
    settings: &Settings,
) -> anyhow::Result<SdkTracerProvider> {
    // Without an endpoint no new traces are started, but traces of callers are still passed on.
    let root_sampler = match settings.otlp_endpoint {
        None => Sampler::AlwaysOff,
        Some(_) => Sampler::TraceIdRatioBased(settings.sample_ratio),
    };
    let builder = SdkTracerProvider::builder()
        .with_sampler(Sampler::ParentBased(Box::new(root_sampler)))
        .with_resource(resource(service));
    let Some(endpoint) = &settings.otlp_endpoint else { return Ok(builder.build()) };
    let endpoint = endpoint.to_string();
    // The exporter creates a blocking HTTP client, which panics on an async thread.
    let exporter = std::thread::spawn(move || {
        opentelemetry_otlp::SpanExporter::builder().with_http().with_endpoint(endpoint).build()
    });
    let exporter = exporter
        .join()
        .map_err(|_panic| anyhow::anyhow!("the OTLP exporter panicked"))?
        .context("telemetry.otlp_endpoint")?;
    Ok(builder.with_batch_exporter(exporter).build())
}

fn resource(service: &'static str) -> Resource {
    Resource::builder()
        .with_service_name(service)
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Returns the `traceparent` of the current span, for a request or an event.
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
    Context::map_current(|context| {
        global::get_text_map_propagator(|propagator| {
            propagator.inject_context(context, &mut parent);
        });
    });
    parent.0
}

/// Makes `span` a child of the span that `traceparent` names.
pub fn set_parent(span: &Span, traceparent: Option<&str>) {
    if let Some(parent) = traceparent
        && let Err(error) = span.set_parent(context_of(parent))
    {
        tracing::debug!(%error, "the span has no parent");
    }
}

/// Links `span` to the span that `traceparent` names: a batch of events belongs to several traces.
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
