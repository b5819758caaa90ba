//! Mails to shoppers about their returns.

use diesel::sql_types::Text;
use domain::merchant::Language;
use testkit::MailServer;

use super::erasing::erased;
use super::exchanging::{exchange_of, placed};
use super::projecting::{order, refunded};
use super::*;

/// The service with a mail server, and acme, whose shoppers get mails.
async fn start(adjust: impl FnOnce(&mut Merchant)) -> (TestApp, MailServer) {
    let server = MailServer::start().await;
    let url: &'static str = Box::leak(server.url.clone().into_boxed_str());
    let settings = [("MAIL__URL", url), ("MAIL__FROM", "Backhaul <returns@mail.example>")];
    let app = TestApp::with_settings(&settings, |acme| {
        acme.settings.mails.reply_to = Some("returns@acme.example".to_owned());
        acme.settings.managed_receiving = true;
        adjust(acme);
    })
    .await;
    (app, server)
}

fn adas_order(identifier: &str, units: i64) -> Order {
    let mut order = order(identifier, units);
    order.customer.email = Some("Ada@shopper.example".to_owned());
    order
}

#[derive(QueryableByName)]
struct Body {
    #[diesel(sql_type = Text)]
    body: String,
}

impl TestApp {
    /// Waits until everything is delivered, and returns the bodies of the mails, oldest first.
    async fn mails(&self) -> Vec<Value> {
        self.arrivals("acme").await;
        let query = "SELECT convert_from(body, 'UTF8') AS body FROM delivery_messages \
                     WHERE kind = 'mail' ORDER BY created_at, id";
        let mut conn = self.pool.get().await.unwrap();
        let rows: Vec<Body> = diesel::sql_query(query).load(&mut conn).await.unwrap();
        rows.into_iter().map(|row| serde_json::from_str(&row.body).unwrap()).collect()
    }

    /// The recipients and subjects of the mails.
    async fn subjects(&self) -> Vec<(String, String)> {
        let text = |mail: &Value, name: &str| mail[name].as_str().unwrap().to_owned();
        let mails = self.mails().await;
        mails.iter().map(|mail| (text(mail, "to"), text(mail, "subject"))).collect()
    }
}

fn pair(to: &str, subject: String) -> (String, String) {
    (to.to_owned(), subject)
}

#[tokio::test]
async fn a_shopper_is_told_each_step_in_the_language_of_the_return() {
    let (app, server) = start(|acme| {
        acme.settings.appearance.languages = vec![Language::En, Language::De];
    })
    .await;
    let order = adas_order("A", 2);
    app.store("acme", &order).await;
    let mut body = refund_of("A", &[1, 2]);
    body["language"] = json!("de");
    let rma = app.start_return(&body).await;
    assert_eq!(app.show(&rma).await["language"], "de");
    let found = |number| {
        json!({ "finding": "received", "order_identifier": "A",
                                 "order_line_item_identifier": "A-1", "unit": number })
    };
    for number in [1, 2] {
        let (status, _) = app.receive(&rma, &json!({ "findings": [found(number)] })).await;
        assert_eq!(status, StatusCode::OK);
    }
    app.store("acme", &refunded(&order, "R1", 2, Some(&rma))).await;
    let mails = app.mails().await;
    let subjects: Vec<_> = mails.iter().map(|mail| mail["subject"].as_str().unwrap()).collect();
    let expected = [
        format!("Ihre Rückgabe {rma} ist bestätigt"),
        format!("Ihre Rückgabe {rma} ist angekommen"),
        format!("Ihre Erstattung für die Rückgabe {rma}"),
    ];
    assert_eq!(subjects, expected);
    // The address of the first mail is that of the request, later ones have the stored one.
    assert!(
        mails.iter().all(|mail| {
            mail["to"].as_str().unwrap().eq_ignore_ascii_case("ada@shopper.example")
        })
    );
    let link = format!("http://localhost:8080/{}/returns/{rma}?lang=de", app.service.own("acme"));
    assert!(mails[0]["text"].as_str().unwrap().contains(&link), "{}", mails[0]["text"]);
    let received = server.received();
    assert_eq!(received.len(), 3);
    for mail in received {
        assert!(mail.contains("Reply-To: returns@acme.example\r\n"), "{mail}");
        assert!(mail.contains("<returns@mail.example>\r\n"), "{mail}");
    }
    let sequences = "SELECT count(*) AS n FROM delivery_messages WHERE kind = 'mail' \
                     AND ordering_key LIKE 'mail:rma:%' AND event LIKE 'return.%' AND sequence <= 3";
    assert_eq!(app.number(sequences).await, 3);
}

#[tokio::test]
async fn a_gift_return_tells_the_giftee_and_never_the_buyer() {
    let (app, _server) = start(|_| {}).await;
    let order = adas_order("A", 1);
    app.store("acme", &order).await;
    let mut body = refund_of("A", &[1]);
    body["gift_refund_only"] = json!(true);
    body["giftee_email"] = json!("bob@gift.example");
    let rma = app.start_return(&body).await;
    app.store("acme", &refunded(&order, "R1", 1, Some(&rma))).await;
    let expected = [
        pair("bob@gift.example", format!("Your return {rma} is confirmed")),
        pair("bob@gift.example", format!("Your refund for return {rma}")),
    ];
    assert_eq!(app.subjects().await, expected);
    // The giftee sees no amounts.
    assert!(app.mails().await.iter().all(|mail| !mail.to_string().contains("21.65")));
}

#[tokio::test]
async fn a_withdrawal_is_acknowledged_to_the_person_who_withdrew() {
    let (app, _server) = start(|acme| acme.settings.appearance.withdrawal = true).await;
    app.store("acme", &adas_order("A", 1)).await;
    let mut body = refund_of("A", &[1]);
    body["units"][0]["return_reason"] = json!("withdrawal");
    body["withdrawal"] = json!({ "name": "Mia", "email": "mia@other.example" });
    let rma = app.start_return(&body).await;
    let expected = [
        pair("mia@other.example", format!("Acknowledgement of your withdrawal {rma}")),
        pair("mia@other.example", format!("Your return {rma} is confirmed")),
    ];
    assert_eq!(app.subjects().await, expected);
}

#[tokio::test]
async fn an_approval_an_exchange_and_a_decline_are_told() {
    let (app, _server) = start(|acme| {
        acme.settings.policy = serde_json::from_value(json!({ "rules": [
            { "id": "look", "then": { "review": { "within_days": 3, "then": "approve" } } },
        ] }))
        .unwrap();
    })
    .await;
    app.store("acme", &adas_order("A", 2)).await;
    app.store("acme", &adas_order("B", 1)).await;
    let approved = app.start_return(&exchange_of("A", &[1])).await;
    let declined = app.start_return(&refund_of("B", &[1])).await;
    // A request that waits is not told.
    assert!(app.mails().await.is_empty());
    let decide = async |rma: &str, decision: &str, body: Value| {
        let path = format!("/v1/returns/{rma}/{decision}");
        assert_eq!(app.post(&path, "acme", &body).await.0, StatusCode::OK);
    };
    decide(&approved, "approve", json!({})).await;
    decide(&declined, "decline", json!({ "note": "Worn <b>items</b>" })).await;
    app.publish_event(placed(&approved, "A", "X-7", &[1])).await;
    super::exchanging::until_progress(&app, &approved, &["placed"]).await;
    let mails = app.mails().await;
    let subjects: Vec<_> = mails.iter().map(|mail| mail["subject"].as_str().unwrap()).collect();
    let expected = [
        format!("Your return {approved} is confirmed"),
        format!("Your return {declined} was declined"),
        format!("Your new order for return {approved}"),
    ];
    assert_eq!(subjects, expected);
    let [_, decline, exchange] = &mails[..] else { panic!("{mails:?}") };
    assert!(decline["text"].as_str().unwrap().contains("The shop says: Worn <b>items</b>"));
    assert!(decline["html"].as_str().unwrap().contains("Worn &#60;b&#62;items"));
    assert!(exchange["text"].as_str().unwrap().contains("X-7"), "{exchange}");
}

#[tokio::test]
async fn a_shopper_is_reminded_once_before_the_return_expires() {
    let (app, _server) = start(|_| {}).await;
    app.store("acme", &adas_order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let reminders = "SELECT count(*) AS n FROM return_deadlines WHERE kind = 'reminder'";
    assert_eq!((app.deadlines().await, app.number(reminders).await), (2, 1));
    app.change_rows(
        "UPDATE return_deadlines SET started_at = started_at - interval '28 days', \
             due_at = now() - interval '1 second' WHERE kind = 'reminder'",
    )
    .await;
    eventually("the shopper is reminded", SOON, || async {
        app.show(&rma).await["reminded_at"].is_string().then_some(())
    })
    .await;
    // A later change of the return does not remind again.
    let label = json!({ "event_identifier": "1", "event": "label", "rma_identifier": rma,
                        "tracking_number": "1Z" });
    assert_eq!(app.carrier(&label).await.0, StatusCode::OK);
    assert_eq!(app.number(reminders).await, 0);
    let mails = app.mails().await;
    let subjects: Vec<_> = mails.iter().map(|mail| mail["subject"].as_str().unwrap()).collect();
    let expected =
        [format!("Your return {rma} is confirmed"), format!("Please send your return {rma}")];
    assert_eq!(subjects, expected);
    assert!(mails[1]["text"].as_str().unwrap().contains("Please drop it off by"), "{}", mails[1]);
    // The merchant is not told.
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.tracking_updated"]);
}

#[tokio::test]
async fn a_merchant_switches_mails_off() {
    let (app, server) = start(|acme| acme.settings.mails.events.confirmed = false).await;
    let order = adas_order("A", 1);
    app.store("acme", &order).await;
    app.store("rival", &order).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    // Rival has no address for replies.
    let (status, _) = app.post("/v1/returns", "rival", &refund_of("A", &[1])).await;
    assert_eq!(status, StatusCode::CREATED);
    app.store("acme", &refunded(&order, "R1", 1, Some(&rma))).await;
    let subjects = app.subjects().await;
    assert_eq!(subjects, [pair("ada@shopper.example", format!("Your refund for return {rma}"))]);
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn an_erased_shopper_gets_nothing_more_and_the_log_has_no_mail() {
    let (app, server) = start(|_| {}).await;
    server.respond(&[("RCPT", "550 5.1.1 <planted@mail.example>: no such user planted")]);
    let mut order = order("A", 2);
    order.customer.email = Some("planted@mail.example".to_owned());
    order.items[0].title = "PLANTED".to_owned();
    app.store("acme", &order).await;
    let rma = app.start_return(&refund_of("A", &[1, 2])).await;
    let planted = "SELECT count(*) AS n FROM delivery_messages AS message WHERE kind = 'mail' \
                   AND convert_from(body, 'UTF8') ILIKE '%planted%'";
    assert_eq!((app.mails().await.len(), app.number(planted).await), (1, 1));
    let in_log = "SELECT count(*) AS n FROM delivery_attempts AS attempt \
                  WHERE row_to_json(attempt)::text ILIKE '%planted%'";
    assert_eq!(app.number(in_log).await, 0, "the reason of a failure names no shopper");

    app.publish_event_at(erased(&["A"], true), Some(1000)).await;
    eventually("the mail is erased", SOON, || async {
        (app.number(planted).await == 0).then_some(())
    })
    .await;
    let mail = app.mails().await.remove(0);
    assert_eq!((&mail["to"], &mail["text"]), (&json!("erased@invalid"), &json!("erased")));
    // Neither a replay nor a later event reaches the shopper.
    server.respond(&[]);
    let id = "SELECT id::text AS body FROM delivery_messages WHERE kind = 'mail'";
    let mut conn = app.pool.get().await.unwrap();
    let id: Body = diesel::sql_query(id).get_result(&mut conn).await.unwrap();
    let replay = format!("/v1/deliveries/{}/replay", id.body);
    let token = app.issuer.token(Some("acme"), "replay");
    let (status, response) = app.send(Method::POST, &replay, &token, &[], None).await;
    assert!(status.is_success(), "{response}");
    app.store("acme", &refunded(&order, "R1", 2, Some(&rma))).await;
    assert_eq!(app.mails().await.len(), 1);
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_merchant_previews_its_words_and_sends_itself_a_test() {
    let (app, server) = start(|_| {}).await;
    let manager = app.issuer.token(Some("acme"), "manage");
    let send = async |path: &str, token: &str, body: &Value| {
        app.send(Method::POST, &format!("/v1/mails/{path}"), token, &[], Some(body)).await
    };
    let draft = json!({ "event": "refunded", "subject": "{shop} <b> {rma}", "opening": "Hello" });
    let (status, preview) = send("preview", &manager, &draft).await;
    assert_eq!(status, StatusCode::OK, "{preview}");
    assert_eq!(preview["subject"], "acme <b> RMA-SAMPLE");
    assert_eq!(
        (&preview["from_name"], &preview["reply_to"]),
        (&json!("acme"), &json!("returns@acme.example"))
    );
    assert!(preview["text"].as_str().unwrap().starts_with("Hello\n"), "{preview}");
    assert!(preview["html"].as_str().unwrap().contains("<h1"), "{preview}");
    for event in domain::merchant::MailEvent::ALL {
        let (status, preview) = send("preview", &manager, &json!({ "event": event })).await;
        assert_eq!(status, StatusCode::OK, "{preview}");
    }
    let foreign = json!({ "event": "refunded", "language": "fr" });
    let (status, refusal) = send("preview", &manager, &foreign).await;
    assert_eq!(
        (status, &refusal["errors"][0]["field"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("$.language"))
    );
    let reader = app.issuer.token(Some("acme"), "returns");
    assert_eq!(send("test", &reader, &draft).await.0, StatusCode::FORBIDDEN);

    let (status, sent) = send("test", &manager, &draft).await;
    assert_eq!(
        (status, &sent["to"]),
        (StatusCode::ACCEPTED, &json!("returns@acme.example")),
        "{sent}"
    );
    assert_eq!(app.mails().await[0]["subject"], "acme <b> RMA-SAMPLE");
    assert!(server.received()[0].contains("To: returns@acme.example\r\n"));
}

#[tokio::test]
async fn an_installation_without_a_mail_server_sends_no_tests() {
    let app = TestApp::with(|acme| {
        acme.settings.mails.reply_to = Some("returns@acme.example".to_owned());
    })
    .await;
    let manager = app.issuer.token(Some("acme"), "manage");
    let body = json!({ "event": "confirmed" });
    let preview = app.send(Method::POST, "/v1/mails/preview", &manager, &[], Some(&body)).await;
    assert_eq!(preview.0, StatusCode::OK, "{}", preview.1);
    let (status, refusal) =
        app.send(Method::POST, "/v1/mails/test", &manager, &[], Some(&body)).await;
    let message = "this installation sends no mails";
    assert_eq!((status, &refusal["message"]), (StatusCode::CONFLICT, &json!(message)));
    app.store("acme", &adas_order("A", 1)).await;
    app.start_return(&refund_of("A", &[1])).await;
    let mails =
        "SELECT count(*) AS n FROM delivery_messages WHERE merchant = 'acme' AND kind = 'mail'";
    assert_eq!(app.number(mails).await, 0);
}
