//! The log: one line of JSON per event, or text for people.

use opentelemetry::{
    Context,
    trace::{TraceContextExt as _, TraceId},
};
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    Layer,
    fmt::{
        self, FmtContext, FormatEvent, FormatFields, MakeWriter,
        format::{Format as Formatter, Json, JsonFields, Writer},
    },
    registry::LookupSpan,
};

use super::Format;

pub(super) fn layer<S, W>(format: Format, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    match format {
        Format::Json => json_lines().with_writer(writer).boxed(),
        Format::Text => fmt::layer().with_writer(writer).boxed(),
    }
}

fn json_lines<S: Subscriber + for<'a> LookupSpan<'a>>()
-> fmt::Layer<S, JsonFields, WithTraceId<Formatter<Json>>> {
    fmt::layer().json().flatten_event(true).map_event_format(WithTraceId)
}

/// Adds `trace_id` to each JSON line that is written within a trace.
struct WithTraceId<F>(F);

impl<S, N, F> FormatEvent<S, N> for WithTraceId<F>
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
        let trace_id = Context::map_current(|context| context.span().span_context().trace_id());
        let mut line = String::new();
        self.0.format_event(context, Writer::new(&mut line), event)?;
        match line.trim_end().strip_suffix('}') {
            Some(members) if trace_id != TraceId::INVALID => {
                writeln!(writer, "{members},\"trace_id\":\"{trace_id}\"}}")
            }
            _ => writer.write_str(&line),
        }
    }
}
