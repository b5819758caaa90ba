//! CPU time and parents of processes, as the kernel shows them in `/proc/PID/stat`.

use std::{fs, time::Duration};

use anyhow::Context as _;

/// The kernel counts CPU time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// User and system CPU time of a process so far, by pid or "self".
pub(crate) fn cpu_of(process: &str) -> anyhow::Result<Duration> {
    Ok(ticks(sum(&stat(process)?, 11, 2)))
}

/// CPU time of the children of this process that have exited.
pub(crate) fn cpu_of_exited_children() -> anyhow::Result<Duration> {
    Ok(ticks(sum(&stat("self")?, 13, 2)))
}

/// CPU time of a process and its children, including those that have exited.
pub(crate) fn cpu_with_children(pid: u32) -> anyhow::Result<Duration> {
    let pid = pid.to_string();
    let mut total = sum(&stat(&pid)?, 11, 4);
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(child) = name.to_str().filter(|name| name.parse::<u32>().is_ok()) else {
            continue;
        };
        // The process may have exited meanwhile.
        if let Ok(numbers) = stat(child)
            && numbers.get(1).is_some_and(|parent| *parent == pid)
        {
            total += sum(&numbers, 11, 2);
        }
    }
    Ok(ticks(total))
}

/// The parent of a process.
pub(crate) fn parent(pid: i32) -> anyhow::Result<u32> {
    Ok(stat(&pid.to_string())?.get(1).context("/proc/PID/stat has no parent")?.parse()?)
}

/// The fields of `/proc/PID/stat` after the name: state, parent, …. The name can contain spaces and
/// parentheses.
fn stat(process: &str) -> anyhow::Result<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, numbers) = stat.rsplit_once(')').context("/proc/PID/stat")?;
    Ok(numbers.split_whitespace().map(str::to_owned).collect())
}

fn sum(numbers: &[String], first: usize, fields: usize) -> f64 {
    numbers.iter().skip(first).take(fields).filter_map(|number| number.parse::<f64>().ok()).sum()
}

fn ticks(ticks: f64) -> Duration {
    Duration::from_secs_f64(ticks / TICKS_PER_SECOND)
}
