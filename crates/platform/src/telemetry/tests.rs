//! Tests of logs and traces together.

use std::{
    io,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tracing::{info_span, subscriber::with_default};

use super::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// Runs `work` within a span of [`TRACE`].
fn in_trace<T>(work: impl FnOnce() -> T) -> T {
    let span = info_span!("test");
    set_parent(&span, Some(&format!("00-{TRACE}-b7ad6b7169203331-01")));
    span.in_scope(work)
}

/// Runs `work` with this log filter and format, and returns the result and the log.
fn logged<T>(log: &str, format: Format, work: impl FnOnce() -> T) -> (T, String) {
    let settings = Settings { log: log.to_owned(), format, otlp_endpoint: None, sample_ratio: 1.0 };
    global::set_text_map_propagator(TraceContextPropagator::new());
    let tracer = traces::tracer_provider("test", &settings).unwrap();
    let buffer = LogBuffer::default();
    let writer = buffer.clone();
    let subscriber = subscriber("test", &settings, &tracer, false, move || writer.clone()).unwrap();
    let result = with_default(subscriber, work);
    let log = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
    (result, log)
}

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_trace_is_passed_on_when_the_log_is_off() {
    let (passed_on, log) = logged("off", Format::Text, || in_trace(traceparent));
    let passed_on = passed_on.unwrap_or_default();
    assert!(passed_on.contains(TRACE), "{passed_on:?}");
    assert_eq!(log, "");
}

#[test]
fn the_body_of_a_returned_message_is_never_logged() {
    for filter in ["lapin=trace", "lapin::returned_messages=trace,lapin=trace"] {
        let ((), log) = logged(filter, Format::Text, || {
            tracing::warn!(target: "lapin::channels", "channel closed");
            tracing::warn!(target: "lapin::returned_messages", message = "Ada Lovelace");
        });
        let has = |text| log.contains(text);
        assert!(has("channel closed") && !has("Ada Lovelace"), "{filter}: {log}");
    }
}

#[test]
fn a_request_that_cannot_be_parsed_is_not_logged_as_an_error() {
    let ((), log) = logged("info", Format::Text, || {
        tracing::error!(target: "actix_http::h1::dispatcher", "stream error: invalid HTTP version");
        tracing::error!(target: "actix_server::worker", "worker died");
    });
    assert!(log.contains("worker died") && !log.contains("stream error"), "{log}");
}

#[test]
fn a_line_of_the_log_has_the_id_of_its_trace() {
    let ((), log) = logged("info", Format::Json, || {
        tracing::info!("outside");
        in_trace(|| tracing::info!(brace = "}", "inside"));
    });
    let lines = lines(&log);
    let [outside, inside] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&outside["message"], &outside["trace_id"]), (&"outside".into(), &Value::Null));
    assert_eq!((&inside["message"], &inside["trace_id"]), (&"inside".into(), &TRACE.into()));
    assert_eq!(inside["brace"], "}");
}

/// The lines of a JSON log.
fn lines(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_line_is_flat_and_names_service_and_merchant() {
    let ((), log) = logged("info", Format::Json, || {
        let request =
            info_span!("request", otel.kind = "server", request.id = "r1", merchant = "acme");
        let _request = request.entered();
        let handler = info_span!("cancel", rma.id = "R-1", attempt = 2);
        let _handler = handler.entered();
        tracing::info!(status = 409_u16, elapsed_ms = 12_u64, "responded with 409");
        tracing::info!(merchant = "rival", "of another merchant");
    });
    let lines = lines(&log);
    let mut first = lines[0].clone();
    let fields = first.as_object_mut().unwrap();
    assert!(fields.remove("timestamp").unwrap().is_string());
    // Present if another test of this process turned traces on.
    fields.remove("trace_id");
    assert_eq!(
        first,
        serde_json::json!({
            "level": "INFO", "service": "test", "message": "responded with 409", "status": 409,
            "elapsed_ms": 12, "span": "cancel", "request.id": "r1", "merchant": "acme",
            "rma.id": "R-1", "attempt": 2, "target": "platform::telemetry::tests"
        })
    );
    assert_eq!(lines[1]["merchant"], "rival");
    // No field is in a line twice: a parser would keep only the last one.
    assert_eq!(log.matches("\"request.id\"").count(), 2);
    assert!(log.starts_with("{\"timestamp\":"), "{log}");
}

#[test]
fn a_text_log_that_goes_into_a_pipe_has_no_colors() {
    let ((), log) = logged("info", Format::Text, || tracing::warn!("plain"));
    assert!(log.contains("WARN") && !log.contains('\u{1b}'), "{log:?}");
}

#[test]
fn a_closed_broker_connection_is_no_error_unless_the_filter_names_the_library() {
    for (filter, logs) in [("info", false), ("trace", false), ("info,lapin=error", true)] {
        let ((), log) = logged(filter, Format::Json, || {
            tracing::error!(target: "lapin::channels", "Connection error");
        });
        assert_eq!(log.contains("Connection error"), logs, "{filter}: {log}");
    }
}

#[test]
fn a_filter_has_a_level_for_all_modules_and_levels_of_some() {
    let all = ["info of delivery", "debug of delivery", "info of messaging", "error of messaging"];
    for (filter, expected) in [
        ("info,delivery=debug", &all[..]),
        ("delivery=debug, INFO", &all[..]),
        ("warn,delivery::sender=debug,", &[all[0], all[1], all[3]]),
        ("off,delivery=info", &all[..1]),
        ("delivery=off,3", &all[2..]),
        ("", &[]),
    ] {
        let ((), log) = logged(filter, Format::Text, || {
            tracing::info!(target: "delivery::sender", "info of delivery");
            tracing::debug!(target: "delivery::sender", "debug of delivery");
            tracing::info!(target: "messaging", "info of messaging");
            tracing::error!(target: "messaging", "error of messaging");
        });
        let found: Vec<_> = all.iter().copied().filter(|text| log.contains(text)).collect();
        assert_eq!(found, expected, "{filter}");
    }
}
