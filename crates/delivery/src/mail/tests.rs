use std::num::NonZeroU32;

use domain::message_kind::{MessageKind, MessageVersion};
use testkit::MailServer;

use super::*;
use crate::attempt::ResponseBody;
use crate::outcome::Signal;

/// It begins with the time 2026-11-16T09:30:00Z.
const ID: &str = "01a1e3b1-25c0-7000-8000-000000000001";

fn mailer(url: &str) -> Mailer {
    let limit = NonZeroU32::new(1000).unwrap();
    let settings = MailSettings {
        url: url.into(),
        from: "Returns <returns@mail.example>".to_owned(),
        max_per_second: limit,
        max_per_domain: limit,
    };
    Mailer::new(&settings).unwrap().unwrap()
}

fn message(mail: &Mail) -> Message {
    Message {
        id: ID.to_owned(),
        merchant: "acme".to_owned(),
        kind: MessageKind::Mail,
        version: MessageVersion(1),
        event: "endpoint.failing".to_owned(),
        sequence: 1,
        traceparent: None,
        body: serde_json::to_vec(mail).unwrap().into(),
        response_body: ResponseBody::Ignored,
    }
}

fn mail(subject: &str, text: &str) -> Mail {
    let to = "help@acme.example".to_owned();
    let html = format!("<p>{text}</p>");
    let (subject, text) = (subject.to_owned(), text.to_owned());
    Mail { to, from_name: None, reply_to: None, subject, text, html }
}

fn built(mail: &Mail) -> String {
    let mailer = mailer("smtp://127.0.0.1");
    let formatted = || mailer.build(&message(mail)).unwrap().formatted();
    assert_eq!(formatted(), formatted(), "every attempt sends the same mail");
    String::from_utf8(formatted()).unwrap()
}

/// The header lines of a mail, with folded lines in one.
fn headers(mail: &str) -> Vec<String> {
    let (headers, _) = mail.split_once("\r\n\r\n").unwrap();
    headers.replace("\r\n ", " ").replace("\r\n\t", " ").split("\r\n").map(str::to_owned).collect()
}

#[tokio::test]
async fn a_mail_has_a_stable_id_and_date_and_says_that_it_is_automatic() {
    let headers = headers(&built(&mail("Endpoint rma fails", "Größe")));
    for header in
        ["To: help@acme.example", "Subject: Endpoint rma fails", "Auto-Submitted: auto-generated"]
    {
        assert!(headers.iter().any(|line| line == header), "{header} in {headers:?}");
    }
    let from = headers.iter().find(|line| line.starts_with("From: ")).unwrap();
    assert!(from.ends_with("<returns@mail.example>"), "{from}");
    let id = format!("Message-ID: <{ID}@mail.example>");
    assert!(headers.iter().any(|line| line.eq_ignore_ascii_case(&id)), "{headers:?}");
    let seconds = time_of(ID).unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let created: Timestamp = "2026-11-16T09:30:00Z".parse().unwrap();
    assert_eq!(i64::try_from(seconds), Ok(created.timestamp()));
}

#[test]
fn the_text_of_a_server_does_not_name_the_recipient() {
    for (text, kept) in [
        ("550 5.1.1 <Ada@b.example>: unknown user", "550 5.1.1 (recipient) unknown user"),
        ("550 user ada not found in ada.example", "550 user (recipient) not found in ada.example"),
        ("554 spam", "554 spam"),
    ] {
        assert_eq!(without_recipient(text, "ada@b.example"), kept);
    }
}

#[tokio::test]
async fn a_mail_has_the_name_and_the_reply_address_of_its_merchant() {
    let mut mail = mail("S", "T");
    mail.from_name = Some("Acme \"Returns\"".to_owned());
    mail.reply_to = Some("returns@acme.example".to_owned());
    let headers = headers(&built(&mail));
    let from = headers.iter().find(|line| line.starts_with("From: ")).unwrap();
    assert_eq!(from, r#"From: "Acme \"Returns\"" <returns@mail.example>"#);
    let reply_to = "Reply-To: returns@acme.example";
    assert!(headers.iter().any(|line| line == reply_to), "{headers:?}");
}

#[tokio::test]
async fn a_mail_of_an_erased_shopper_reaches_no_server() {
    let server = MailServer::start().await;
    let mut body = serde_json::to_value(mail("S", "T")).unwrap();
    domain::erasure::erase_mail(&mut body);
    let erased = serde_json::from_value(body).unwrap();
    let attempt =
        mailer(&server.url).deliver(&message(&erased), Timestamp::UNIX_EPOCH, Duration::MAX).await;
    let Outcome::MailRefused { status: None, text } = &attempt.outcome else {
        panic!("{attempt:?}")
    };
    assert_eq!(text, "the shopper was erased");
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn no_value_adds_a_header_or_a_line_that_is_too_long() {
    let line = "x".repeat(2000);
    for (subject, text) in [
        ("a\r\nBcc: evil@evil.example", "a\r\n.\r\nQUIT\r\n"),
        ("a\nBcc: evil@evil.example\n\nbody", "\u{202e}txt.exe"),
        ("\u{202e}evil", line.as_str()),
        (line.as_str(), "Ünï¢öde 返品"),
    ] {
        let mail = built(&mail(subject, text));
        let headers = headers(&mail);
        assert!(headers.iter().all(|line| !line.to_lowercase().starts_with("bcc:")), "{mail}");
        let subjects = headers.iter().filter(|line| line.starts_with("Subject: "));
        assert_eq!(subjects.count(), 1, "{mail}");
        assert!(mail.split("\r\n").all(|line| line.len() <= 998), "{mail}");
    }
}

#[tokio::test]
async fn each_response_of_the_server_has_its_outcome() {
    let server = MailServer::start().await;
    let message = message(&mail("S", "T"));
    let send = async |responses: &[(&'static str, &'static str)]| {
        server.respond(responses);
        let now = Timestamp::UNIX_EPOCH;
        mailer(&server.url).deliver(&message, now, Duration::from_secs(60)).await
    };
    let sent = send(&[]).await;
    assert_eq!((&sent.outcome, sent.signal), (&Outcome::Delivered { status: 250 }, Signal::Grow));
    assert!(sent.response_log.contains("queued as 7"), "{}", sent.response_log);
    assert_eq!(server.received().len(), 1);

    let refused = send(&[("RCPT", "550 5.1.1 <help@ACME.example>: no such user")]).await.outcome;
    let Outcome::MailRefused { status: Some(550), text } = &refused else { panic!("{refused:?}") };
    assert!(text.contains("no such user") && !text.contains("help"), "{text}");
    let deferred = send(&[("RCPT", "450 4.2.0 greylisted")]).await.outcome;
    assert!(matches!(deferred, Outcome::MailDeferred { status: 450, .. }), "{deferred:?}");
    let after_data = send(&[(".", "554 5.7.1 spam")]).await.outcome;
    let is_refused = matches!(after_data, Outcome::MailRefused { status: Some(554), .. });
    assert!(is_refused, "{after_data:?}");
    let lost = send(&[("DATA", "")]).await;
    assert!(matches!(lost.outcome, Outcome::Unreachable(_)), "{:?}", lost.outcome);
    assert_eq!((lost.signal, server.received().len()), (Signal::Shrink, 1));
}

#[tokio::test]
async fn a_mail_without_an_address_reaches_no_server() {
    let server = MailServer::start().await;
    let mut mail = mail("S", "T");
    mail.to = "nobody".to_owned();
    let attempt =
        mailer(&server.url).deliver(&message(&mail), Timestamp::UNIX_EPOCH, Duration::MAX).await;
    assert!(matches!(attempt.outcome, Outcome::MailRefused { status: None, .. }), "{attempt:?}");
    assert!(server.received().is_empty());
}
