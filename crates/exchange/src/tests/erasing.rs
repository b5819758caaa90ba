//! The erasure of a shopper's data.

use diesel_async::SimpleAsyncConnection as _;
use domain::erasure::{EmailDigest, ErasureConfirmed, ReturnsErased};
use domain::event::Event as _;
use messaging::{Envelope, Handler as _, Outbox};
use platform::{Clock, Service as _};
use serde_json::{Value, json};
use testkit::eventually;
use uuid::Uuid;

use super::app::{SOON, TestApp, confirmed, gift_card_unit};
use crate::App;
use crate::erasing::Erasures;

const EMAIL: &str = "ada@example.com";

fn erased(returns: &[&str], gifts: &[&str]) -> ReturnsErased {
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    ReturnsErased {
        erasure_id: Uuid::now_v7(),
        batch: 1,
        merchant: "acme".parse().unwrap(),
        order_identifiers: vec!["1001".to_owned()],
        rma_identifiers: names(returns),
        gift_rma_identifiers: names(gifts),
        email_sha256: (!gifts.is_empty()).then(|| EmailDigest::of(EMAIL)),
        erased_at: Clock::system().now(),
    }
}

impl TestApp {
    /// Erases, and waits until the service has confirmed.
    async fn erase(&self, event: &ReturnsErased) {
        self.service.publish(event).await;
        let queue = format!("order-intake.{}", ErasureConfirmed::TYPE);
        let id = event.erasure_id.to_string();
        eventually("the erasure is confirmed", SOON, || async {
            let found = self.service.namespace.peek(&queue).await;
            let is_confirmed =
                |it: &Value| it["payload"].as_str().is_some_and(|text| text.contains(&id));
            found.iter().any(is_confirmed).then_some(())
        })
        .await;
    }

    /// Waits until the confirmation of a return is stored, and returns the number of those with this text.
    async fn stored_with(&self, rma: &str, text: &str) -> i64 {
        let stored =
            format!("SELECT count(*) AS n FROM confirmations WHERE rma_identifier = '{rma}'");
        eventually("the confirmation is stored", SOON, || async {
            (self.count(&stored).await == 1).then_some(())
        })
        .await;
        self.count(&format!("{stored} AND document LIKE '%{text}%'")).await
    }
}

#[tokio::test]
async fn a_confirmation_that_waits_for_the_erasure_of_its_return_is_erased() {
    let app = TestApp::alone().await;
    let pool = app.service.database.pool();
    let mut erasure = pool.get().await.unwrap();
    erasure.batch_execute("BEGIN").await.unwrap();
    let event = erased(&["R-1"], &[]);
    let envelope = json!(Envelope::new("rma-engine", Clock::system().now(), &event));
    let envelope: Envelope<ReturnsErased> = serde_json::from_value(envelope).unwrap();
    let handler = Erasures { outbox: Outbox::new(App::NAME), clock: Clock::system() };
    handler.handle(&mut erasure, &[&envelope]).await.unwrap();

    app.confirm(&confirmed("R-1", "1001", &[gift_card_unit("L1", 1)])).await;
    let waits_or_done = "SELECT (SELECT count(*) FROM pg_stat_activity \
                             WHERE datname = current_database() AND wait_event_type = 'Lock') \
                         + (SELECT count(*) FROM confirmations) AS n";
    eventually("the confirmation waits, or is stored", SOON, || async {
        (app.count(waits_or_done).await > 0).then_some(())
    })
    .await;
    erasure.batch_execute("COMMIT").await.unwrap();
    assert_eq!(app.stored_with("R-1", "Ada").await, 0);
}

#[tokio::test]
async fn a_late_erasure_keeps_a_newer_return_of_the_order() {
    let app = TestApp::alone().await;
    app.confirm(&confirmed("R-2", "1001", &[gift_card_unit("L1", 1)])).await;
    app.placed().await;
    app.erase(&erased(&["R-1"], &[])).await;
    assert_eq!(app.stored_with("R-2", "Ada").await, 1);
    let messages = "SELECT count(*) AS n FROM delivery_messages AS sent JOIN exchange_orders AS own ON own.delivery = sent.id \
                    WHERE convert_from(body, 'UTF8') LIKE '%Ada%' AND message LIKE '%Ada%'";
    assert_eq!(app.count(messages).await, 1);
    app.erase(&erased(&["R-2"], &[])).await;
    assert_eq!(app.stored_with("R-2", "Ada").await, 0);
    assert_eq!(app.count(messages).await, 0);
}

#[tokio::test]
async fn a_confirmation_that_the_erasure_of_its_giftee_overtook_loses_the_address() {
    let app = TestApp::alone().await;
    app.erase(&erased(&[], &["R-1"])).await;
    app.confirm(&confirmed("R-1", "1001", &[gift_card_unit("L1", 1)])).await;
    assert_eq!(app.stored_with("R-1", EMAIL).await, 0);
    assert_eq!(app.stored_with("R-1", "Long Road").await, 1, "the address is the buyer's");
}
