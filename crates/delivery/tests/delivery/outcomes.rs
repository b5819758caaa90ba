//! Outcomes of single messages.

use delivery::NewMessage;
use domain::merchant::{Authentication, CredentialsIn, Interface};
use domain::message_kind::{MessageKind, MessageVersion};
use expect_test::expect;
use serde_json::{Value, json};

use crate::test_app::{
    SECRET, TIMEOUT, TestApp, execute, merchant, message, sealer, store_merchant,
};
use testkit::eventually;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn a_message_arrives_once_and_signed_and_is_settled() {
    let app = TestApp::start(&[]).await;
    let ids = app.append(&[message(Some("rma:1"), "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let received = app.received().await;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].id, ids[0].to_string());
    assert_eq!((received[0].event.as_str(), received[0].sequence), ("rma.created", 1));
    assert_eq!(received[0].signature, json!("valid"));
    assert_eq!(received[0].body, json!({"number": 1}));
    let logged = "SELECT count(*) AS n FROM delivery_attempts \
                  WHERE settled = 'delivered' AND status = 200 AND number = 1 AND response_body <> ''";
    assert_eq!(app.count(logged).await, 1);
    assert_eq!(app.count("SELECT sum(attempts)::int8 AS n FROM delivery_counts").await, 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_keeps_the_version_in_which_its_body_was_written() {
    let app = TestApp::start(&[]).await;
    let mut chosen = merchant("acme", 2, &app.sandbox.url(""));
    let rma = Interface::Message(MessageKind::Rma);
    chosen.endpoints.get_mut(&rma).unwrap().version = Some(MessageVersion(5));
    store_merchant(&app.pool, &chosen).await;
    app.wait_for_merchant("acme", 2).await;
    let version = app.replica.deliveries.message_version(&chosen.identifier, MessageKind::Rma);
    assert_eq!(version, MessageVersion(5));
    let older = NewMessage { version: MessageVersion(4), ..message(None, "rma.created", 1) };
    app.behave(json!([{"do": "respond", "status": 503, "times": 1}])).await;
    app.append(&[older]).await;
    app.wait_until_settled(TIMEOUT).await;
    let sent: Vec<_> = app.received().await.into_iter().map(|it| it.version).collect();
    assert_eq!(sent, ["4", "4"], "the first attempt and its retry");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_a_rolled_back_transaction_is_not_sent() {
    let app = TestApp::start(&[]).await;
    let mut conn = app.pool.get().await.unwrap();
    let now = platform::Clock::system().now();
    let rolled_back = conn
        .transaction(async |conn| {
            let lost = [message(Some("rma:1"), "rma.created", 1)];
            app.replica.deliveries.append(conn, now, &lost).await.unwrap();
            Err::<(), _>(diesel::result::Error::RollbackTransaction)
        })
        .await;
    assert!(rolled_back.is_err());
    drop(conn);
    app.append(&[message(Some("rma:1"), "rma.created", 2)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let received = app.received().await;
    assert_eq!(received.len(), 1);
    assert_eq!((received[0].sequence, &received[0].body), (1, &json!({"number": 2})));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_dead_after_six_attempts_and_its_dead_letter_says_why() {
    let app =
        TestApp::start(&[("DELIVERY__RETRY_BASE", "40ms"), ("DELIVERY__RETRY_FACTOR", "2")]).await;
    app.behave(json!([{"do": "respond", "status": 503, "times": "always"}])).await;
    let ids = app.append(&[message(Some("rma:1"), "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let received = app.received().await;
    assert_eq!(received.len(), 6);
    assert!(received.iter().all(|message| message.id == ids[0].to_string()));
    assert!(received.iter().all(|message| message.body == json!({"number": 1})));
    for (number, pair) in received.windows(2).enumerate() {
        let delay = (pair[1].at - pair[0].at).num_milliseconds();
        let min_delay = 40 * 2_i64.pow(u32::try_from(number).unwrap()) * 9 / 10;
        assert!(delay >= min_delay, "delay {number}: {delay} ms, at least {min_delay}");
    }
    let letters = app.namespace.peek("notify.rma.dead").await;
    assert_eq!(letters.len(), 1);
    let headers = &letters[0]["properties"]["headers"];
    assert_eq!(letters[0]["payload"], "{\"number\":1}");
    assert_eq!(headers["delivery-id"], json!(ids[0].to_string()));
    assert_eq!(headers["endpoint"], json!(app.sandbox.url("/rmas")));
    let shown = ["merchant", "event", "attempts", "last-outcome", "last-status", "last-error"];
    expect!["acme, rma.created, 6, rejected, 503, responded with 503"]
        .assert_eq(&shown.map(|name| headers[name].as_str().unwrap()).join(", "));
    let event = eventually("the event", TIMEOUT, async || {
        app.namespace.peek("rma-engine.delivery.dead.v1").await.pop()
    })
    .await;
    let event: Value = serde_json::from_str(event["payload"].as_str().unwrap()).unwrap();
    assert_eq!(event["data"]["support_contact"]["email"], "help@acme.example");
    assert_eq!(event["data"]["delivery"], json!(ids[0]));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_published_once_even_if_settling_is_retried() {
    let app = TestApp::start(&[("DELIVERY__RETRIES", "0")]).await;
    // The first three inserts fail.
    let fail_inserts = "CREATE SEQUENCE tries; \
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('tries') <= 3 THEN RAISE EXCEPTION 'deadlock detected' \
             USING ERRCODE = 'deadlock_detected'; END IF; \
             RETURN NULL; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON delivery_attempts \
         FOR EACH STATEMENT EXECUTE FUNCTION refuse()";
    execute(&app.pool, fail_inserts).await;
    app.behave(json!([{"do": "respond", "status": 422, "times": 1}])).await;
    app.append(&[message(None, "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.count("SELECT last_value AS n FROM tries").await, 4);
    assert_eq!(app.namespace.peek("notify.rma.dead").await.len(), 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_dead_letter_delays_no_other_message() {
    let app = TestApp::start(&[("DELIVERY__RETRIES", "0")]).await;
    let dead_letter_queue = MessageKind::Rma.dead_letter_queue();
    app.namespace.limit_to_one_message(dead_letter_queue).await;
    let (publisher, mut filler) = (app.publisher(), app.queue_message(Uuid::nil(), &[]));
    filler.routing_key = format!("{}.{dead_letter_queue}", app.namespace.name);
    eventually("the queue is full", TIMEOUT, async || {
        let confirms = publisher.publish(&[filler.clone()]).await.unwrap();
        confirms[0].is_err().then_some(())
    })
    .await;
    app.behave(json!([{"do": "respond", "status": 422, "times": 1}])).await;
    let ids = app.append(&[message(None, "dead", 1)]).await;
    eventually("the message was attempted", TIMEOUT, async || {
        (app.received().await.len() == 1).then_some(())
    })
    .await;
    for number in 2..6 {
        app.append(&[message(None, "well", number)]).await;
        eventually("only the dead one is left", TIMEOUT, async || {
            (app.count("SELECT count(*) AS n FROM deliveries").await == 1).then_some(())
        })
        .await;
    }
    let dead = format!("SELECT count(*) AS n FROM deliveries WHERE id = '{}'", ids[0]);
    assert_eq!(app.count(&dead).await, 1);
    app.namespace.purge(dead_letter_queue).await;
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 5);
    assert_eq!(app.namespace.peek(dead_letter_queue).await.len(), 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gone_endpoint_gets_six_attempts_and_later_messages() {
    let app = TestApp::start(&[]).await;
    app.behave(json!([{"do": "respond", "status": 410, "times": 6}])).await;
    app.append(&[message(None, "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 6);
    assert_eq!(app.namespace.peek("notify.rma.dead").await.len(), 1);
    app.append(&[message(None, "rma.created", 2)]).await;
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 7);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_goes_to_the_current_url() {
    let app = TestApp::start(&[("DELIVERY__RETRY_BASE", "1h")]).await;
    app.behave(json!([{"do": "respond", "status": 503, "times": "always"}])).await;
    let ids = app.append(&[message(None, "rma.created", 1)]).await;
    let attempted = "SELECT count(*) AS n FROM deliveries WHERE attempts = 1";
    eventually("the message was attempted", TIMEOUT, async || {
        (app.count(attempted).await == 1).then_some(())
    })
    .await;
    store_merchant(&app.pool, &merchant("acme", 2, &app.sandbox.url("/moved"))).await;
    app.wait_for_merchant("acme", 2).await;
    execute(&app.pool, "UPDATE deliveries SET next_attempt_at = now()").await;
    execute(&app.pool, "UPDATE delivery_endpoints SET not_before = now()").await;
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 1);
    let moved =
        app.sandbox_request(reqwest::Method::GET, "/journal?path=/moved/rmas", &json!({})).await;
    assert_eq!(moved["entries"].as_array().unwrap().len(), 1);
    assert_eq!(moved["entries"][0]["headers"]["webhook-id"], json!(ids[0]));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_for_an_unknown_merchant_is_dead_lettered() {
    let app = TestApp::start(&[]).await;
    let mut unknown = message(None, "rma.created", 1);
    unknown.merchant = "nobody".parse().unwrap();
    app.append(&[unknown]).await;
    app.wait_until_settled(TIMEOUT).await;
    let letters = app.namespace.peek("notify.rma.dead").await;
    let headers = &letters[0]["properties"]["headers"];
    assert_eq!(headers["last-error"], "could not be reached: merchant nobody is unknown");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_endpoint_was_removed_is_dead_lettered() {
    let app = TestApp::start(&[]).await;
    let mut paused = merchant("acme", 2, &app.sandbox.url(""));
    paused.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    store_merchant(&app.pool, &paused).await;
    app.wait_for_merchant("acme", 2).await;
    app.append(&[message(None, "rma.created", 1)]).await;
    let mut removed = merchant("acme", 3, &app.sandbox.url(""));
    removed.endpoints.clear();
    store_merchant(&app.pool, &removed).await;
    app.wait_until_settled(TIMEOUT).await;
    assert!(app.received().await.is_empty());
    let letters = app.namespace.peek("notify.rma.dead").await;
    let headers = &letters[0]["properties"]["headers"];
    assert_eq!(headers["last-error"], "could not be reached: no URL is set for rma");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_error_of_a_token_server_is_shortened() {
    let app = TestApp::start(&[("DELIVERY__RETRIES", "0")]).await;
    let invalid = json!({"access_token": "a", "token_type": "bearer",
        "expires_in": "\u{7f}".repeat(65_000)});
    let step = json!({"do": "respond", "status": 200, "body": invalid, "times": "always"});
    let rule = json!({"path": "/oauth/token", "steps": [step]});
    app.sandbox_request(reqwest::Method::PUT, "/behaviour", &rule).await;
    let mut verbose = merchant("verbose", 1, &app.sandbox.url("/verbose"));
    let context = Interface::Message(MessageKind::Rma).sealing_context(&verbose.identifier);
    for endpoint in verbose.endpoints.values_mut() {
        endpoint.authentication = Authentication::Oauth2 {
            token_url: app.sandbox.url("/oauth/token").into(),
            client_id: "backhaul".to_owned(),
            client_secret: sealer().seal(&context, "secret").unwrap(),
            scope: None,
            credentials_in: CredentialsIn::Body,
        };
    }
    store_merchant(&app.pool, &verbose).await;
    app.wait_for_merchant("verbose", 1).await;
    let mut failing = message(None, "rma.created", 1);
    failing.merchant = "verbose".parse().unwrap();
    app.append(&[failing]).await;
    app.wait_until_settled(TIMEOUT).await;
    let letters = app.namespace.peek("notify.rma.dead").await;
    let why = letters[0]["properties"]["headers"]["last-error"].as_str().unwrap();
    assert!(why.starts_with("no token: the response of the token server is invalid"), "{why}");
    assert!(why.len() <= 500, "{} bytes", why.len());
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_message_is_dead_lettered_and_others_are_sent() {
    let app = TestApp::start(&[]).await;
    app.namespace.publish_raw("notify.rma", "this is not a delivery").await;
    app.append(&[message(None, "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    eventually("the dead letter", TIMEOUT, async || {
        let letters = app.namespace.peek("notify.rma.dead").await;
        letters.iter().any(|letter| letter["payload"] == "this is not a delivery").then_some(())
    })
    .await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_endpoint_receives_its_messages_when_it_is_resumed() {
    let app = TestApp::start(&[]).await;
    let mut paused = merchant("acme", 2, &app.sandbox.url(""));
    paused.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    store_merchant(&app.pool, &paused).await;
    app.wait_for_merchant("acme", 2).await;
    app.append(&[message(None, "rma.created", 1), message(None, "rma.created", 2)]).await;
    app.dispatched().await;
    let waiting = "SELECT count(*) AS n FROM deliveries WHERE state = 'ready' AND attempts = 0";
    assert_eq!(app.count(waiting).await, 2);
    assert!(app.received().await.is_empty());
    store_merchant(&app.pool, &merchant("acme", 3, &app.sandbox.url(""))).await;
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), 2);
    app.stop().await;
}

/// No other test sends exchange orders, so that their metrics are those of this test.
#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_that_settles_nothing_has_an_attempt_and_no_result() {
    let app = TestApp::with_api(&[]).await;
    let mut acme = merchant("acme", 2, &app.sandbox.url(""));
    let interface = Interface::Message(MessageKind::ExchangeOrder);
    let mut endpoint = acme.endpoints.values().next().unwrap().clone();
    let context = interface.sealing_context(&acme.identifier);
    endpoint.signing_secrets[0].secret = sealer().seal(&context, SECRET).unwrap();
    acme.endpoints.insert(interface, endpoint);
    store_merchant(&app.pool, &acme).await;
    app.wait_for_merchant("acme", 2).await;
    eventually("the API knows the endpoint", TIMEOUT, async || {
        let page = app.get("/v1/endpoints?merchant=acme").await;
        (page["endpoints"].as_array().unwrap().len() == 2).then_some(())
    })
    .await;
    // A copy of a message that was settled before.
    let mut copy = app.queue_message(Uuid::now_v7(), &[]);
    copy.routing_key = format!("{}.{}", app.namespace.name, MessageKind::ExchangeOrder.queue());
    app.publish(&[copy]).await;
    let counts = |metrics: &str, name: &str| {
        let is_counted = |line: &&str| line.starts_with(name) && line.contains("exchange-order");
        metrics.lines().filter(is_counted).map(str::to_owned).collect::<Vec<_>>()
    };
    let metrics = eventually("the attempt is counted", TIMEOUT, async || {
        let metrics = app.metrics().await;
        (!counts(&metrics, "backhaul_delivery_attempts_total{").is_empty()).then_some(metrics)
    })
    .await;
    assert_eq!(counts(&metrics, "backhaul_delivery_results_total{"), Vec::<String>::new());
    app.stop().await;
}
