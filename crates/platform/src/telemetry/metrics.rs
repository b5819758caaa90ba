//! Metrics for Prometheus: those of Backhaul with the prefix `backhaul_`, and those of the process under
//! their conventional names (`process_cpu_seconds_total`).
//!
//! The code names a metric without the prefix and, for a counter, without `_total`. A name includes its
//! unit, for example `_seconds`; the unit of the instrument stays unset, or the name would have it twice.

use std::sync::OnceLock;

use actix_web::{HttpResponse, http::header};
use opentelemetry::{
    KeyValue, global,
    metrics::{Meter, MeterProvider as _},
};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Registry, TextEncoder};

use super::process::ProcessMetrics;
use crate::version::{COMMIT, VERSION};

/// Returns the meter that creates every counter, gauge and histogram of this process.
pub fn meter() -> Meter {
    start();
    global::meter("backhaul")
}

/// Creates the exporter, so that `/metrics` has the metrics of the process before the first of ours.
pub(super) fn start() {
    registry();
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let registry = Registry::new();
        if let Err(error) = fill(&registry) {
            tracing::error!(error = format!("{error:#}"), "there are no metrics");
        }
        registry
    })
}

fn fill(registry: &Registry) -> anyhow::Result<()> {
    registry.register(Box::new(ProcessMetrics::new()?))?;
    let exporter = opentelemetry_prometheus::exporter()
        .with_registry(registry.clone())
        .with_namespace("backhaul")
        .scope_info_enabled(false)
        .without_target_info()
        .build()?;
    let provider = SdkMeterProvider::builder().with_reader(exporter).build();
    let labels = [KeyValue::new("version", VERSION), KeyValue::new("commit", COMMIT)];
    provider
        .meter("backhaul")
        .u64_gauge("build_info")
        .with_description("Version and commit of the running program; the value is always 1")
        .build()
        .record(1, &labels);
    global::set_meter_provider(provider);
    Ok(())
}

pub(crate) async fn metrics() -> HttpResponse {
    match TextEncoder::new().encode_to_string(&registry().gather()) {
        Ok(text) => HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, prometheus::TEXT_FORMAT))
            .body(text),
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be encoded");
            HttpResponse::InternalServerError().finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn samples() -> Vec<String> {
        let text = TextEncoder::new().encode_to_string(&registry().gather()).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn our_metrics_have_the_prefix_and_one_suffix() {
        meter().u64_counter("test_requests").build().add(2, &[KeyValue::new("reason", "x")]);
        meter().f64_histogram("test_duration_seconds").build().record(0.5, &[]);
        meter().u64_gauge("test_size_bytes").build().record(7, &[]);
        let samples = samples();
        for expected in [
            "backhaul_test_requests_total{reason=\"x\"} 2",
            "backhaul_test_duration_seconds_sum 0.5",
            "backhaul_test_duration_seconds_count 1",
            "backhaul_test_size_bytes 7",
        ] {
            assert!(samples.iter().any(|sample| sample == expected), "{expected}: {samples:#?}");
        }
    }

    #[test]
    fn there_are_no_metrics_but_ours_and_those_of_the_process() {
        let is_known =
            |sample: &String| sample.starts_with("backhaul_") || sample.starts_with("process_");
        let others: Vec<_> = samples().into_iter().filter(|sample| !is_known(sample)).collect();
        assert!(others.is_empty(), "{others:#?}");
        let labels_of_otel: Vec<_> =
            samples().into_iter().filter(|sample| sample.contains("otel_")).collect();
        assert!(labels_of_otel.is_empty(), "{labels_of_otel:#?}");
    }

    #[test]
    fn the_build_and_the_process_are_described() {
        let samples = samples();
        let build = format!("backhaul_build_info{{commit=\"{COMMIT}\",version=\"{VERSION}\"}} 1");
        assert!(samples.contains(&build), "{samples:#?}");
        for name in [
            "process_cpu_seconds_total",
            "process_max_fds",
            "process_open_fds",
            "process_resident_memory_bytes",
            "process_start_time_seconds",
            "process_threads",
            "process_virtual_memory_bytes",
        ] {
            let sample = samples.iter().find(|sample| sample.starts_with(&format!("{name} ")));
            assert!(sample.is_some(), "{name}: {samples:#?}");
        }
    }

    #[test]
    fn the_process_started_in_the_past_and_uses_less_than_it_may() {
        let samples = samples();
        let value = |name: &str| -> f64 {
            let value = samples.iter().find_map(|sample| sample.strip_prefix(&format!("{name} ")));
            value.unwrap().parse().unwrap()
        };
        let age = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64()
            - value("process_start_time_seconds");
        // The start of the kernel is known to the second.
        assert!((-2.0..3_600.0).contains(&age), "started {age} seconds ago");
        assert!(value("process_cpu_seconds_total") < 3_600.0, "{samples:#?}");
        assert!(value("process_open_fds") < value("process_max_fds"), "{samples:#?}");
        let resident = value("process_resident_memory_bytes");
        assert!((1e6..value("process_virtual_memory_bytes")).contains(&resident), "{samples:#?}");
        let text = TextEncoder::new().encode_to_string(&registry().gather()).unwrap();
        assert!(text.contains("# TYPE process_cpu_seconds_total counter"), "{text}");
        assert!(text.contains("# TYPE process_threads gauge"), "{text}");
    }
}
