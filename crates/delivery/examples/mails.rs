//! Sends mails with hostile values to the SMTP server at the URL in the first argument, and prints each with its outcome
//! as a JSON object per line, for `tests/mail.py`, which has a server that others wrote.

use std::time::Duration;

use anyhow::{Context as _, Result};
use delivery::attempt::{Message, ResponseBody};
use delivery::{MailSettings, Mailer};
use domain::mail::{Mail, escape_html};
use domain::message_kind::{MessageKind, MessageVersion};
use platform::Clock;
use serde_json::json;

/// Subjects and texts.
const TEXTS: [(&str, &str); 7] = [
    ("Endpoint rma fails", "Plain.\n"),
    ("a\r\nBcc: evil@evil.example", "Dots:\n.\n..\nQUIT\nMAIL FROM:<evil@evil.example>\n"),
    ("a\n\n<script>alert(1)</script>", "<script>alert(1)</script> & \"quotes\" 'and' more\n"),
    ("Größe 返品 🧦", "Größe 返品 🧦 \u{202e}txt.exe\n"),
    ("Evil =3D =", "=?utf-8?q?evil?= =3D =\n"),
    ("From: evil@evil.example", "From here on: evil@evil.example\n"),
    ("", "\n"),
];
const RECIPIENTS: [&str; 4] = [
    "help+returns@acme.example",
    "help@refused.example",
    "help@later.example",
    "help@\u{430}cme.example",
];

#[tokio::main]
#[expect(clippy::print_stdout, reason = "the mails are the output")]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1).context("the URL of a mail server is missing")?;
    let settings: MailSettings = serde_json::from_value(json!({
        "url": url, "from": "Returns <returns@mail.example>",
        "max_per_second": 1000, "max_per_domain": 1000,
    }))?;
    let mailer = Mailer::new(&settings)?.context("the URL is empty")?;
    let long = format!("{}\n", "x".repeat(3000));
    let long_subject = "y ".repeat(600);
    let texts = TEXTS.into_iter().chain([(long_subject.as_str(), long.as_str())]);
    let mails = texts.map(|text| (RECIPIENTS[0], text));
    let refused = RECIPIENTS.into_iter().skip(1).map(|to| (to, TEXTS[0]));
    for (to, (subject, text)) in mails.chain(refused) {
        let mail = Mail {
            to: to.to_owned(),
            // Merchants choose the names of senders.
            from_name: Some(subject.to_owned()),
            reply_to: Some("returns@acme.example".to_owned()),
            subject: subject.to_owned(),
            text: text.to_owned(),
            html: format!("<!DOCTYPE html><html><body><p>{}</p></body></html>", escape_html(text)),
        };
        let message = Message {
            id: uuid::Uuid::now_v7().to_string(),
            merchant: "acme".to_owned(),
            kind: MessageKind::Mail,
            version: MessageVersion(1),
            event: "sample".to_owned(),
            sequence: 1,
            traceparent: None,
            body: serde_json::to_vec(&mail)?.into(),
            response_body: ResponseBody::Ignored,
        };
        // The second attempt sends the same mail.
        for _ in 0..2 {
            let now = Clock::system().now();
            let attempt = mailer.deliver(&message, now, Duration::from_secs(60)).await;
            let outcome = (attempt.outcome.name(), attempt.outcome.status());
            println!("{}", json!({ "id": message.id, "mail": mail, "outcome": outcome }));
        }
    }
    Ok(())
}
