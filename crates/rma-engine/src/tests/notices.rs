//! Notices to merchants about their own endpoints.

use domain::delivery::{DeliveryDead, EndpointHealthChanged, EndpointPaused};
use domain::merchant::{Interface, SupportContact};
use domain::message_kind::MessageKind;
use testkit::MailServer;
use uuid::Uuid;

use super::projecting::order;
use super::*;

impl TestApp {
    /// Publishes that a message of acme is dead, as a service does.
    async fn publish_dead(&self, kind: MessageKind, status: Option<u16>) {
        let at = Clock::system().now();
        self.publish_event(DeliveryDead {
            delivery: Uuid::now_v7(),
            merchant: "acme".parse().unwrap(),
            kind,
            event: "x".to_owned(),
            queue: kind.dead_letter_queue().to_owned(),
            attempts: 6,
            status,
            outcome: "rejected".to_owned(),
            detail: String::new(),
            first_attempt_at: at,
            last_attempt_at: at,
            support_contact: None,
        })
        .await;
    }

    /// Publishes that acme's endpoint for RMA messages fails since a minute of 2026, or failed until another one.
    async fn publish_health(&self, failing_since: &str, recovered_at: Option<&str>) {
        let time = |minute: &str| format!("2026-11-16T09:{minute}:00Z").parse().unwrap();
        self.publish_event(EndpointHealthChanged {
            merchant: "acme".parse().unwrap(),
            kind: MessageKind::Rma,
            failing_since: time(failing_since),
            recovered_at: recovered_at.map(time),
            status: Some(503),
        })
        .await;
    }

    /// Waits until this number of facts about an endpoint of acme waits for a notice.
    async fn facts(&self, interface: &str, count: i64) {
        eventually("the facts are stored", SOON, || async {
            let query = format!(
                "SELECT coalesce(sum((facts::jsonb ->> 'count')::bigint), 0)::bigint AS n FROM notices \
                 WHERE merchant = 'acme' AND interface = '{interface}'"
            );
            (self.number(&query).await == count).then_some(())
        })
        .await;
    }

    /// Makes the notices of acme due.
    async fn make_notices_due(&self) {
        self.change_rows(
            "UPDATE notices SET due_at = now() - interval '1 second' \
             WHERE merchant = 'acme' AND due_at IS NOT NULL",
        )
        .await;
    }

    /// Waits until acme has received this number of notices.
    async fn notices(&self, count: usize) -> Vec<sandbox::journal::Entry> {
        let url = self.sandbox.url("/journal?path=/acme/notices&limit=1000");
        eventually("the notices arrive", SOON, || async {
            let page: sandbox::journal::Page =
                self.client.get(&url).send().await.unwrap().json().await.unwrap();
            (page.entries.len() == count).then_some(page.entries)
        })
        .await
    }

    /// The last notice about an endpoint of acme was just sent, so that the next one is not due.
    async fn told_now(&self, interface: &str, event: &str) {
        self.change_rows(&format!(
            "INSERT INTO notices (merchant, interface, event, told_at) \
             VALUES ('acme', '{interface}', '{event}', now())"
        ))
        .await;
    }
}

#[tokio::test]
async fn a_merchant_is_told_of_dead_messages_together() {
    let app = TestApp::start().await;
    app.told_now("rma", "delivery.dead").await;
    // No message tells of notices, and nothing tells of mails.
    app.publish_dead(MessageKind::Mail, Some(550)).await;
    app.publish_dead(MessageKind::Notice, Some(500)).await;
    for status in [Some(503), None, Some(503)] {
        app.publish_dead(MessageKind::Rma, status).await;
    }
    app.facts("rma", 3).await;
    let of_mails =
        "SELECT count(*) AS n FROM notices WHERE merchant = 'acme' AND interface = 'mail'";
    assert_eq!(app.number(of_mails).await, 0);
    app.make_notices_due().await;
    let notice = app.notices(1).await.remove(0);
    assert_eq!(notice.headers["x-service-event"], "delivery.dead");
    assert_eq!(notice.headers["x-service-sequence"], "1");
    let body = notice.body;
    assert_eq!((&body["event"], &body["interface"]), (&json!("delivery.dead"), &json!("rma")));
    let statuses = json!([{ "status": null, "count": 1 }, { "status": 503, "count": 2 }]);
    assert_eq!((&body["count"], &body["statuses"]), (&json!(3), &statuses));
    assert!(body["text"].as_str().unwrap().contains("did not accept 3 messages"), "{body}");
    let url = body["console_url"].as_str().unwrap();
    assert!(url.starts_with("http://localhost:8086/deliveries?merchant=acme"), "{url}");
    assert!(url.ends_with("&kind=rma&state=dead"), "{url}");

    // The next one is due an hour later.
    app.publish_dead(MessageKind::Rma, Some(404)).await;
    app.facts("rma", 1).await;
    let later = "SELECT count(*) AS n FROM notices \
                 WHERE merchant = 'acme' AND due_at = told_at + interval '1 hour'";
    assert_eq!(app.number(later).await, 1);
    app.make_notices_due().await;
    let second = app.notices(2).await.remove(1);
    assert_eq!(
        (&second.body["count"], &second.headers["x-service-sequence"]),
        (&json!(1), &json!("2"))
    );
}

#[tokio::test]
async fn a_merchant_is_told_of_a_failure_and_then_of_the_recovery() {
    let app = TestApp::start().await;
    app.told_now("rma", "endpoint.failing").await;
    app.told_now("rma", "endpoint.recovered").await;
    app.publish_health("01", None).await;
    app.facts("rma", 1).await;
    app.make_notices_due().await;
    let failing = app.notices(1).await.remove(0).body;
    assert_eq!(failing["event"], "endpoint.failing");
    assert_eq!(failing["first_at"], "2026-11-16T09:01:00Z");
    assert_eq!(failing["statuses"], json!([{ "status": 503, "count": 1 }]));
    let url = failing["console_url"].as_str().unwrap();
    assert!(url.starts_with("http://localhost:8086/merchants/acme"), "{url}");
    assert!(url.ends_with("/endpoints"), "{url}");

    app.publish_health("01", Some("09")).await;
    app.facts("rma", 1).await;
    // The endpoint fails again before the merchant is told that it recovered, and the merchant hears nothing.
    app.publish_health("20", None).await;
    app.facts("rma", 0).await;
    app.publish_health("20", Some("30")).await;
    app.facts("rma", 1).await;
    app.make_notices_due().await;
    let recovered = app.notices(2).await.remove(1).body;
    assert_eq!(recovered["event"], "endpoint.recovered");
    assert_eq!(recovered["first_at"], "2026-11-16T09:20:00Z");
    assert_eq!(recovered["last_at"], "2026-11-16T09:30:00Z");
}

#[tokio::test]
async fn a_merchant_is_told_that_an_endpoint_was_paused() {
    let app = TestApp::start().await;
    app.told_now("exchange-variants", "endpoint.disabled").await;
    app.publish_event(EndpointPaused {
        merchant: "acme".parse().unwrap(),
        interface: Interface::Variants,
        paused_at: "2026-11-16T09:01:00Z".parse().unwrap(),
    })
    .await;
    app.facts("exchange-variants", 1).await;
    app.make_notices_due().await;
    let disabled = app.notices(1).await.remove(0).body;
    assert_eq!(disabled["event"], "endpoint.disabled");
    assert_eq!((&disabled["count"], &disabled["statuses"]), (&json!(1), &json!([])));
    assert!(disabled["text"].as_str().unwrap().contains("was paused"), "{disabled}");
}

#[tokio::test]
async fn a_merchant_without_an_endpoint_for_notices_is_told_nothing() {
    let app = TestApp::with(|acme| {
        acme.endpoints.remove(&Interface::Message(MessageKind::Notice));
    })
    .await;
    app.told_now("rma", "delivery.dead").await;
    app.publish_dead(MessageKind::Rma, None).await;
    app.facts("rma", 1).await;
    app.make_notices_due().await;
    app.facts("rma", 0).await;
    let messages = "SELECT count(*) AS n FROM delivery_messages WHERE merchant = 'acme'";
    assert_eq!(app.number(messages).await, 0);
}

#[tokio::test]
async fn a_failing_endpoint_is_reported_to_another_one() {
    let app = TestApp::with_settings(&[("DELIVERY__RETRIES", "0")], |_| {}).await;
    app.told_now("rma", "delivery.dead").await;
    for path in ["/acme/rmas", "/acme/notices"] {
        let step = json!({ "do": "respond", "status": 503, "times": "always" });
        let rule = json!({ "path": path, "steps": [step] });
        let url = app.sandbox.url("/behaviour");
        app.client.put(url).json(&rule).send().await.unwrap().error_for_status().unwrap();
    }
    app.store("acme", &order("A", 1)).await;
    app.start_return(&refund_of("A", &[1])).await;
    app.facts("rma", 1).await;
    app.make_notices_due().await;
    // The notice is refused too. That is the end of it.
    app.notices(1).await;
    eventually("the events of both dead messages are handled", SOON, || async {
        let handled = "SELECT count(*) AS n FROM inbox WHERE queue LIKE '%delivery.dead.v1'";
        (app.number(handled).await == 2).then_some(())
    })
    .await;
    app.make_notices_due().await;
    app.facts("notice", 0).await;
    let notices =
        "SELECT count(*) AS n FROM delivery_messages WHERE kind = 'notice' AND merchant = 'acme'";
    assert_eq!(app.number(notices).await, 1);
}

#[tokio::test]
async fn the_support_contact_is_told_by_mail_also_of_the_endpoint_for_notices() {
    let server = MailServer::start().await;
    let url: &'static str = Box::leak(server.url.clone().into_boxed_str());
    let settings = [("MAIL__URL", url), ("MAIL__FROM", "Backhaul <notices@mail.example>")];
    let app = TestApp::with_settings(&settings, |acme| {
        let email = "help@acme.example".to_owned();
        acme.settings.support_contact = Some(SupportContact { email, name: None, phone: None });
    })
    .await;
    app.told_now("notice", "delivery.dead").await;
    app.publish_dead(MessageKind::Notice, Some(500)).await;
    app.facts("notice", 1).await;
    app.make_notices_due().await;
    let mail = eventually("the mail arrives", SOON, || async { server.received().pop() }).await;
    assert!(mail.contains("To: help@acme.example\r\n"), "{mail}");
    assert!(mail.contains("Subject: acme: endpoint notice did not accept messages\r\n"), "{mail}");
    assert!(mail.contains("Auto-Submitted: auto-generated\r\n"), "{mail}");
    eventually("the mail is in the log", SOON, || async {
        let logged = "SELECT count(*) AS n FROM delivery_attempts JOIN delivery_messages AS message \
                      ON message.id = delivery WHERE kind = 'mail' AND settled = 'delivered' \
                      AND status = 250 AND ordering_key = 'mail:endpoint:notice'";
        (app.number(logged).await == 1).then_some(())
    })
    .await;
    app.facts("notice", 0).await;
    assert!(app.notices(0).await.is_empty());
}
