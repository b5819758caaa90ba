//! The metrics of the process under their conventional names, as the kernel shows them in `/proc/self`. A value
//! that cannot be read has no metric.

use std::{collections::HashMap, fs};

use prometheus::{
    core::{Collector, Desc},
    proto::{Counter, Gauge, Metric, MetricFamily, MetricType},
};

/// The kernel counts CPU time and the time since its start in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;
const CPU_SECONDS: &str = "process_cpu_seconds_total";
/// Name, description and value of a metric.
type ProcessMetric = (&'static str, &'static str, fn(&Files) -> Option<f64>);
const METRICS: [ProcessMetric; 7] = [
    (CPU_SECONDS, "User and system CPU time", |files| {
        Some((files.ticks(11)? + files.ticks(12)?) / TICKS_PER_SECOND)
    }),
    ("process_max_fds", "Maximum number of open file descriptors", |files| {
        number(&files.limits, "Max open files")
    }),
    ("process_open_fds", "Number of open file descriptors", |files| files.open.map(f64::from)),
    ("process_resident_memory_bytes", "Resident memory", |files| {
        Some(number(&files.status, "VmRSS:")? * 1024.0)
    }),
    ("process_start_time_seconds", "Start of the process in seconds since 1970", |files| {
        Some(number(&files.kernel, "btime")? + files.ticks(19)? / TICKS_PER_SECOND)
    }),
    ("process_threads", "Number of threads", |files| number(&files.status, "Threads:")),
    ("process_virtual_memory_bytes", "Virtual memory", |files| {
        Some(number(&files.status, "VmSize:")? * 1024.0)
    }),
];

pub(super) struct ProcessMetrics {
    descriptions: Vec<Desc>,
}

impl ProcessMetrics {
    pub(super) fn new() -> prometheus::Result<Self> {
        let describe = |(name, help, _): ProcessMetric| {
            Desc::new(name.to_owned(), help.to_owned(), Vec::new(), HashMap::new())
        };
        let descriptions = METRICS.into_iter().map(describe).collect::<Result<_, _>>()?;
        Ok(Self { descriptions })
    }
}

impl Collector for ProcessMetrics {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let files = Files::read();
        let metrics = METRICS.into_iter();
        metrics.filter_map(|(name, help, value)| Some(family(name, help, value(&files)?))).collect()
    }
}

fn family(name: &str, help: &str, value: f64) -> MetricFamily {
    let mut metric = Metric::default();
    let mut family = MetricFamily::default();
    if name == CPU_SECONDS {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
        family.set_field_type(MetricType::COUNTER);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
        family.set_field_type(MetricType::GAUGE);
    }
    family.set_name(name.to_owned());
    family.set_help(help.to_owned());
    family.set_metric(vec![metric]);
    family
}

/// The texts of the kernel, and the number of open files. A text that cannot be read is empty.
struct Files {
    stat: String,
    status: String,
    limits: String,
    kernel: String,
    open: Option<u32>,
}

impl Files {
    fn read() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        // One of the open files is the folder that is read here.
        let open = fs::read_dir("/proc/self/fd").map(|files| files.count().saturating_sub(1));
        Self {
            stat: text("/proc/self/stat"),
            status: text("/proc/self/status"),
            limits: text("/proc/self/limits"),
            kernel: text("/proc/stat"),
            open: open.ok().and_then(|count| count.try_into().ok()),
        }
    }

    /// A field of `stat` after the name of the process, which can contain spaces and parentheses.
    fn ticks(&self, field: usize) -> Option<f64> {
        let (_, fields) = self.stat.rsplit_once(')')?;
        fields.split_whitespace().nth(field)?.parse().ok()
    }
}

/// The number after a name at the start of a line.
fn number(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}
