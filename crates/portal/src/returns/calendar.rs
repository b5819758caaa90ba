//! The calendar entry of the drop-off (RFC 5545).

use actix_web::{
    HttpRequest, HttpResponse, get,
    http::header::{CONTENT_DISPOSITION, CONTENT_TYPE},
    web,
};
use chrono::{DateTime, NaiveDate, Utc};

use super::{model::Return, return_url};
use crate::{App, error::PageError, hosts, page::Page, visit::Proven};

/// The longest line in bytes, without the line break.
const MAX_LINE_BYTES: usize = 75;

struct Event<'a> {
    uid: String,
    made_at: DateTime<Utc>,
    day: NaiveDate,
    /// The code of the language of the texts.
    language: &'a str,
    summary: String,
    description: String,
    url: String,
}

#[get("/{merchant}/returns/{rma}/drop-off.ics")]
pub(super) async fn show_drop_off(
    app: web::Data<App>,
    Proven(visit): Proven,
    path: web::Path<(String, String)>,
    request: HttpRequest,
) -> Result<HttpResponse, PageError> {
    let (_, name) = path.into_inner();
    let rma = Return::load(&visit, &name).await?;
    let page = Page::new(&visit, None);
    let day = rma.drop_off_day(&page.portal).filter(|_| rma.needs_drop_off());
    let day = day.ok_or(PageError::NotFound)?;
    let origin = hosts::origin(&app, &request)?;
    let event = Event {
        uid: format!("{}@{}", rma.rma_identifier, visit.merchant()),
        made_at: visit.now,
        day,
        language: page.language.code(),
        summary: page.t1("calendar-summary", "shop", &page.portal.name),
        description: page.t1("calendar-description", "rma", &rma.rma_identifier),
        url: format!("{origin}{}", return_url(&visit, &rma.rma_identifier, "")),
    };
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/calendar; charset=utf-8"))
        .insert_header((CONTENT_DISPOSITION, "attachment; filename=\"drop-off.ics\""))
        .body(calendar(&event)))
}

fn calendar(event: &Event<'_>) -> String {
    let day = |day: NaiveDate| day.format("%Y%m%d").to_string();
    let Event { uid, language, url, .. } = event;
    let lines = [
        "BEGIN:VCALENDAR".to_owned(),
        "VERSION:2.0".to_owned(),
        "PRODID:-//Backhaul//Returns portal//EN".to_owned(),
        "CALSCALE:GREGORIAN".to_owned(),
        "BEGIN:VEVENT".to_owned(),
        format!("UID:{}", escaped(uid)),
        format!("DTSTAMP:{}", event.made_at.format("%Y%m%dT%H%M%SZ")),
        format!("DTSTART;VALUE=DATE:{}", day(event.day)),
        // The end is exclusive.
        format!("DTEND;VALUE=DATE:{}", day(event.day.succ_opt().unwrap_or(event.day))),
        format!("SUMMARY;LANGUAGE={language}:{}", escaped(&event.summary)),
        format!("DESCRIPTION;LANGUAGE={language}:{}", escaped(&event.description)),
        format!("URL:{}", url.replace(char::is_control, "")),
        "TRANSP:TRANSPARENT".to_owned(),
        "END:VEVENT".to_owned(),
        "END:VCALENDAR".to_owned(),
    ];
    lines.iter().map(|line| folded(line)).collect()
}

/// A text value. Control characters other than line breaks are not allowed.
fn escaped(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | ';' | ',' => value.extend(['\\', letter]),
            '\n' => value.push_str("\\n"),
            letter if letter.is_control() => {}
            letter => value.push(letter),
        }
    }
    value
}

/// A line with its line break. Long lines continue after a line break and a space; a letter stays whole.
fn folded(line: &str) -> String {
    let mut text = String::with_capacity(line.len() + 2);
    let mut bytes = 0;
    for letter in line.chars() {
        if bytes + letter.len_utf8() > MAX_LINE_BYTES {
            text.push_str("\r\n ");
            bytes = 1;
        }
        text.push(letter);
        bytes += letter.len_utf8();
    }
    text.push_str("\r\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Event<'static> {
        Event {
            uid: "RMA-1@acme".to_owned(),
            made_at: "2026-11-16T09:30:05Z".parse().unwrap(),
            day: "2026-12-31".parse().unwrap(),
            language: "de",
            summary: "Paket abgeben, bitte; Ümläute \\".to_owned(),
            description: "ä€".repeat(60),
            url: "https://returns.acme.test/returns/RMA-1".to_owned(),
        }
    }

    #[test]
    fn an_event_covers_the_day_of_the_drop_off() {
        let text = calendar(&event());
        assert!(text.starts_with("BEGIN:VCALENDAR\r\nVERSION:2.0\r\n"), "{text}");
        assert!(text.ends_with("END:VEVENT\r\nEND:VCALENDAR\r\n"), "{text}");
        for line in [
            "UID:RMA-1@acme",
            "DTSTAMP:20261116T093005Z",
            "DTSTART;VALUE=DATE:20261231",
            "DTEND;VALUE=DATE:20270101",
            "SUMMARY;LANGUAGE=de:Paket abgeben\\, bitte\\; Ümläute \\\\",
            "URL:https://returns.acme.test/returns/RMA-1",
        ] {
            assert!(text.contains(&format!("\r\n{line}\r\n")), "{line} in {text}");
        }
    }

    #[test]
    fn long_lines_are_folded_between_letters() {
        let event = event();
        let text = calendar(&event);
        assert!(text.split("\r\n").all(|line| line.len() <= MAX_LINE_BYTES), "{text}");
        assert!(!text.replace("\r\n", "").contains(['\r', '\n']));
        let unfolded = text.replace("\r\n ", "");
        let description = format!("DESCRIPTION;LANGUAGE=de:{}\r\n", event.description);
        assert!(unfolded.contains(&description), "{unfolded}");
    }

    #[test]
    fn a_text_cannot_add_lines() {
        assert_eq!(escaped("a\r\nEND:VEVENT\u{7}"), "a\\nEND:VEVENT");
        assert_eq!(folded(&"x".repeat(75)), format!("{}\r\n", "x".repeat(75)));
        assert_eq!(folded(&"x".repeat(76)), format!("{}\r\n x\r\n", "x".repeat(75)));
    }
}
