//! What operators and merchants see and may do, over HTTP.

use diesel_async::{AsyncConnection as _, SimpleAsyncConnection as _};
use platform::Clock;
use reqwest::Method;
use serde_json::json;
use testkit::eventually;

use crate::desk::{Desk, token};
use crate::stage::{SOON, execute, message};

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_message_is_found_replayed_and_its_letter_removed() {
    let desk = Desk::new(&[]).await;
    let dead = desk.kill(message(Some("rma:1"), "rma.created", 1)).await;
    desk.stage.append(&[message(Some("rma:2"), "rma.created", 2)]).await;
    desk.stage.settled(SOON).await;

    assert_eq!(desk.get("/v1/deliveries").await["deliveries"].as_array().unwrap().len(), 2);
    for query in ["state=dead", "status=500", "ordering_key=rma:1&merchant=acme&kind=rma"] {
        let page = desk.get(&format!("/v1/deliveries?{query}")).await;
        assert_eq!(page["deliveries"].as_array().unwrap().len(), 1, "{query}: {page}");
        assert_eq!(page["deliveries"][0]["id"], json!(dead), "{query}");
    }
    for query in [
        "state=pending",
        "status=404",
        "merchant=other",
        "to=2020-01-01T00:00:00Z",
        "from=2100-01-01T00:00:00Z",
    ] {
        let page = desk.get(&format!("/v1/deliveries?{query}")).await;
        assert_eq!(page["deliveries"], json!([]), "{query}");
    }
    let page = desk.get("/v1/deliveries").await;
    let newest = page["deliveries"][0]["created_at"].as_str().unwrap();
    let from = desk.get(&format!("/v1/deliveries?from={}", newest.replace('+', "%2B"))).await;
    assert_eq!(from["deliveries"][0], page["deliveries"][0], "{newest}");
    assert_eq!(from["deliveries"].as_array().unwrap().len(), 1, "{newest}");
    let first = desk.get("/v1/deliveries?limit=1").await;
    let next = first["next"].as_str().unwrap();
    let second = desk.get(&format!("/v1/deliveries?limit=1&after={next}")).await;
    assert_eq!(second["deliveries"][0]["id"], json!(dead));

    let shown = desk.get(&format!("/v1/deliveries/{dead}")).await;
    assert_eq!((&shown["state"], &shown["body"]), (&json!("dead"), &json!("{\"number\":1}")));
    assert_eq!(shown["requests"].as_array().unwrap().len(), 6);

    assert_eq!(desk.stage.namespace.peek("notify.rma.dead").await.len(), 1);
    let path = format!("/v1/deliveries/{dead}/replay");
    assert_eq!(desk.operator(Method::POST, &path, &json!({})).await.0, 202);
    let recorded = format!(
        "SELECT count(*) AS n FROM delivery_replays WHERE requested_by = 'somebody' \
         AND filter = '{{\"delivery\": \"{dead}\"}}' AND replayed = 1 AND finished_at IS NOT NULL"
    );
    assert_eq!(desk.stage.number(&recorded).await, 1);
    desk.stage.settled(SOON).await;
    assert_eq!(desk.get(&format!("/v1/deliveries/{dead}")).await["state"], "delivered");
    let ids: Vec<_> = desk.stage.arrivals().await.into_iter().map(|arrival| arrival.id).collect();
    assert_eq!(ids.iter().filter(|id| **id == dead.to_string()).count(), 7);
    eventually("the letter is gone", SOON, async || {
        desk.stage.namespace.peek("notify.rma.dead").await.is_empty().then_some(())
    })
    .await;
    let report = desk.get("/v1/reports/deliveries?merchant=acme").await;
    let counts: Vec<_> = report["counts"].as_array().unwrap().iter().collect();
    let of = |status: u16| {
        let fits = counts.iter().filter(|count| count["status"] == json!(status));
        fits.map(|count| count["requests"].as_i64().unwrap()).sum::<i64>()
    };
    assert_eq!((of(500), of(200)), (6, 2));
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_message_that_waits_for_its_time_has_one() {
    let desk = Desk::new(&[]).await;
    let mut conn = desk.stage.pool.get().await.unwrap();
    let now = Clock::system().now();
    // Written and moved on in one go, before the dispatcher can see them.
    let ids = conn
        .transaction(async |conn| {
            let ordering_keys = ["rma:1", "rma:1", "rma:2"];
            let batch =
                ordering_keys.map(|ordering_key| message(Some(ordering_key), "rma.created", 1));
            let ids = desk.stage.replica.deliveries.append(conn, now, &batch).await?;
            let moved = format!(
                "UPDATE deliveries SET due_at = due_at + INTERVAL '1 hour', state = CASE id \
                 WHEN '{}' THEN 'queued' WHEN '{}' THEN 'held' ELSE 'ready' END",
                ids[0], ids[1]
            );
            conn.batch_execute(&moved).await?;
            Ok::<_, platform::database::DatabaseError>(ids)
        })
        .await
        .unwrap();
    drop(conn);
    let mut due = Vec::new();
    for id in ids {
        due.push(desk.get(&format!("/v1/deliveries/{id}")).await["due_at"].take());
    }
    assert!(due[0].is_null() && due[1].is_null(), "{due:?}");
    let later: platform::Timestamp = due[2].as_str().unwrap().parse().unwrap();
    assert!(later > now, "{due:?}");
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_is_too_long_keeps_the_newest_and_says_so() {
    let desk = Desk::new(&[]).await;
    // An hour ago, and more than fit in the hour before that.
    let counts = "INSERT INTO delivery_counts SELECT date_trunc('hour', now()) - INTERVAL '2 hours', \
         'acme-' || n, 'rma', 'delivered', 200, 1 FROM generate_series(1, 10000) AS n; \
         INSERT INTO delivery_counts SELECT date_trunc('hour', now()) - INTERVAL '1 hour', \
         'newest', 'rma', 'delivered', 200, 1";
    execute(&desk.stage.pool, counts).await;
    let report = desk.get("/v1/reports/deliveries").await;
    let counts = report["counts"].as_array().unwrap();
    assert_eq!((counts.len(), &report["truncated"]), (10_000, &json!(true)));
    assert_eq!(counts.last().unwrap()["merchant"], "newest");
    let report = desk.get("/v1/reports/deliveries?merchant=newest").await;
    assert_eq!(report["truncated"], false);
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_reads_its_own_and_replays_nothing() {
    let desk = Desk::new(&[]).await;
    let ids = desk.stage.append(&[message(None, "rma.created", 1)]).await;
    desk.stage.settled(SOON).await;
    let (own, other) = (token("returns", Some("acme")), token("returns", Some("other")));
    let show = format!("/v1/deliveries/{}", ids[0]);
    let replay = format!("{show}/replay");
    let none = json!({});
    assert_eq!(desk.ask_as(&own, Method::GET, &show, &none).await.0, 200);
    assert_eq!(desk.ask_as(&other, Method::GET, &show, &none).await.0, 404);
    assert_eq!(desk.ask_as(&own, Method::GET, "/v1/deliveries?merchant=other", &none).await.0, 403);
    let (_, page) = desk.ask_as(&other, Method::GET, "/v1/deliveries", &none).await;
    assert_eq!(page["deliveries"], json!([]));
    assert_eq!(desk.ask_as(&own, Method::POST, &replay, &none).await.0, 403);
    let everything = json!({"filter": {}});
    assert_eq!(desk.ask_as(&own, Method::POST, "/v1/replays", &everything).await.0, 403);
    assert_eq!(desk.ask_as(&token("orders", None), Method::GET, &show, &none).await.0, 403);
    for scope in ["carrier", "warehouse"] {
        let token = token(scope, Some("acme"));
        for path in [show.as_str(), "/v1/deliveries", "/v1/reports/deliveries"] {
            assert_eq!(desk.ask_as(&token, Method::GET, path, &none).await.0, 403, "{path}");
        }
    }
    assert_eq!(desk.ask_as("rubbish", Method::GET, &show, &none).await.0, 401);
    let unknown = format!("/v1/deliveries/{}", uuid::Uuid::now_v7());
    assert_eq!(desk.operator(Method::GET, &unknown, &none).await.0, 404);
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_check_says_what_is_wrong() {
    let desk = Desk::new(&[]).await;
    let path = "/v1/endpoints/acme/check";
    let (status, check) = desk.operator(Method::POST, path, &json!({})).await;
    assert_eq!((status, &check["results"][0]["accepted"]), (200, &json!(true)), "{check}");
    let arrivals = desk.stage.arrivals().await;
    assert_eq!((arrivals[0].event.as_str(), &arrivals[0].signature), ("sample", &json!("valid")));
    desk.stage.behave(json!([{"do": "redirect", "location": "/x", "times": 1}])).await;
    let (_, check) = desk.operator(Method::POST, path, &json!({})).await;
    assert_eq!(check["results"][0]["outcome"], "redirected", "{check}");
    let unknown = "/v1/endpoints/nobody/check";
    assert_eq!(desk.operator(Method::POST, unknown, &json!({})).await.0, 404);
    assert_eq!(desk.stage.number("SELECT count(*) AS n FROM delivery_messages").await, 0);
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_delivery_can_be_is_refused_and_is_nobodys_fault() {
    let desk = Desk::new(&[]).await;
    let none = json!({});
    for query in [
        "ordering_key=%00",
        "kind=%00",
        "kind=rmas",
        "merchant=%00",
        "from=-0001-01-01T00:00:00Z",
        "to=%2B10000-01-01T00:00:00Z",
        "from=%2B262142-01-01T00:00:00Z",
    ] {
        let path = format!("/v1/deliveries?{query}");
        let (status, answer) = desk.operator(Method::GET, &path, &none).await;
        assert_eq!(status, 400, "{path}: {answer}");
        assert!(answer["message"].is_string(), "{path}: {answer}");
    }
    for query in
        ["kind=%00", "kind=rmas", "to=-262143-01-01T00:00:00Z", "from=%2B99999-01-01T00:00:00Z"]
    {
        let path = format!("/v1/reports/deliveries?{query}");
        let (status, answer) = desk.operator(Method::GET, &path, &none).await;
        assert_eq!(status, 400, "{path}: {answer}");
    }
    for filter in [
        json!({"ordering_key": "\0"}),
        json!({"kind": "\0"}),
        json!({"kind": "rmas"}),
        json!({"from": "+10000-01-01T00:00:00Z"}),
    ] {
        let wanted = json!({"filter": filter, "dry_run": true});
        let (status, answer) = desk.operator(Method::POST, "/v1/replays", &wanted).await;
        assert_eq!(status, 400, "{wanted}: {answer}");
    }
    desk.leave().await;
}
