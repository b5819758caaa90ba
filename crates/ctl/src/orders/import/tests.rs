//! Imports into a scripted order intake.

mod reporting;
mod resuming;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::order::sample::{Orders, document};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::UsageError;
use crate::orders::batch::Batch;

type Handler = dyn FnMut(&str, Value) -> (u16, &'static str, Value) + Send;

/// An HTTP server that responds as `handler` decides.
struct FakeIntake {
    url: String,
    /// Identifiers of the orders that got 200.
    stored: Arc<Mutex<Vec<String>>>,
    /// Number of token requests that still get 429.
    rate_limited: Arc<AtomicU64>,
}

impl FakeIntake {
    fn start(mut handler: Box<Handler>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stored = Arc::new(Mutex::new(Vec::new()));
        let all_stored = stored.clone();
        let rate_limited = Arc::new(AtomicU64::new(0));
        let remaining = rate_limited.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                respond(stream.unwrap(), &mut handler, &all_stored, &remaining);
            }
        });
        Self { url, stored, rate_limited }
    }

    fn importer(&self) -> Importer {
        let url = self.url.parse().unwrap();
        Importer {
            intake: IntakeClient::for_test(&url),
            batch: 3,
            parallel: 2,
            report: None,
            format: Format::Text,
        }
    }

    fn stored(&self) -> Vec<String> {
        let mut stored = self.stored.lock().unwrap().clone();
        stored.sort();
        stored
    }
}

/// Responds to one request and closes the connection.
fn respond(
    stream: TcpStream,
    handler: &mut Box<Handler>,
    stored: &Mutex<Vec<String>>,
    rate_limited: &AtomicU64,
) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    let mut length = 0;
    reader.read_line(&mut line).unwrap();
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if header.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let (status, header, body_sent) = match &*path {
        "/oauth/token" if rate_limited.load(Ordering::SeqCst) > 0 => {
            rate_limited.fetch_sub(1, Ordering::SeqCst);
            (429, "retry-after: 0\r\n", json!({ "message": "slow down" }))
        }
        "/oauth/token" => (200, "", json!({ "access_token": "t" })),
        _ => handler(&path, body.clone()),
    };
    if status == 200 && path != "/oauth/token" {
        stored.lock().unwrap().extend(identifiers(&body));
    }
    let response = body_sent.to_string();
    let _closed = write!(
        reader.get_mut(),
        "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{header}\r\n{response}",
        response.len()
    );
}

fn identifiers(message: &Value) -> Vec<String> {
    let orders = message["returns_portal_order"]["orders"].as_array().unwrap();
    orders.iter().map(|order| order["identifier"].as_str().unwrap().to_owned()).collect()
}

fn accept(message: &Value) -> (u16, &'static str, Value) {
    let orders: Vec<_> = identifiers(message)
        .into_iter()
        .map(|identifier| json!({ "identifier": identifier, "result": "stored" }))
        .collect();
    (200, "", json!({ "message": "ok", "orders": orders }))
}

/// A file of ten orders, the last of which is invalid.
fn file() -> (TempDir, Source, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.ndjson");
    let orders = Orders::new(1, "2026-03-01T00:00:00Z".parse().unwrap()).take(9);
    let mut lines: Vec<_> = orders.map(|order| document(&order).to_string()).collect();
    lines.push("{}".to_owned());
    std::fs::write(&path, lines.join("\n")).unwrap();
    let name = path.to_str().unwrap().to_owned();
    (folder, Source::from(name.as_str()), name)
}

async fn import(
    intake: &FakeIntake,
    (_, source, name): &(TempDir, Source, String),
) -> anyhow::Result<Summary> {
    let (_interrupt, interrupted) = watch::channel(false);
    let importer = intake.importer();
    importer.prepare_reports(std::slice::from_ref(source))?;
    importer.import(source, name, interrupted).await
}

/// Replaces the intake in the file's checkpoint, so that an import at `new` resumes one at `old`.
fn replace_intake(file: &(TempDir, Source, String), old: &FakeIntake, new: &FakeIntake) {
    let checkpoint = format!("{}.import", file.2);
    let content = std::fs::read_to_string(&checkpoint).unwrap().replace(&old.url, &new.url);
    std::fs::write(&checkpoint, content).unwrap();
}

fn report(file: &(TempDir, Source, String)) -> String {
    std::fs::read_to_string(format!("{}.rejected.csv", file.2)).unwrap()
}

#[tokio::test]
async fn every_order_is_stored_or_reported() {
    let file = file();
    let intake = FakeIntake::start(Box::new(|_, message| accept(&message)));
    let summary = import(&intake, &file).await.unwrap();
    assert_eq!((summary.stored, summary.rejected, summary.warnings), (9, 1, 0));
    assert_eq!(intake.stored().len(), 9);
    assert!(report(&file).contains(",10,,$.identifier,missing_field,"), "{}", report(&file));
}

#[tokio::test]
async fn warnings_are_counted() {
    let file = file();
    let lines = std::fs::read_to_string(&file.2).unwrap();
    let mut order: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    order["curency"] = json!("USD");
    let message = json!({ "returns_portal_order": { "orders": [order] } });
    std::fs::write(&file.2, format!("{message:#}")).unwrap();
    let intake = FakeIntake::start(Box::new(|_, message| accept(&message)));
    let summary = import(&intake, &file).await.unwrap();
    assert_eq!(summary, Summary { stored: 1, warnings: 1, ..Summary::default() });
}

#[tokio::test]
async fn rejected_orders_are_removed_and_the_others_sent_again() {
    let file = file();
    let intake = FakeIntake::start(Box::new(|_, message| {
        match identifiers(&message).iter().position(|identifier| identifier.ends_with("0000005")) {
            Some(index) => {
                let field = format!("$.returns_portal_order.orders[{index}].refunds[0]");
                let errors = json!([{ "field": field, "code": "invalid", "detail": "changed" }]);
                (422, "", json!({ "message": "no", "errors": errors }))
            }
            None => accept(&message),
        }
    }));
    let summary = import(&intake, &file).await.unwrap();
    assert_eq!((summary.stored, summary.rejected, summary.warnings), (8, 2, 0));
    assert!(report(&file).contains(",5,1-0000005,$.refunds[0],invalid,changed"));
}

#[tokio::test]
async fn messages_that_are_too_large_are_halved() {
    for status in [400, 408, 413] {
        let file = file();
        let intake =
            FakeIntake::start(Box::new(move |_, message| match identifiers(&message).len() {
                1 => accept(&message),
                _ => (status, "", json!({ "message": "too much" })),
            }));
        assert_eq!(import(&intake, &file).await.unwrap().stored, 9, "{status}");
    }
}

#[tokio::test]
async fn an_error_of_every_message_ends_the_import() {
    let file = file();
    let intake =
        FakeIntake::start(Box::new(|_, _| (400, "", json!({ "message": "name a merchant" }))));
    let error = import(&intake, &file).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the order intake responded with 400 Bad Request: name a merchant"
    );
}

#[tokio::test]
async fn a_single_order_that_times_out_is_retried() {
    let file = file();
    let mut slow = 3;
    let intake = FakeIntake::start(Box::new(move |_, message| match identifiers(&message).len() {
        1 if slow == 0 => accept(&message),
        size => {
            slow -= u8::from(size == 1);
            (408, "", json!({ "message": "too slow" }))
        }
    }));
    assert_eq!(import(&intake, &file).await.unwrap().stored, 9);

    let never = FakeIntake::start(Box::new(|_, _| (408, "", json!({ "message": "too slow" }))));
    let error = import(&never, &file).await.unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        "gave up after 3 retries: the order intake responded with 408 Request Timeout"
    );
}

#[tokio::test]
async fn rate_limits_and_transient_failures_are_retried() {
    let file = file();
    let mut statuses = vec![429, 503, 429, 401, 500, 502];
    let intake = FakeIntake::start(Box::new(move |_, message| match statuses.pop() {
        Some(429) => (429, "retry-after: 0\r\n", json!({ "message": "slow down" })),
        Some(status) => (status, "", json!({ "message": "later" })),
        None => accept(&message),
    }));
    assert_eq!(import(&intake, &file).await.unwrap().stored, 9);
}

#[tokio::test]
async fn token_requests_wait_for_every_rate_limit() {
    let file = file();
    let intake = FakeIntake::start(Box::new(|_, message| accept(&message)));
    intake.rate_limited.store(10, Ordering::SeqCst);
    // `retry-after: 0` asks for no pause; the default pause is one second.
    let imported = timeout(Duration::from_secs(10), import(&intake, &file)).await;
    assert_eq!(imported.unwrap().unwrap().stored, 9);
    assert_eq!(intake.rate_limited.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn an_unreadable_rejection_is_retried() {
    let file = file();
    let mut broken = 3;
    let intake = FakeIntake::start(Box::new(move |_, message| {
        if broken == 0 {
            return accept(&message);
        }
        broken -= 1;
        (422, "", json!("the rest is missing"))
    }));
    assert_eq!(import(&intake, &file).await.unwrap().stored, 9);

    let never = FakeIntake::start(Box::new(|_, _| (422, "", json!("<html>"))));
    let error = format!("{:#}", import(&never, &file).await.unwrap_err());
    let expected = "gave up after 3 retries: the order intake responded with 422 Unprocessable \
                    Entity and an unreadable body: error decoding response body";
    assert!(error.starts_with(expected), "{error}");
}

#[tokio::test]
async fn a_panic_of_the_reader_is_not_the_end_of_the_file() {
    let intake = FakeIntake::start(Box::new(|_, message| accept(&message)));
    // The closed interrupt channel must not end the import.
    let (_, interrupted) = watch::channel(false);
    let batches = (0..2).map(|number| match number {
        0 => Ok(Batch { number, end: 1, ..Batch::default() }),
        _ => panic!("a panic in the validation"),
    });
    let importer = intake.importer();
    let finished: Vec<_> = importer.send_all(batches, interrupted).collect().await;
    let [Ok(first), Err(error)] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!(first.end, 1);
    assert_eq!(error.to_string(), "the reader panicked: this is a bug in this program");
}

#[tokio::test]
async fn snapshots_of_one_order_arrive_in_the_order_of_the_file() {
    let file = file();
    let lines = std::fs::read_to_string(&file.2).unwrap();
    let mut orders: Vec<Value> =
        lines.lines().take(9).map(|line| serde_json::from_str(line).unwrap()).collect();
    // The same order in the first, the second and the third batch.
    for (index, note) in [(0, "first"), (3, "second"), (7, "third")] {
        orders[index] = orders[0].clone();
        orders[index]["note"] = json!(note);
    }
    let lines: Vec<_> = orders.iter().map(Value::to_string).collect();
    std::fs::write(&file.2, lines.join("\n")).unwrap();
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noted = notes.clone();
    let mut failures = 2;
    let intake = FakeIntake::start(Box::new(move |_, message| {
        let orders = message["returns_portal_order"]["orders"].as_array().unwrap();
        let note = orders.iter().find_map(|order| order["note"].as_str()).unwrap();
        if note == "first" && failures > 0 {
            failures -= 1;
            return (503, "", json!({ "message": "later" }));
        }
        noted.lock().unwrap().push(note.to_owned());
        accept(&message)
    }));
    assert_eq!(import(&intake, &file).await.unwrap().stored, 9);
    assert_eq!(*notes.lock().unwrap(), ["first", "second", "third"]);
}
