//! Logs as JSON lines on standard output, metrics for Prometheus, traces over OTLP when told
//! where to.
//!
//! Every process carries W3C trace context on, also when it exports no traces itself, so that a
//! trace begun elsewhere is never cut here.

mod age_gauge;

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
    trace::{Sampler, SdkTracer, SdkTracerProvider},
};
use prometheus::{Registry, TextEncoder};
use serde::{Deserialize, Deserializer, de::Error as _};
use tracing::{Event, Span, Subscriber};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt as _};
use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::{FilterExt as _, LevelFilter, ParseError, Targets},
    fmt::{
        self, FmtContext, FormatEvent, FormatFields, MakeWriter,
        format::{Format as Formatter, Json, JsonFields, Writer},
    },
    layer::SubscriberExt as _,
    registry::LookupSpan,
    util::SubscriberInitExt as _,
};

pub use self::age_gauge::AgeGauge;
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
        subscriber(settings, &tracer, std::io::stdout)?.try_init()?;
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

/// Logs and traces have separate filters, so that a higher log level does not break traces.
fn subscriber<W: for<'a> MakeWriter<'a> + Send + Sync + 'static>(
    settings: &Settings,
    tracer: &SdkTracerProvider,
    writer: W,
) -> anyhow::Result<impl Subscriber + Send + Sync + use<W>> {
    let filter = EnvFilter::try_new(&settings.log).context("telemetry.log")?;
    let logs = match settings.format {
        Format::Json => json_lines().with_writer(writer).boxed(),
        Format::Text => fmt::layer().with_writer(writer).boxed(),
    };
    let logs = logs.with_filter(filter.and(discreet(LevelFilter::TRACE)));
    let traces = traces(tracer).with_filter(discreet(LevelFilter::INFO));
    Ok(tracing_subscriber::registry().with(logs).with(traces))
}

/// Excludes targets that must not be logged or traced: lapin logs the whole body of returned messages.
fn discreet(most: LevelFilter) -> Targets {
    Targets::new().with_default(most).with_target("lapin::returned_messages", LevelFilter::OFF)
}

/// Names and times of spans are what is looked at; the rest costs more than it tells.
fn traces<S: Subscriber + for<'a> LookupSpan<'a>>(
    tracer: &SdkTracerProvider,
) -> OpenTelemetryLayer<S, SdkTracer> {
    tracing_opentelemetry::layer()
        .with_tracer(tracer.tracer("backhaul"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
}

fn json_lines<S: Subscriber + for<'a> LookupSpan<'a>>()
-> fmt::Layer<S, JsonFields, Traced<Formatter<Json>>> {
    fmt::layer().json().flatten_event(true).map_event_format(|lines| Traced { lines })
}

/// JSON lines that name the trace they belong to, so that logs and traces are found from each other.
struct Traced<F> {
    lines: F,
}

impl<S, N, F> FormatEvent<S, N> for Traced<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let trace = Context::map_current(|context| context.span().span_context().trace_id());
        let mut line = String::new();
        self.lines.format_event(context, Writer::new(&mut line), event)?;
        match line.trim_end().strip_suffix('}') {
            Some(open) if trace != TraceId::INVALID => {
                writeln!(writer, "{open},\"trace_id\":\"{trace}\"}}")
            }
            _ => writer.write_str(&line),
        }
    }
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
    Context::map_current(|context| {
        global::get_text_map_propagator(|propagator| {
            propagator.inject_context(context, &mut parent);
        });
    });
    parent.0
}

/// Makes `span` a child of the trace that `traceparent` names.
pub fn adopt(span: &Span, traceparent: Option<&str>) {
    if let Some(parent) = traceparent
        && let Err(error) = span.set_parent(context_of(parent))
    {
        tracing::debug!(%error, "the caller's trace could not be joined");
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
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use serde_json::Value;
    use tracing::{info_span, subscriber::with_default};

    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    /// Runs `work` within a span of the trace.
    fn in_trace<T>(work: impl FnOnce() -> T) -> T {
        let span = info_span!("test");
        adopt(&span, Some(&format!("00-{TRACE}-b7ad6b7169203331-01")));
        span.in_scope(work)
    }

    fn tracer() -> (Settings, SdkTracerProvider) {
        let settings = Settings {
            log: "off".to_owned(),
            format: Format::Text,
            otlp_endpoint: None,
            sample_ratio: 1.0,
        };
        global::set_text_map_propagator(TraceContextPropagator::new());
        let tracer = tracer_provider("test", &settings).unwrap();
        (settings, tracer)
    }

    #[test]
    fn whoever_logs_little_still_carries_traces_on() {
        let (settings, tracer) = tracer();
        let subscriber = subscriber(&settings, &tracer, io::stdout).unwrap();
        let carried = with_default(subscriber, || in_trace(traceparent)).unwrap_or_default();
        assert!(carried.contains(TRACE), "{carried:?}");
    }

    #[derive(Clone, Default)]
    struct IdleConnections(Arc<Mutex<Vec<u8>>>);

    impl io::Write for IdleConnections {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_message_that_comes_back_is_not_logged_whatever_is_asked_for() {
        for log in ["trace", "lapin::returned_messages=trace,lapin=trace"] {
            let (mut settings, tracer) = tracer();
            settings.log = log.to_owned();
            let lines = IdleConnections::default();
            let written = lines.clone();
            let subscriber = subscriber(&settings, &tracer, move || written.clone()).unwrap();
            with_default(subscriber, || {
                tracing::warn!(target: "lapin::channels", "said");
                tracing::warn!(target: "lapin::returned_messages", message = "Ada Lovelace");
            });
            let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
            assert!(lines.contains("said") && !lines.contains("Ada Lovelace"), "{log}: {lines}");
        }
    }

    #[test]
    fn a_line_in_the_log_names_its_trace() {
        let (_, tracer) = tracer();
        let lines = IdleConnections::default();
        let written = lines.clone();
        let logs = json_lines().with_writer(move || written.clone());
        let subscriber = tracing_subscriber::registry().with(logs).with(traces(&tracer));
        with_default(subscriber, || {
            tracing::info!("outside");
            in_trace(|| tracing::info!(brace = "}", "inside"));
        });
        let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [outside, inside] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((&outside["message"], &outside["trace_id"]), (&"outside".into(), &Value::Null));
        assert_eq!((&inside["message"], &inside["trace_id"]), (&"inside".into(), &TRACE.into()));
        assert_eq!(inside["brace"], "}");
    }
}
