//! The log: one line of JSON per event, or text for people.

use opentelemetry::{
    Context,
    trace::{TraceContextExt as _, TraceId},
};
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    Layer,
    fmt::{self, FmtContext, FormatEvent, FormatFields, MakeWriter, format::Writer},
    registry::LookupSpan,
};

type BoxedLayer<S> = Box<dyn Layer<S> + Send + Sync>;

pub(super) fn text<S, W>(is_colored: bool, writer: W) -> BoxedLayer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    fmt::layer().with_ansi(is_colored).with_writer(writer).boxed()
}

pub(super) fn json<S, W>(service: &'static str, writer: W) -> BoxedLayer<S>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = fmt::layer().json().flatten_event(true).with_current_span(false);
    lines.map_event_format(|format| JsonLines { service, format }).with_writer(writer).boxed()
}

/// Writes flat JSON lines: the fields of an event and those of the spans around it.
struct JsonLines<F> {
    service: &'static str,
    format: F,
}

impl<S, N, F> FormatEvent<S, N> for JsonLines<F>
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
        let mut nested = String::new();
        self.format.format_event(context, Writer::new(&mut nested), event)?;
        let line = serde_json::from_str(&nested)
            .and_then(|fields| serde_json::to_string(&Line::new(self.service, fields)));
        match line {
            Ok(line) => writeln!(writer, "{line}"),
            Err(_) => writer.write_str(&nested),
        }
    }
}

/// One line, with the fields that every line has first.
#[derive(Serialize)]
struct Line {
    timestamp: Option<Value>,
    level: Option<Value>,
    service: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Value>,
    #[serde(flatten)]
    fields: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
}

impl Line {
    /// A field of an inner span wins over one of an outer span, and a field of the event over both.
    fn new(service: &'static str, mut fields: Map<String, Value>) -> Self {
        if let Some(Value::Array(spans)) = fields.remove("spans") {
            for span in spans.into_iter().rev() {
                let Value::Object(span) = span else { continue };
                for (key, value) in span {
                    let key = if key == "name" { "span".to_owned() } else { key };
                    // Fields such as `otel.kind` are for the exporter.
                    if !key.starts_with("otel.") {
                        fields.entry(key).or_insert(value);
                    }
                }
            }
        }
        let trace_id = Context::map_current(|context| context.span().span_context().trace_id());
        Self {
            timestamp: fields.remove("timestamp"),
            level: fields.remove("level"),
            service,
            message: fields.remove("message"),
            trace_id: (trace_id != TraceId::INVALID).then(|| trace_id.to_string()),
            fields,
        }
    }
}
