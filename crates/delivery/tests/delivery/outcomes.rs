//! What becomes of one message.

use domain::merchant::{Authentication, CredentialsIn, Interface};
use domain::message_kind::MessageKind;
use expect_test::expect;
use serde_json::{Value, json};

use crate::stage::{SOON, Stage, copy, execute, introduce, merchant, message, publisher, sealer};
use testkit::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn a_message_arrives_once_signed_and_leaves_the_ledger() {
    let stage = Stage::new(&[]).await;
    let ids = stage.append(&[message(Some("rma:1"), "rma.created", 1)]).await;
    stage.settled(SOON).await;
    let arrivals = stage.arrivals().await;
    assert_eq!(arrivals.len(), 1);
    assert_eq!(arrivals[0].id, ids[0].to_string());
    assert_eq!((arrivals[0].event.as_str(), arrivals[0].sequence), ("rma.created", 1));
    assert_eq!(arrivals[0].signature, json!("valid"));
    assert_eq!(arrivals[0].body, json!({"number": 1}));
    let logged = "SELECT count(*) AS n FROM delivery_attempts \
                  WHERE settled = 'delivered' AND status = 200 AND number = 1 AND answer <> ''";
    assert_eq!(stage.number(logged).await, 1);
    assert_eq!(stage.number("SELECT sum(requests)::int8 AS n FROM delivery_counts").await, 1);
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_for_a_change_that_was_rolled_back() {
    use diesel_async::AsyncConnection;
    let stage = Stage::new(&[]).await;
    let mut conn = stage.pool.get().await.unwrap();
    let now = platform::Clock::system().now();
    let rolled_back = conn
        .transaction(async |conn| {
            let doomed = [message(Some("rma:1"), "rma.created", 1)];
            stage.replica.deliveries.append(conn, now, &doomed).await.unwrap();
            Err::<(), _>(diesel::result::Error::RollbackTransaction)
        })
        .await;
    assert!(rolled_back.is_err());
    drop(conn);
    stage.append(&[message(Some("rma:1"), "rma.created", 2)]).await;
    stage.settled(SOON).await;
    let arrivals = stage.arrivals().await;
    assert_eq!(arrivals.len(), 1);
    assert_eq!((arrivals[0].sequence, &arrivals[0].body), (1, &json!({"number": 2})));
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_six_requests_a_message_is_dead_and_an_operator_understands_why() {
    let stage =
        Stage::new(&[("DELIVERY__RETRY_BASE", "40ms"), ("DELIVERY__RETRY_FACTOR", "2")]).await;
    stage.behave(json!([{"do": "answer", "status": 503, "times": "always"}])).await;
    let ids = stage.append(&[message(Some("rma:1"), "rma.created", 1)]).await;
    stage.settled(SOON).await;
    let arrivals = stage.arrivals().await;
    assert_eq!(arrivals.len(), 6);
    assert!(arrivals.iter().all(|arrival| arrival.id == ids[0].to_string()));
    assert!(arrivals.iter().all(|arrival| arrival.body == json!({"number": 1})));
    for (number, pair) in arrivals.windows(2).enumerate() {
        let pause = (pair[1].at - pair[0].at).num_milliseconds();
        let least = 40 * 2_i64.pow(u32::try_from(number).unwrap()) * 9 / 10;
        assert!(pause >= least, "pause {number}: {pause} ms, at least {least}");
    }
    let letters = stage.namespace.peek("notify.rma.dead").await;
    assert_eq!(letters.len(), 1);
    let headers = &letters[0]["properties"]["headers"];
    assert_eq!(letters[0]["payload"], "{\"number\":1}");
    assert_eq!(headers["delivery-id"], json!(ids[0].to_string()));
    assert_eq!(headers["endpoint"], json!(stage.sandbox.url("/rmas")));
    let said = ["merchant", "event", "attempts", "last-outcome", "last-status", "last-error"];
    expect!["acme, rma.created, 6, rejected, 503, answered 503"]
        .assert_eq(&said.map(|name| headers[name].as_str().unwrap()).join(", "));
    let event = eventually("the event", SOON, async || {
        stage.namespace.peek("operators.delivery.dead.v1").await.pop()
    })
    .await;
    let event: Value = serde_json::from_str(event["payload"].as_str().unwrap()).unwrap();
    assert_eq!(event["data"]["support_contact"]["email"], "help@acme.example");
    assert_eq!(event["data"]["delivery"], json!(ids[0]));
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_is_written_once_however_often_settling_is_tried() {
    let stage = Stage::new(&[("DELIVERY__RETRIES", "0")]).await;
    // A ledger that can be read and, for three tries, not written to.
    let tries = "CREATE SEQUENCE tries; \
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('tries') <= 3 THEN RAISE EXCEPTION 'deadlock detected'; END IF; \
             RETURN NULL; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON delivery_attempts \
         FOR EACH STATEMENT EXECUTE FUNCTION refuse()";
    execute(&stage.pool, tries).await;
    stage.behave(json!([{"do": "answer", "status": 422, "times": 1}])).await;
    stage.append(&[message(None, "rma.created", 1)]).await;
    stage.settled(SOON).await;
    assert_eq!(stage.number("SELECT last_value AS n FROM tries").await, 4);
    assert_eq!(stage.namespace.peek("notify.rma.dead").await.len(), 1);
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_letter_that_the_broker_does_not_take_holds_nobody_up() {
    let stage = Stage::new(&[("DELIVERY__RETRIES", "0")]).await;
    let letters = MessageKind::Rma.dead_letter_queue();
    stage.namespace.bound(letters).await;
    let (publisher, mut filler) = (publisher(&stage), copy(&stage, uuid::Uuid::nil(), &[]));
    filler.routing_key = format!("{}.{letters}", stage.namespace.name);
    eventually("the queue takes no more", SOON, async || {
        let words = publisher.publish(&[filler.clone()]).await.unwrap();
        words[0].is_err().then_some(())
    })
    .await;
    stage.behave(json!([{"do": "answer", "status": 422, "times": 1}])).await;
    let ids = stage.append(&[message(None, "dead", 1)]).await;
    eventually("it was tried", SOON, async || (stage.arrivals().await.len() == 1).then_some(()))
        .await;
    for number in 2..6 {
        stage.append(&[message(None, "well", number)]).await;
        eventually("only the dead one is left", SOON, async || {
            (stage.number("SELECT count(*) AS n FROM deliveries").await == 1).then_some(())
        })
        .await;
    }
    let dead = format!("SELECT count(*) AS n FROM deliveries WHERE id = '{}'", ids[0]);
    assert_eq!(stage.number(&dead).await, 1);
    stage.namespace.purge(letters).await;
    stage.settled(SOON).await;
    assert_eq!(stage.arrivals().await.len(), 5);
    assert_eq!(stage.namespace.peek(letters).await.len(), 1);
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gone_endpoint_is_not_called_again_until_its_merchant_changes() {
    let stage = Stage::new(&[]).await;
    stage.behave(json!([{"do": "answer", "status": 410, "times": 1}])).await;
    stage.append(&[message(None, "rma.created", 1)]).await;
    stage.settled(SOON).await;
    assert_eq!(stage.arrivals().await.len(), 1);
    assert_eq!(stage.namespace.peek("notify.rma.dead").await.len(), 1);
    stage.append(&[message(None, "rma.created", 2)]).await;
    stage.looked().await;
    let waiting = "SELECT count(*) AS n FROM deliveries WHERE state = 'ready' AND attempts = 0";
    assert_eq!(stage.number(waiting).await, 1);
    assert_eq!(stage.arrivals().await.len(), 1);
    introduce(&stage.pool, &merchant("acme", 2, &stage.sandbox.url(""))).await;
    stage.settled(SOON).await;
    assert_eq!(stage.arrivals().await.len(), 2);
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_goes_where_its_merchant_is_by_then() {
    let stage = Stage::new(&[("DELIVERY__RETRY_BASE", "1h")]).await;
    stage.behave(json!([{"do": "answer", "status": 503, "times": "always"}])).await;
    let ids = stage.append(&[message(None, "rma.created", 1)]).await;
    let tried = "SELECT count(*) AS n FROM deliveries WHERE attempts = 1";
    eventually("it was tried", SOON, async || (stage.number(tried).await == 1).then_some(())).await;
    introduce(&stage.pool, &merchant("acme", 2, &stage.sandbox.url("/moved"))).await;
    stage.knows("acme", 2).await;
    execute(&stage.pool, "UPDATE deliveries SET due_at = now()").await;
    execute(&stage.pool, "UPDATE delivery_endpoints SET not_before = now()").await;
    stage.settled(SOON).await;
    assert_eq!(stage.arrivals().await.len(), 1);
    let moved = stage.ask(reqwest::Method::GET, "/journal?path=/moved/rmas", &json!({})).await;
    assert_eq!(moved["entries"].as_array().unwrap().len(), 1);
    assert_eq!(moved["entries"][0]["headers"]["webhook-id"], json!(ids[0]));
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_for_nobody_fails_like_any_other() {
    let stage = Stage::new(&[]).await;
    let mut lost = message(None, "rma.created", 1);
    lost.merchant = "nobody".parse().unwrap();
    stage.append(&[lost]).await;
    stage.settled(SOON).await;
    let letters = stage.namespace.peek("notify.rma.dead").await;
    let headers = &letters[0]["properties"]["headers"];
    assert_eq!(headers["last-error"], "could not be reached: merchant nobody is not known");
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_endpoint_was_removed_goes_nowhere() {
    let stage = Stage::new(&[]).await;
    let mut paused = merchant("acme", 2, &stage.sandbox.url(""));
    paused.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    introduce(&stage.pool, &paused).await;
    stage.knows("acme", 2).await;
    stage.append(&[message(None, "rma.created", 1)]).await;
    let mut removed = merchant("acme", 3, &stage.sandbox.url(""));
    removed.endpoints.clear();
    introduce(&stage.pool, &removed).await;
    stage.settled(SOON).await;
    assert!(stage.arrivals().await.is_empty());
    let letters = stage.namespace.peek("notify.rma.dead").await;
    let headers = &letters[0]["properties"]["headers"];
    assert_eq!(headers["last-error"], "could not be reached: no address is set for rma");
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_server_that_says_too_much_stops_nobody() {
    let stage = Stage::new(&[("DELIVERY__RETRIES", "0")]).await;
    let nonsense = json!({"access_token": "a", "token_type": "bearer",
        "expires_in": "\u{7f}".repeat(65_000)});
    let answer = json!({"do": "answer", "status": 200, "body": nonsense, "times": "always"});
    let rule = json!({"path": "/oauth/token", "steps": [answer]});
    stage.ask(reqwest::Method::PUT, "/behaviour", &rule).await;
    let mut chatty = merchant("chatty", 1, &stage.sandbox.url("/chatty"));
    let context = Interface::Message(MessageKind::Rma).sealing_context(&chatty.identifier);
    for endpoint in chatty.endpoints.values_mut() {
        endpoint.authentication = Authentication::Oauth2 {
            token_url: stage.sandbox.url("/oauth/token"),
            client_id: "backhaul".to_owned(),
            client_secret: sealer().seal(&context, "secret").unwrap(),
            scope: None,
            credentials_in: CredentialsIn::Body,
        };
    }
    introduce(&stage.pool, &chatty).await;
    stage.knows("chatty", 1).await;
    let mut lost = message(None, "rma.created", 1);
    lost.merchant = "chatty".parse().unwrap();
    stage.append(&[lost]).await;
    stage.settled(SOON).await;
    let letters = stage.namespace.peek("notify.rma.dead").await;
    let why = letters[0]["properties"]["headers"]["last-error"].as_str().unwrap();
    assert!(why.starts_with("no token: the token server's answer cannot be used"), "{why}");
    assert!(why.len() <= 500, "{} bytes", why.len());
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_nobody_can_read_is_put_aside_and_the_queue_moves_on() {
    let stage = Stage::new(&[]).await;
    stage.namespace.publish_raw("notify.rma", "this is not a delivery").await;
    stage.append(&[message(None, "rma.created", 1)]).await;
    stage.settled(SOON).await;
    eventually("the letter", SOON, async || {
        let letters = stage.namespace.peek("notify.rma.dead").await;
        letters.iter().any(|letter| letter["payload"] == "this is not a delivery").then_some(())
    })
    .await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_endpoint_waits_and_then_receives_everything() {
    let stage = Stage::new(&[]).await;
    let mut paused = merchant("acme", 2, &stage.sandbox.url(""));
    paused.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    introduce(&stage.pool, &paused).await;
    stage.knows("acme", 2).await;
    stage.append(&[message(None, "rma.created", 1), message(None, "rma.created", 2)]).await;
    stage.looked().await;
    let waiting = "SELECT count(*) AS n FROM deliveries WHERE state = 'ready' AND attempts = 0";
    assert_eq!(stage.number(waiting).await, 2);
    assert!(stage.arrivals().await.is_empty());
    introduce(&stage.pool, &merchant("acme", 3, &stage.sandbox.url(""))).await;
    stage.settled(SOON).await;
    assert_eq!(stage.arrivals().await.len(), 2);
    stage.leave().await;
}
