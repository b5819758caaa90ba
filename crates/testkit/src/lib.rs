//! For tests only: a database and a broker namespace per test, a whole service in the test's process,
//! tokens and merchants for it, and servers to kill.
//!
//! `scripts/test` starts the shared servers. A test leaves nothing behind in them, except the
//! template databases of its test program.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up should panic"
)]

mod backup;
mod broker;
mod cluster;
mod connection;
mod contract;
mod database;
mod forms;
mod issuer;
mod listener;
mod locks;
mod reads;
mod replica;
mod republish;
mod request_bodies;
mod servers;
mod service;
mod settings;
mod template;

use std::{future::Future, time::Duration};

pub use backup::Backup;
pub use broker::Namespace;
pub use cluster::Cluster;
pub use connection::{count, try_count};
pub use contract::check_contract;
pub use database::{Database, ENDED_SESSIONS};
pub use forms::{check_compressed_forms, check_slow_form, check_unfinished_forms};
pub use issuer::{Issuer, add_endpoint, merchant, publish_merchant};
pub use listener::Listener;
pub use locks::check_requests_about_locked_rows;
pub use reads::{Reads, fill_rows, reads};
pub use replica::{CRASH_SETTINGS, MEMORY_LIMIT_KIB, Replica, free_port};
pub use republish::{republish, start_republish, wait_for_republish};
pub use request_bodies::{RequestBodies, check_request_body};
pub use servers::{Server, Servers};
pub use service::{
    DELIVERY_SETTINGS, SharedService, TestService, launch, process, run, sealing_keys, send,
};
pub use settings::check_setting_rejected;

/// Polls `check` until it returns a value. Fails the test after the timeout.
#[track_caller]
pub fn eventually<T, F, Fut>(what: &str, timeout: Duration, mut check: F) -> impl Future<Output = T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let caller = std::panic::Location::caller();
    async move {
        let waited = tokio::time::timeout(timeout, async {
            // A check is often a request to the service, which has to have time for other work.
            let mut pause = Duration::from_millis(10);
            loop {
                if let Some(found) = check().await {
                    return found;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(160));
            }
        });
        match waited.await {
            Ok(found) => found,
            Err(_elapsed) => panic!("{caller}: not within {timeout:?}: {what}"),
        }
    }
}

/// The number of cases of a test that makes up its input and needs the servers: `BACKHAUL_TEST_CASES`, or 12.
pub fn cases() -> u32 {
    optional_variable("BACKHAUL_TEST_CASES").unwrap_or(12)
}

/// An environment variable that need not be set, such as the size of a test that `scripts/test --all` enlarges.
fn optional_variable<T: std::str::FromStr<Err: std::fmt::Debug>>(name: &str) -> Option<T> {
    #[expect(clippy::disallowed_methods, reason = "tests have no other settings")]
    let value = std::env::var(name);
    value.ok().map(|value| value.parse().unwrap())
}

/// An environment variable that `scripts/test` sets.
fn test_variable(name: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "tests have no other settings")]
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run the tests with scripts/test"))
}

/// Writes logs with the filter in `RUST_LOG`; none without it.
fn show_logs() {
    use tracing_subscriber::{Layer as _, filter::Targets, fmt, prelude::*};
    let filter: Targets = optional_variable("RUST_LOG").unwrap_or_default();
    let lines = fmt::layer().with_test_writer().with_filter(filter);
    // The first test of a process sets the subscriber; later calls fail.
    drop(tracing_subscriber::registry().with(lines).try_init());
}

/// Runs async clean-up from a `Drop`, where nothing can be awaited.
fn clean_up(work: impl Future<Output = ()> + Send + 'static) {
    let thread = std::thread::spawn(|| {
        if let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() {
            runtime.block_on(work);
        }
    });
    if thread.join().is_err() {
        eprintln!("a test could not clean up after itself");
    }
}
