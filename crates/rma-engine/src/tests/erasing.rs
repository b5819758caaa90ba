//! Tests of the erasure of a shopper's data.

use diesel::sql_types::Text;
use domain::erasure::{EmailDigest, ErasureConfirmed, ReturnsErased, ShopperErased};
use uuid::Uuid;

use super::*;

fn planted(order: &str) -> Order {
    let mut order = bodies_order(order);
    order.customer.email = Some("planted@mail.example".to_owned());
    order.customer.first_name = Some("PLANTED".to_owned());
    order.shipping_address.name = "PLANTED".to_owned();
    order.billing_address.street1 = "PLANTED 1".to_owned();
    order.note = Some("PLANTED".to_owned());
    order
}

fn bodies_order(order: &str) -> Order {
    projecting::order(order, 2)
}

fn erased(orders: &[&str], force: bool) -> ShopperErased {
    ShopperErased {
        erasure_id: Uuid::now_v7(),
        batch: 1,
        merchant: "acme".parse().unwrap(),
        order_identifiers: orders.iter().map(|&order| order.to_owned()).collect(),
        email_sha256: Some(EmailDigest::of("planted@mail.example")),
        force,
        force_before: None,
    }
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// The rows of all tables in which a marker remains.
async fn marked(app: &TestApp) -> Vec<String> {
    let mut conn = app.pool.get().await.unwrap();
    let tables = "SELECT quote_ident(table_name) AS line FROM information_schema.tables \
                  WHERE table_schema = 'public' AND table_type = 'BASE TABLE'";
    let tables: Vec<Line> = diesel::sql_query(tables).load(&mut conn).await.unwrap();
    let mut found = Vec::new();
    for Line { line: table } in tables {
        let rows = format!(
            "SELECT '{table}: ' || text AS line FROM ( \
                 SELECT row_to_json(own)::text || coalesce( \
                     convert_from((to_jsonb(own) ->> 'body')::bytea, 'UTF8'), '') AS text \
                 FROM {table} AS own \
             ) AS rows WHERE text ILIKE '%planted%'"
        );
        let rows: Vec<Line> = diesel::sql_query(rows).load(&mut conn).await.unwrap();
        found.extend(rows.into_iter().map(|row| row.line));
    }
    found
}

/// The first event that a queue has and that is wanted. The broker drops an event that was read often.
async fn event<E: Event>(app: &TestApp, service: &str, is_wanted: impl Fn(&E) -> bool) -> E {
    let queue = format!("{service}.{}", E::TYPE);
    eventually("the event is published", SOON, || async {
        let found = app.service.namespace.peek(&queue).await;
        let data = |message: &Value| -> E {
            let event: Value = serde_json::from_str(message["payload"].as_str().unwrap()).unwrap();
            serde_json::from_value(event["data"].clone()).unwrap()
        };
        found.iter().map(data).find(|event| is_wanted(event))
    })
    .await
}

#[tokio::test]
async fn an_open_return_is_kept_unless_forced() {
    let app = TestApp::with(|acme| acme.settings.appearance.withdrawal = true).await;
    app.store("acme", &planted("A")).await;
    let mut body = refund_of("A", &[1]);
    body["units"][0]["return_reason"] = json!("withdrawal");
    body["withdrawal"] = json!({ "name": "PLANTED", "email": "planted@other.example" });
    let rma = app.start_return(&body).await;
    app.publish_event_at(erased(&["A"], false), Some(1000)).await;
    let confirmed: ErasureConfirmed = event(&app, "order-intake", |_| true).await;
    assert_eq!(confirmed.kept_returns.len(), 1);
    assert_eq!(confirmed.kept_returns[0].rma_identifier, rma);
    assert!(!marked(&app).await.is_empty(), "the data is still there");

    app.publish_event_at(erased(&["A"], true), Some(1001)).await;
    let forced = |it: &ErasureConfirmed| it.kept_returns.is_empty();
    let confirmed = event(&app, "order-intake", forced).await;
    assert_eq!((confirmed.kept_returns.len(), confirmed.counts.records), (0, 2));
    let erased_returns = |it: &ReturnsErased| !it.rma_identifiers.is_empty();
    let followed = event(&app, "exchange", erased_returns).await;
    assert_eq!(
        (followed.order_identifiers, followed.rma_identifiers),
        (vec!["A".to_owned()], vec![rma])
    );
    assert_eq!(marked(&app).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_giftee_is_found_by_the_digest_of_the_address() {
    let app = TestApp::start().await;
    app.store("acme", &bodies_order("B")).await;
    let mut body = refund_of("B", &[1]);
    body["gift_refund_only"] = json!(true);
    body["giftee_email"] = json!("Planted@mail.example");
    body["units"] = json!([choice("B", 1, &json!({ "resolution": "refund" }))]);
    let rma = app.start_return(&body).await;
    app.publish_event_at(erased(&[], true), Some(1000)).await;
    let followed: ReturnsErased = event(&app, "exchange", |_| true).await;
    assert_eq!(followed.gift_rma_identifiers, std::slice::from_ref(&rma));
    assert_eq!(app.show(&rma).await["giftee_email"], "erased@invalid");
    assert_eq!(marked(&app).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_snapshot_that_the_erasure_overtook_is_erased() {
    let app = TestApp::start().await;
    app.publish_event_at(erased(&["A"], false), Some(1000)).await;
    let _: ErasureConfirmed = event(&app, "order-intake", |_| true).await;
    let (merchant, order) = ("acme".parse().unwrap(), planted("A"));
    let stored = OrderStored { merchant, order: order.clone(), is_reset: false };
    app.publish_event_at(stored, Some(999)).await;
    app.projected("acme", &order).await;
    assert_eq!(marked(&app).await, Vec::<String>::new());
}
