//! The inbox: mails over SMTP, as pages and as JSON.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::*;
use crate::mails::ReceivedMail;

const HEAD: &str = "From: =?utf-8?b?QWNtw6k=?= <returns@mail.example>\r\n\
                    Reply-To: returns@acme.example\r\nTo: ada@shopper.example\r\n";
const PARTS: &str = "MIME-Version: 1.0\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n\
    --b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
    Gr=C3=B6=C3=9Fe\r\n..dot\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Hi</p>\r\n--b--\r\n";

fn with_inbox() -> TestApp {
    let mut settings = Settings::for_tests().unwrap();
    settings.mail.enabled = true;
    let running = start(&settings).unwrap();
    TestApp { running, client: platform::http_client(Duration::from_secs(300)).unwrap() }
}

/// Sends a whole session and returns the responses.
async fn session(app: &TestApp, commands: &str) -> String {
    let mut stream = TcpStream::connect(app.running.mail_address.unwrap()).await.unwrap();
    stream.write_all(commands.as_bytes()).await.unwrap();
    let mut responses = String::new();
    stream.read_to_string(&mut responses).await.unwrap();
    responses
}

async fn text(app: &TestApp, path: &str) -> String {
    app.client.get(app.running.url(path)).send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn a_mail_is_shown_with_its_parts() {
    let app = with_inbox();
    let mail = format!("{HEAD}Subject: <b>Hi</b>\r\n{PARTS}");
    let responses = session(
        &app,
        &format!(
            "EHLO test\r\nMAIL FROM:<returns@mail.example>\r\nRCPT TO:<Ada@shopper.example>\r\n\
             DATA\r\n{mail}.\r\nVRFY x\r\nQUIT\r\n"
        ),
    )
    .await;
    let codes: Vec<_> = responses.lines().filter_map(|line| line.get(..3)).collect();
    assert_eq!(codes, ["220", "250", "250", "250", "250", "250", "354", "250", "502", "221"]);
    let listed = app.get("/mails.json?to=ada@shopper.example").await;
    let [mail] = &serde_json::from_value::<Vec<ReceivedMail>>(listed).unwrap()[..] else {
        panic!("one mail")
    };
    assert_eq!((mail.number, mail.from.as_str()), (1, "Acmé <returns@mail.example>"));
    assert_eq!(
        (mail.reply_to.as_str(), mail.subject.as_str()),
        ("returns@acme.example", "<b>Hi</b>")
    );
    assert_eq!(mail.text.lines().collect::<Vec<_>>(), ["Größe", ".dot"]);
    assert_eq!(app.get("/mails.json?to=other@shopper.example").await, json!([]));
    for path in ["/mails", "/mails/1"] {
        let page = text(&app, path).await;
        assert!(page.contains("&lt;b&gt;Hi&lt;/b&gt;") && !page.contains("<b>Hi"), "{page}");
        assert!(page.contains("Ada@shopper.example"), "{page}");
    }
    assert_eq!(text(&app, "/mails/1/html").await.trim_end(), "<p>Hi</p>");
    assert_eq!(app.client.get(app.running.url("/mails/2")).send().await.unwrap().status(), 404);
}

#[tokio::test]
async fn mails_are_off_until_they_are_enabled() {
    let app = TestApp::new();
    assert_eq!(app.running.mail_address, None);
    for path in ["/mails", "/mails.json"] {
        assert_eq!(app.client.get(app.running.url(path)).send().await.unwrap().status(), 404);
    }
}
