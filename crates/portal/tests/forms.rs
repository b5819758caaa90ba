//! The portal as a process, and forms that fill memory or do not arrive.

use testkit::Replica;

const SETTINGS: [(&str, &str); 3] = [
    ("CLIENT__ID", "cl_1"),
    ("CLIENT__SECRET", "a-client-secret"),
    ("SEALING__KEYS", "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
];

#[tokio::test(flavor = "multi_thread")]
async fn compressed_forms_fit_into_128_mib() {
    let replica = Replica::start_pages("portal", env!("CARGO_BIN_EXE_portal"), &SETTINGS).await;
    testkit::check_compressed_forms(&replica, &["/sign-out"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_does_not_arrive_is_a_timeout_of_the_request() {
    let settings = [&SETTINGS[..], &[("HTTP__BODY_TIMEOUT", "300ms")]].concat();
    let replica = Replica::start_pages("portal", env!("CARGO_BIN_EXE_portal"), &settings).await;
    for path in ["/sign-out"] {
        testkit::check_slow_form(&replica, path).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_forms_leave_memory_for_others() {
    let limits = [("HTTP__MAX_INFLIGHT", "0"), ("HTTP__BODY_TIMEOUT", "5m")];
    let settings = [&SETTINGS[..], &limits, &[("HTTP__REQUEST_TIMEOUT", "5m")]].concat();
    let replica = Replica::start_pages("portal", env!("CARGO_BIN_EXE_portal"), &settings).await;
    testkit::check_unfinished_forms(&replica, "/sign-out").await;
}
