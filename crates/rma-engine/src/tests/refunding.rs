//! Refunds are matched with many and with large returns, compared with the amounts paid, and corrected.

use diesel_async::SimpleAsyncConnection as _;

use super::projecting::{later, order, refunded, with_sums};
use super::*;

/// The refund moves to the queue for bulk on its way, because the returns are too large for the common queue.
#[tokio::test]
async fn large_returns_are_read_in_chunks() {
    let app = TestApp::start().await;
    let order = order("A", 7);
    app.store("acme", &order).await;
    let mut rmas = Vec::new();
    for unit in 1..=7 {
        rmas.push(app.start_return(&refund_of("A", &[unit])).await);
    }
    // Three of them exceed one chunk; trailing spaces do not change a JSON document.
    let grow = "UPDATE returns SET document = document || repeat(' ', 3 * 1024 * 1024) \
                WHERE merchant = 'acme'";
    app.change_rows(grow).await;
    // Two snapshots in one batch; the first refunds one unit of the last return.
    let first = refunded(&order, "R1", 1, Some(&rmas[6]));
    let second = refunded(&first, "R2", 6, None);
    app.publish("acme", &first).await;
    app.store("acme", &second).await;
    for rma in &rmas {
        assert_eq!(app.show(rma).await["status"], "REFUNDED");
    }
    assert_eq!(app.sent_messages().await, [["rma.created"; 7], ["rma.refunded"; 7]].concat());
    assert_eq!(
        app.number("SELECT count(*) AS n FROM discrepancies WHERE merchant = 'acme'").await,
        0
    );
}

#[tokio::test]
async fn each_refund_of_a_return_sends_a_message() {
    let app = TestApp::start().await;
    let order = order("A", 3);
    app.store("acme", &order).await;
    let rma = app.start_return(&refund_of("A", &[1, 2, 3])).await;
    // Two refunds in one snapshot, and one that names the return and no unit.
    let mut two = refunded(&refunded(&order, "R1", 1, Some(&rma)), "R2", 1, None);
    app.store("acme", &two).await;
    two = refunded(&two, "R3", 1, Some(&rma));
    two.refunds[2].refund_line_items.clear();
    app.store("acme", &two).await;
    app.store("acme", &later(&two, 1)).await;
    assert_eq!(app.show(&rma).await["status"], "CREATED");
    app.store("acme", &refunded(&later(&two, 1), "R4", 1, None)).await;
    assert_eq!(app.show(&rma).await["status"], "REFUNDED");
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let entries = timeline["entries"].as_array().unwrap().iter().skip(1);
    let line = |it: &Value| {
        let units = it["detail"]["units"].as_array().map_or(0, Vec::len);
        let text = |it: &Value| it.as_str().unwrap().to_owned();
        assert!(it["delivery"].is_string(), "{it}");
        format!("{} {} {units}", text(&it["event"]), text(&it["detail"]["refund_identifier"]))
    };
    let partially = "rma.partially_refunded";
    let expected = [
        format!("{partially} R1 1"),
        format!("{partially} R2 1"),
        format!("{partially} R3 0"),
        "rma.refunded R4 1".to_owned(),
    ];
    assert_eq!(entries.map(line).collect::<Vec<_>>(), expected);
    let sent = app.sent_messages().await;
    assert_eq!(sent, ["rma.created", partially, partially, partially, "rma.refunded"]);
}

#[tokio::test]
async fn a_return_without_held_units_is_not_locked() {
    let app = TestApp::start().await;
    let order = order("A", 1);
    app.store("acme", &order).await;
    let canceled = app.start_return(&refund_of("A", &[1])).await;
    let path = format!("/v1/returns/{canceled}/cancel");
    assert_eq!(app.post(&path, "acme", &json!({})).await.0, StatusCode::OK);
    let open = app.start_return(&refund_of("A", &[1])).await;
    let mut conn = app.pool.get().await.unwrap();
    let lock = format!("BEGIN; SELECT FROM returns WHERE rma_identifier = '{canceled}' FOR UPDATE");
    conn.batch_execute(&lock).await.unwrap();
    app.publish("acme", &refunded(&order, "R1", 1, None)).await;
    eventually("the open one is refunded", SOON, || async {
        (app.show(&open).await["status"] == "REFUNDED").then_some(())
    })
    .await;
    conn.batch_execute("ROLLBACK").await.unwrap();
}

/// Kinds of the open discrepancies, newest first.
pub(super) async fn open_kinds(app: &TestApp) -> Vec<String> {
    let (status, listed) = app.get("/v1/discrepancies?state=open", "acme").await;
    assert_eq!(status, StatusCode::OK);
    let found = listed["discrepancies"].as_array().unwrap().iter();
    found.map(|it| it["detail"]["kind"].as_str().unwrap().to_owned()).collect()
}

pub(super) async fn newest(app: &TestApp) -> Value {
    app.get("/v1/discrepancies", "acme").await.1["discrepancies"][0].clone()
}

/// A later snapshot in which the last refund names this return.
pub(super) fn renamed(order: &Order, rma: &str) -> Order {
    let mut order = later(order, 1);
    order.refunds.last_mut().unwrap().rma_identifier = Some(rma.to_owned());
    order
}

#[tokio::test]
async fn refunds_above_the_amount_paid_are_a_discrepancy() {
    let app = TestApp::start().await;
    let exact = refunded(&order("A", 2), "R1", 1, None);
    app.store("acme", &exact).await;
    assert!(open_kinds(&app).await.is_empty());
    let mut above = refunded(&exact, "R2", 1, None);
    above.refunds[1].total_refund_amount_cents = 99_999;
    app.store("acme", &above).await;
    app.store("acme", &later(&above, 1)).await;
    assert_eq!(open_kinds(&app).await, ["refund_above_paid"]);
    let found = newest(&app).await;
    let message = "refund R2: 99999 cents are refunded of line A-1 of order A, but at most 2165 cents \
                   were paid";
    assert_eq!(found["message"], message);
    assert_eq!(found["detail"]["paid_cents"], 2165);
    // The refund is matched all the same.
    let (_, shown) = app.get("/v1/orders/A/returnable", "acme").await;
    assert_eq!(shown["units"][1]["ineligible"]["code"], "already_refunded");
}

#[tokio::test]
async fn a_later_snapshot_corrects_the_return_of_a_refund() {
    let app = TestApp::start().await;
    let order = order("A", 2);
    app.store("acme", &order).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let wrong = refunded(&order, "R1", 1, Some("RMA-TYPO"));
    app.store("acme", &wrong).await;
    assert_eq!(open_kinds(&app).await, ["refund_of_unknown_return"]);
    let right = renamed(&wrong, &rma);
    app.store("acme", &right).await;
    assert_eq!(app.show(&rma).await["status"], "REFUNDED");
    assert!(open_kinds(&app).await.is_empty());
    let resolution = newest(&app).await["resolution"].clone();
    assert_eq!(resolution["by"], "order.stored.v1");
    // The unit that the refund covered meanwhile can be returned again.
    let (_, shown) = app.get("/v1/orders/A/returnable", "acme").await;
    assert_eq!(shown["units"][1]["returnable"], true);
    // A late snapshot with the old name changes nothing.
    app.publish("acme", &wrong).await;
    app.store("acme", &later(&right, 1)).await;
    assert!(open_kinds(&app).await.is_empty());

    // A refund that was matched stays with its return.
    let other = app.start_return(&refund_of("A", &[2])).await;
    app.store("acme", &renamed(&later(&right, 2), &other)).await;
    assert_eq!(open_kinds(&app).await, ["refund_names_other_return"]);
    assert_eq!(app.show(&other).await["status"], "CREATED");
    assert_eq!(app.show(&rma).await["status"], "REFUNDED");
    // Messages of two returns have no order.
    let mut sent = app.sent_messages().await;
    sent.sort_unstable();
    assert_eq!(sent, ["rma.created", "rma.created", "rma.refunded"]);
}

#[tokio::test]
async fn staff_assign_a_refund_to_a_return() {
    let app = TestApp::start().await;
    let order = order("A", 1);
    app.store("acme", &order).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let wrong = refunded(&order, "R1", 1, Some("RMA-TYPO"));
    app.store("acme", &wrong).await;
    let path = format!("/v1/discrepancies/{}/resolve", newest(&app).await["position"]);
    let body = json!({ "note": "mistyped", "rma_identifier": rma });
    assert_eq!(app.post(&path, "rival", &body).await.0, StatusCode::NOT_FOUND);
    let portal = app.issuer.token(None, "returns");
    let acme = [("x-service-id", "acme")];
    let (status, _) = app.send(Method::POST, &path, &portal, &acme, Some(&body)).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let unknown = json!({ "note": "mistyped", "rma_identifier": "RMA-OTHER" });
    let (status, refusal) = app.post(&path, "acme", &unknown).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(refusal["errors"][0]["field"], "$.rma_identifier");
    assert_eq!(app.post(&path, "acme", &json!({})).await.0, StatusCode::UNPROCESSABLE_ENTITY);

    let (status, resolved) = app.post(&path, "acme", &body).await;
    assert_eq!(status, StatusCode::OK, "{resolved}");
    let resolution = &resolved["resolution"];
    assert_eq!((&resolution["by"], &resolution["note"]), (&json!("client"), &json!("mistyped")));
    assert_eq!(app.post(&path, "acme", &body).await, (StatusCode::OK, resolved.clone()));
    assert_eq!(app.show(&rma).await["status"], "REFUNDED");
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let last = timeline["entries"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["event"], &last["actor"]), (&json!("rma.refunded"), &json!("client")));
    assert_eq!(last["detail"]["note"], "mistyped");
    // Later snapshots repeat the wrong name, or correct it.
    app.store("acme", &later(&wrong, 1)).await;
    app.store("acme", &renamed(&later(&wrong, 2), &rma)).await;
    assert!(open_kinds(&app).await.is_empty());
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.refunded"]);
}

#[tokio::test]
async fn the_discount_of_an_order_reduces_the_amounts_of_its_units() {
    let app = TestApp::start().await;
    let mut order = order("A", 2);
    order.discount_amount_cents = 331;
    app.store("acme", &with_sums(order)).await;
    let (_, shown) = app.get("/v1/orders/A/returnable", "acme").await;
    let amounts = [0, 1].map(|unit| shown["units"][unit]["refund_amount_cents"].as_i64().unwrap());
    assert_eq!(amounts, [2000, 1999]);
    assert!(open_kinds(&app).await.is_empty());
}
