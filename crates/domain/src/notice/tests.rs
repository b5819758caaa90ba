use expect_test::{expect, expect_file};
use serde_json::json;
use strum::VariantArray as _;

use super::*;
use crate::message_kind::MessageKind;
use crate::samples::SampleEvent;
use crate::schema::json_schema;

const RMA: Interface = Interface::Message(MessageKind::Rma);

fn at(minute: u32) -> DateTime<Utc> {
    format!("2026-11-16T09:{minute:02}:00Z").parse().unwrap()
}

fn facts(statuses: &[(Option<u16>, u32)]) -> NoticeFacts {
    let facts = statuses.iter().map(|(status, minute)| NoticeFacts::one(at(*minute), *status));
    facts
        .reduce(|mut facts, fact| {
            facts.add(&fact);
            facts
        })
        .unwrap()
}

#[test]
fn facts_are_counted_by_status_code() {
    let facts = facts(&[(Some(503), 7), (None, 9), (Some(404), 3), (Some(503), 8)]);
    let count = |status, count| StatusCount { status, count };
    let statuses = vec![count(None, 1), count(Some(404), 1), count(Some(503), 2)];
    assert_eq!(facts, NoticeFacts { count: 4, first_at: at(3), last_at: at(9), statuses });
}

#[test]
fn a_notice_has_a_sentence_for_people() {
    let text = |event, statuses: &[_]| {
        Notice::new(event, RMA, facts(statuses), "https://console.test/".to_owned()).text
    };
    let failing = text(NoticeEvent::EndpointFailing, &[(Some(503), 7)]);
    expect!["Your endpoint rma has accepted no message since 2026-11-16T09:07:00Z (status 503: 1). Its messages wait and are retried."]
        .assert_eq(&failing);
    let disabled = text(NoticeEvent::EndpointDisabled, &[(None, 8)]);
    expect!["Your endpoint rma was paused at 2026-11-16T09:08:00Z. Its messages wait until it is resumed."]
        .assert_eq(&disabled);
    let recovered = text(NoticeEvent::EndpointRecovered, &[(Some(503), 7), (Some(503), 9)]);
    expect!["Your endpoint rma accepts messages again since 2026-11-16T09:09:00Z. It had failed since 2026-11-16T09:07:00Z."]
        .assert_eq(&recovered);
    let one = text(NoticeEvent::DeliveryDead, &[(None, 9)]);
    expect!["Your endpoint rma did not accept a message, which was given up at 2026-11-16T09:09:00Z (no response: 1)."]
        .assert_eq(&one);
    let two = text(NoticeEvent::DeliveryDead, &[(Some(503), 7), (Some(503), 8), (None, 9)]);
    expect!["Your endpoint rma did not accept 3 messages, the last of which was given up at 2026-11-16T09:09:00Z (no response: 1, status 503: 2)."]
        .assert_eq(&two);
}

#[test]
fn a_mail_has_the_text_of_its_notice_and_escapes_every_value() {
    let notice = Notice::new(
        NoticeEvent::EndpointFailing,
        RMA,
        facts(&[(Some(503), 7)]),
        "https://console.test/?a=1&b=2".to_owned(),
    );
    let mail = notice.mail("<Acme> & \"Sons\"", "help@acme.example");
    assert_eq!(mail.subject, "<Acme> & \"Sons\": endpoint rma fails");
    assert!(mail.text.starts_with(&notice.text) && mail.text.contains(&notice.console_url));
    assert!(mail.html.contains("support contact of &lt;Acme&gt; &amp; &quot;Sons&quot;"));
    assert!(mail.html.contains("href=\"https://console.test/?a=1&amp;b=2\""), "{}", mail.html);
}

#[test]
fn the_message_schema_is_up_to_date() {
    let schema = json_schema::<Notice>("Notice message");
    expect_file!["../../../../proto-schemas/messages/notice.schema.json"]
        .assert_eq(&format!("{schema:#}\n"));
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    for event in NoticeEvent::VARIANTS {
        let facts = facts(&[(Some(503), 7), (None, 9)]);
        let notice = json!(Notice::new(*event, RMA, facts, "https://console.test/".to_owned()));
        let errors: Vec<_> = validator.iter_errors(&notice).map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{notice:#}\n{errors:?}");
    }
}

#[test]
fn every_event_of_a_notice_has_a_sample() {
    for event in NoticeEvent::VARIANTS {
        let sample = SampleEvent::find(event.as_str()).unwrap();
        assert_eq!(sample.kind, MessageKind::Notice, "{event}");
        let version = MessageKind::Notice.versions()[0];
        let notice: Notice = serde_json::from_str(&sample.body(version, at(0)).unwrap()).unwrap();
        assert_eq!(notice.event, *event);
        let facts = NoticeFacts {
            count: notice.count,
            first_at: notice.first_at,
            last_at: notice.last_at,
            statuses: notice.statuses.clone(),
        };
        assert_eq!(Notice::new(*event, RMA, facts, notice.console_url.clone()), notice);
    }
}
