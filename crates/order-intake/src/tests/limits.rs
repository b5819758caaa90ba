//! Rate limits, memory limits and the limit of the write queue.

use std::cell::RefCell;

use diesel_async::SimpleAsyncConnection as _;
use futures_util::future::join_all;

use super::*;

fn retry_after(response: &Response) -> u64 {
    response.headers()["retry-after"].to_str().unwrap().parse().unwrap()
}

/// Sends a request without a token, forwarded by a proxy.
async fn send_unauthenticated(app: &TestApp, forwarded_for: &str) -> Response {
    app.request().header("X-Forwarded-For", forwarded_for).body("{}").send().await.unwrap()
}

#[tokio::test]
async fn requests_are_limited_by_address_with_or_without_a_token() {
    let limits = [("LIMITS__REQUESTS_PER_MINUTE", "60"), ("HTTP__TRUSTED_PROXIES", "127.0.0.1")];
    let app = TestApp::with(&limits, merchant("acme")).await;
    let responses = join_all((0..61).map(|_| send_unauthenticated(&app, "192.0.2.1"))).await;
    let limited: Vec<_> = responses.iter().filter(|response| response.status() == 429).collect();
    assert_eq!(limited.len(), 1);
    assert!((1..=61).contains(&retry_after(limited[0])));
    assert_eq!(send_unauthenticated(&app, "192.0.2.2").await.status(), 401);
    assert_eq!(send_unauthenticated(&app, "192.0.2.2, 192.0.2.1").await.status(), 429);
}

#[tokio::test]
async fn only_trusted_proxies_may_forward_addresses() {
    let app = TestApp::with(&[("LIMITS__REQUESTS_PER_MINUTE", "50")], merchant("acme")).await;
    let addresses = (0..60).map(|host| format!("192.0.2.{host}"));
    let responses = addresses.map(|address| {
        let app = &app;
        async move { send_unauthenticated(app, &address).await.status().as_u16() }
    });
    assert!(join_all(responses).await.contains(&429));
}

#[tokio::test]
async fn unfinished_bodies_block_only_their_merchant() {
    let app = TestApp::alone().await;
    let head = format!(
        "POST /returns_portal_orders HTTP/1.1\r\nHost: app\r\nAuthorization: Bearer {}\r\n\
         Api-Version: 3\r\nContent-Type: application/json\r\nContent-Length: 5242880\r\n\r\n",
        app.token("acme"),
    );
    let waiting = RefCell::new(Vec::new());
    let mut large = sample_message(1);
    large["padding"] = json!(" ".repeat(4 * 1024 * 1024));
    testkit::eventually("acme has no memory left", Duration::from_secs(300), async || {
        // On a busy machine earlier ones may have waited for too long.
        let connection = app.service.raw_connection(&head).await;
        waiting.borrow_mut().push(connection);
        (app.publish("acme", &large).await.0 == 429).then_some(())
    })
    .await;
    assert_eq!(app.publish("rival", &large).await.0, 200);
    assert_eq!(app.publish("rival", &sample_message(1)).await.0, 200);
    drop(waiting);
    testkit::eventually("acme has memory again", Duration::from_secs(300), || async {
        (app.publish("acme", &large).await.0 == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn unread_responses_are_bounded() {
    // Memory for one body of the largest size: 10 MiB.
    let limits = [("HTTP__MAX_BODY", "1048576"), ("HTTP__MAX_INFLIGHT", "0")];
    let app = TestApp::with(&limits, merchant("acme")).await;
    for order in &mut sample_orders(4) {
        order["padding"] = json!(" ".repeat(900_000));
        let (status, response) =
            app.publish("acme", &order_message(std::slice::from_ref(order))).await;
        assert_eq!(status, 200, "{response}");
    }
    // More than the buffers of the connection take.
    let request = format!(
        "GET /v1/orders HTTP/1.1\r\nHost: app\r\nAuthorization: Bearer {}\r\n\r\n",
        app.token("acme"),
    )
    .repeat(8);
    let unread = RefCell::new(Vec::new());
    let page = async |status: u16| {
        let response = app.get("/v1/orders", "acme").await;
        (response.status() == status).then_some(response)
    };
    let refused =
        testkit::eventually("the memory is used up", Duration::from_secs(120), async || {
            // The service may reject requests that arrive while it writes another response.
            let connection = app.service.raw_connection(&request).await;
            unread.borrow_mut().push(connection);
            page(429).await
        })
        .await;
    assert_eq!(retry_after(&refused), 1);
    drop(unread);
    testkit::eventually("the memory is free again", Duration::from_secs(120), || page(200)).await;
}

#[tokio::test]
async fn a_full_job_queue_responds_with_429_at_once() {
    let app = TestApp::with(&[("STORING__MAX_QUEUED_ORDERS", "10")], merchant("acme")).await;
    let pool = app.service.database.pool();
    let mut conn = pool.get().await.unwrap();
    conn.batch_execute("BEGIN; LOCK TABLE orders").await.unwrap();
    let messages: Vec<_> = sample_orders(40).chunks(2).map(order_message).collect();
    let refused = tokio::sync::Notify::new();
    let sending = async {
        let mut statuses = Vec::new();
        let sent = messages.iter().map(|message| async {
            let request = app.request().bearer_auth(app.token("acme"));
            let response = request.body(message.to_string()).send().await.unwrap();
            if response.status() == 429 {
                refused.notify_one();
            }
            response
        });
        for response in join_all(sent).await {
            if response.status() == 429 {
                assert_eq!(retry_after(&response), 1);
            }
            statuses.push(response.status().as_u16());
        }
        statuses
    };
    let unlocking = async {
        refused.notified().await;
        conn.batch_execute("COMMIT").await.unwrap();
    };
    let (statuses, ()) = tokio::join!(sending, unlocking);
    let refused = statuses.iter().filter(|status| **status == 429).count();
    let stored = statuses.iter().filter(|status| **status == 200).count();
    assert!(refused > 0 && stored > 0 && refused + stored == 20, "{statuses:?}");
}

#[tokio::test]
async fn concurrent_duplicates_are_stored_once() {
    let app = TestApp::start().await;
    let messages: Vec<_> = sample_orders(60).chunks(3).map(order_message).collect();
    let sent = messages.iter().chain(&messages).map(|message| app.publish("acme", message));
    for (status, response) in join_all(sent).await {
        assert_eq!(status, StatusCode::OK, "{response}");
    }
    app.stored_events(60).await;
}
