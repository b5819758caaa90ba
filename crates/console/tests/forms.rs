//! The console as a process, and forms that fill memory or do not arrive.

use testkit::Replica;

/// The second form needs a session.
const PATHS: [&str; 3] = ["/sign-in", "/people/new", "/invitation"];

#[tokio::test(flavor = "multi_thread")]
async fn compressed_forms_fit_into_128_mib() {
    let replica = Replica::start_pages("console", env!("CARGO_BIN_EXE_console"), &[]).await;
    testkit::check_compressed_forms(&replica, &PATHS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_does_not_arrive_is_a_timeout_of_the_request() {
    let settings = [("HTTP__BODY_TIMEOUT", "300ms")];
    let replica = Replica::start_pages("console", env!("CARGO_BIN_EXE_console"), &settings).await;
    for path in PATHS {
        testkit::check_slow_form(&replica, path).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_forms_leave_memory_for_others() {
    let limits = [("HTTP__MAX_INFLIGHT", "0"), ("HTTP__BODY_TIMEOUT", "5m")];
    let settings = [&limits[..], &[("HTTP__REQUEST_TIMEOUT", "5m")]].concat();
    let replica = Replica::start_pages("console", env!("CARGO_BIN_EXE_console"), &settings).await;
    for path in PATHS {
        testkit::check_unfinished_forms(&replica, path).await;
    }
}
