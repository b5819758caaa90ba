//! The pages of the inbox, and the mails as JSON for programs.

use actix_web::http::header::CONTENT_SECURITY_POLICY;
use actix_web::{HttpResponse, web};
use domain::mail::escape_html;
use serde::Deserialize;

use super::ReceivedMail;
use crate::Sandbox;

/// A mail can neither run scripts nor load anything but pictures.
const MAIL_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src http: https:; sandbox";
const STYLE: &str = "body{font-family:system-ui,sans-serif;margin:1.5rem;line-height:1.5}\
    table{border-collapse:collapse}td,th{padding:.25rem .75rem;text-align:left;vertical-align:top}\
    iframe{width:100%;max-width:640px;height:70vh;border:1px solid #888}pre{white-space:pre-wrap}";

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.route("/mails", web::get().to(show_inbox))
        .route("/mails.json", web::get().to(list_mails))
        .route("/mails/{number}", web::get().to(show_mail))
        .route("/mails/{number}/html", web::get().to(show_html));
}

/// A filter of the mails as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MailQuery {
    /// Only mails to this address.
    to: Option<String>,
}

async fn list_mails(sandbox: web::Data<Sandbox>, query: web::Query<MailQuery>) -> HttpResponse {
    if !sandbox.inbox.is_enabled() {
        return HttpResponse::NotFound().finish();
    }
    let mut mails = sandbox.inbox.all();
    if let Some(to) = &query.to {
        mails.retain(|mail| mail.to.iter().any(|it| it.eq_ignore_ascii_case(to)));
    }
    HttpResponse::Ok().json(mails)
}

async fn show_inbox(sandbox: web::Data<Sandbox>) -> HttpResponse {
    if !sandbox.inbox.is_enabled() {
        let text = "The sandbox receives no mails: set SANDBOX__MAIL__ENABLED=true.\n";
        return HttpResponse::NotFound().content_type("text/plain").body(text);
    }
    let rows: String = sandbox.inbox.all().iter().rev().map(row).collect();
    let head = "<meta http-equiv=\"refresh\" content=\"5\">";
    let body = format!(
        "<h1>Inbox</h1><table><tr><th>Received</th><th>To</th><th>Subject</th></tr>{rows}</table>"
    );
    page("Inbox", head, &body)
}

fn row(mail: &ReceivedMail) -> String {
    let time = mail.at.format("%Y-%m-%d %H:%M:%S UTC");
    let to = escape_html(&mail.to.join(", "));
    let subject = escape_html(&mail.subject);
    let number = mail.number;
    format!(
        "<tr><td>{time}</td><td>{to}</td><td><a href=\"/mails/{number}\">{subject}</a></td></tr>"
    )
}

async fn show_mail(sandbox: web::Data<Sandbox>, number: web::Path<u64>) -> HttpResponse {
    let Some(mail) = sandbox.inbox.find(*number) else { return HttpResponse::NotFound().finish() };
    let subject = escape_html(&mail.subject);
    let to = mail.to.join(", ");
    let facts = [("From", &mail.from), ("Reply to", &mail.reply_to), ("To", &to)];
    let fact = |(name, value): (&str, &String)| {
        format!("<tr><th>{name}</th><td>{}</td></tr>", escape_html(value))
    };
    let facts: String = facts.into_iter().map(fact).collect();
    let text = escape_html(&mail.text);
    let number = mail.number;
    let body = format!(
        "<p><a href=\"/mails\">Inbox</a></p><h1>{subject}</h1><table>{facts}</table>\
         <h2>HTML</h2><p><a href=\"/mails/{number}/html\">Open on its own</a></p>\
         <iframe src=\"/mails/{number}/html\" sandbox title=\"The mail as HTML\"></iframe>\
         <h2>Text</h2><pre>{text}</pre>"
    );
    page(&subject, "", &body)
}

async fn show_html(sandbox: web::Data<Sandbox>, number: web::Path<u64>) -> HttpResponse {
    let Some(mail) = sandbox.inbox.find(*number) else { return HttpResponse::NotFound().finish() };
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CONTENT_SECURITY_POLICY, MAIL_POLICY))
        .body(mail.html)
}

/// A page of HTML parts.
fn page(title: &str, head: &str, body: &str) -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body(format!(
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">{head}<title>{title}</title>\
         <style>{STYLE}</style></head><body>{body}</body></html>"
    ))
}
