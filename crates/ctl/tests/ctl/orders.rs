//! Files of orders that are rejected.

use crate::app::TestApp;

/// The import of a file with only invalid orders sends nothing, so it needs no order intake.
async fn start() -> TestApp {
    let app = TestApp::start().await;
    app.set("ORDERS_URL", "http://127.0.0.1:1");
    app.set("CLIENT_ID", "acme");
    app.set("CLIENT_SECRET", "secret");
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_without_orders_is_an_error() {
    let app = start().await;
    for content in ["", " \n", "[]", r#"{"returns_portal_order": {"orders": []}}"#] {
        app.write("empty.json", content);
        let stderr = app.error("orders validate empty.json", 1).await;
        assert_eq!(stderr, "error: empty.json: no orders found\n", "{content}");
        let stderr = app.error("orders import empty.json", 1).await;
        let expected = "error: empty.json is not imported completely: no orders found\n";
        assert_eq!(stderr, expected, "{content}");
    }
    assert_eq!(app.error("orders validate -", 1).await, "error: -: no orders found\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_prints_the_first_errors_as_a_validation_does() {
    let app = start().await;
    app.write("bad.ndjson", "{\"identifier\": \"A-1\", \"items\": [{}]}\n{}\n");
    let validated = app.backhaul("orders validate bad.ndjson").await;
    let validated = String::from_utf8(validated.stdout).unwrap();
    let (errors, summary) = validated.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(summary, "2 orders checked, 2 would be rejected");
    let errors: Vec<_> = errors.lines().collect();
    let title = "bad.ndjson:1: order A-1, line 1: $.items[0].title: missing_field";
    assert!(errors.len() > 11 && errors.contains(&title), "{validated}");

    let stderr = app.error("orders import bad.ndjson", 1).await;
    let more = format!("bad.ndjson: {} more errors", errors.len() - 10);
    let after = [
        "bad.ndjson: 0 stored, 0 unchanged, 0 stale, 2 rejected",
        more.as_str(),
        "bad.ndjson: rejected orders are listed in bad.ndjson.rejected.csv",
    ];
    assert_eq!(stderr.lines().collect::<Vec<_>>(), [&errors[..10], &after].concat());
    let report = app.checkout.path().join("deep/bad.ndjson.rejected.csv");
    let report = std::fs::read_to_string(report).unwrap();
    assert_eq!(report.lines().next(), Some("file,line,order,field,code,detail"));
    assert_eq!(report.lines().count(), errors.len() + 1, "{report}");
}

/// Whether a terminal could interpret a character of the output.
fn is_unsafe(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[tokio::test(flavor = "multi_thread")]
async fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let app = start().await;
    let name = "E\\u001b[2J\u{9b}31m\u{202e}\\r";
    app.write("bad.ndjson", &format!("{{\"identifier\": \"{name}\", \"{name}\": 1}}\n"));
    for line in [
        "orders validate bad.ndjson",
        "orders validate bad.ndjson --json",
        "orders import bad.ndjson",
        "orders validate none\u{9b}\u{202e}.json",
        "orders \u{9b}\u{202e}",
        "merchant show acme\u{9b}\u{202e}",
        "person show ada\u{9b}\u{202e}@example.com",
        "person list --json",
    ] {
        let output = app.backhaul(line).await;
        for stream in [output.stdout, output.stderr] {
            let text = String::from_utf8(stream).unwrap();
            assert!(!text.contains(is_unsafe), "{line}: {text:?}");
        }
    }
    let validated = app.backhaul("orders validate bad.ndjson --json").await;
    let validated: serde_json::Value = serde_json::from_slice(&validated.stdout).unwrap();
    assert_eq!(validated["errors"][0]["order"], "E\u{1b}[2J\u{9b}31m\u{202e}\r", "{validated}");
}
