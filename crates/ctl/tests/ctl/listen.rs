//! `backhaul listen` against running services.

use std::process::Stdio;

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use platform::Clock;
use platform::signing::{Secret, SignedHeaders, verify};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr};

use crate::app::TestApp;

/// Starts the command with the credentials of a new client of acme. Returns when it waits for messages.
async fn listen(
    app: &TestApp,
    scopes: &str,
    options: &str,
) -> (Child, Lines<BufReader<ChildStderr>>) {
    app.add_client(scopes).await;
    let mut command = app.command(&format!("listen --as merchant {options}"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = errors.next_line().await.unwrap().unwrap();
    assert!(first.starts_with("waiting for new messages; copies go to http"), "{first}");
    (child, errors)
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_new_messages_are_sent_to_a_local_server() {
    let app = TestApp::with_delivery().await;
    let local = app.sandbox_url("/laptop/rmas");
    let (child, mut errors) =
        listen(&app, "--scope read --scope replay", &format!("--forward {local} --count 1")).await;
    let id = app.send_message(&json!({"number": 7})).await;
    let output = child.wait_with_output().await.unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{line}");
    assert_eq!(line, format!("{id}  rma.created  200\n"));
    assert_eq!(errors.next_line().await.unwrap(), None);

    let copy = app.received_at("/laptop/rmas", &id).await;
    let header = |name: &str| copy["headers"][name].as_str().unwrap();
    let signed = SignedHeaders {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
    };
    let secrets = [Secret::parse(app.signing_secret()).unwrap()];
    verify(&secrets, signed, b"{\"number\":7}", Clock::system().now()).unwrap();
    app.wait_for_state(&id, "delivered").await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_messages_does_not_delay_the_copies_of_another() {
    let app = TestApp::with_delivery().await;
    app.set("EXCHANGE_URL", &start_silent_service());
    // The URL has no path. The sandbox responds with 200 only at the default path of a kind.
    let local = app.sandbox_url("");
    let (mut child, mut errors) =
        listen(&app, "--scope read", &format!("--forward {local} --count 2")).await;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for number in [1, 2] {
        let id = app.send_message(&json!({ "number": number })).await;
        let line = lines.next_line().await.unwrap().unwrap();
        assert_eq!(line, format!("{id}  rma.created  200"));
    }
    assert!(child.wait().await.unwrap().success());
    let warning = errors.next_line().await.unwrap().unwrap();
    assert!(warning.starts_with("warning: the copies have no signature"), "{warning}");
    // The silent service has not responded. The end of the wait for it would be a warning.
    assert_eq!(errors.next_line().await.unwrap(), None);
    app.stop().await;
}

/// Starts a delivering service without messages. It never responds to a listener that waits for one.
fn start_silent_service() -> String {
    let server = HttpServer::new(|| App::new().route("/v1/messages", web::get().to(no_messages)));
    let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", server.addrs()[0]);
    #[expect(clippy::disallowed_methods, reason = "lives as long as the test")]
    tokio::spawn(server.run());
    url
}

async fn no_messages(request: HttpRequest) -> HttpResponse {
    if request.query_string().contains("after=") {
        std::future::pending::<()>().await;
    }
    HttpResponse::Ok().json(json!({ "messages": [], "next": uuid::Uuid::nil() }))
}
