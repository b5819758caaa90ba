//! Filters of the list of returns.

use std::collections::BTreeSet;

use super::moving::report;
use super::projecting::{order, refunded};
use super::*;
use crate::store::search::MAX_SCANNED;

/// The identifiers that a list of a merchant has on its first page.
async fn found_by(app: &TestApp, merchant: &str, filter: &str) -> Vec<String> {
    let (status, page) = app.get(&format!("/v1/returns?{filter}"), merchant).await;
    assert_eq!(status, StatusCode::OK, "{filter}: {page}");
    let returns = page["returns"].as_array().unwrap().iter();
    returns.map(|it| it["rma_identifier"].as_str().unwrap().to_owned()).collect()
}

async fn found(app: &TestApp, filter: &str) -> Vec<String> {
    found_by(app, "acme", filter).await
}

/// Starts a return of a new order of two units with this SKU.
async fn start(app: &TestApp, name: &str, sku: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut order = order(name, 2);
    order.items[0].sku = Some(sku.to_owned());
    app.store("acme", &order).await;
    let mut body = refund_of(name, &[1, 2]);
    change(&mut body);
    app.start_return(&body).await
}

#[tokio::test]
async fn returns_are_found_by_the_facts_of_their_units() {
    let app = TestApp::start().await;
    let boots = start(&app, "A", "BOOT-M", |_| {}).await;
    let tees = start(&app, "B", "TEE-M", |body| {
        body["return_method"] = json!("express-returns");
        body["units"][1]["return_reason"] = json!("DAMAGED");
        body["units"].as_array_mut().unwrap().remove(0);
    })
    .await;
    let both = vec![tees.clone(), boots.clone()];
    for (filter, expected) in [
        ("return_method=mail-back", vec![boots.clone()]),
        ("return_method=express-returns", vec![tees.clone()]),
        ("return_method=customer-keep", vec![]),
        ("resolution=refund", both.clone()),
        ("resolution=exchange", vec![]),
        ("return_reason=TOO_SMALL", vec![boots.clone()]),
        ("return_reason=DAMAGED", vec![tees.clone()]),
        ("sku=BOOT-M", vec![boots.clone()]),
        ("sku=BOOT", vec![]),
        ("sku=TEE-M&return_reason=DAMAGED&return_method=express-returns", vec![tees.clone()]),
        ("sku=TEE-M&return_method=mail-back", vec![]),
        ("min_amount_cents=4330", vec![boots.clone()]),
        ("min_amount_cents=4331", vec![]),
        ("max_amount_cents=2165", vec![tees.clone()]),
        ("min_amount_cents=2165&max_amount_cents=4330&order=oldest", vec![boots, tees]),
    ] {
        assert_eq!(found(&app, filter).await, expected, "{filter}");
        assert!(found_by(&app, "rival", filter).await.is_empty(), "{filter}");
    }
    for query in ["return_method=mail", "resolution=money", "work_list=all", "message_state=new"] {
        let (status, _) = app.get(&format!("/v1/returns?{query}"), "acme").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn a_return_is_on_the_list_of_its_next_step() {
    let app = TestApp::with(|acme| {
        let rule = json!({ "id": "look", "when": { "reasons": ["DAMAGED"] },
                           "then": { "review": { "within_days": 3, "then": "approve" } } });
        acme.settings.policy = serde_json::from_value(json!({ "rules": [rule] })).unwrap();
    })
    .await;
    let rma = start(&app, "A", "BOOT-M", |_| {}).await;
    let reviewed = start(&app, "B", "BOOT-M", |body| {
        for unit in body["units"].as_array_mut().unwrap() {
            unit["return_reason"] = json!("DAMAGED");
        }
    })
    .await;
    let check = async |list: &str| {
        let (_, counts) = app.get("/v1/return_counts", "acme").await;
        assert_eq!((&counts[list], &counts["to_review"]), (&json!(1), &json!(1)), "{counts}");
        let (_, foreign) = app.get("/v1/return_counts", "rival").await;
        assert_eq!(foreign[list], 0, "{foreign}");
        for known in ["not_sent", "on_its_way", "to_refund", "done"] {
            let expected = if known == list { vec![rma.clone()] } else { Vec::new() };
            // The list itself, and a filter that is checked for each return.
            for other in ["", "&order_identifier=A", "&sku=BOOT-M"] {
                let filter = format!("work_list={known}{other}");
                assert_eq!(found(&app, &filter).await, expected, "{filter}");
            }
        }
        assert!(found_by(&app, "rival", &format!("work_list={list}")).await.is_empty());
    };
    assert_eq!(found(&app, "work_list=to_review").await, [reviewed]);
    check("not_sent").await;
    for (event, list) in [("in_transit", "on_its_way"), ("delivered", "to_refund")] {
        app.carrier(&report(event, event, Some(&rma), Some("1Z9"))).await;
        check(list).await;
    }
    app.store("acme", &refunded(&order("A", 2), "R1", 2, Some(&rma))).await;
    check("done").await;
    let (_, page) = app.get("/v1/returns?work_list=done", "acme").await;
    let listed = &page["returns"][0];
    assert_eq!((&listed["work_list"], &listed["status"]), (&json!("done"), &json!("REFUNDED")));
    assert!(listed["changed_at"].as_str() > listed["created_at"].as_str(), "{listed}");
}

#[tokio::test]
async fn a_list_says_whether_the_merchant_has_the_last_message() {
    let app = TestApp::with(|acme| acme.settings.managed_receiving = true).await;
    let rma = start(&app, "A", "BOOT-M", |_| {}).await;
    assert_eq!(app.sent_messages().await, ["rma.created"]);
    assert_eq!(found(&app, "message_state=delivered").await, [rma.clone()]);
    assert!(found(&app, "message_state=dead").await.is_empty());
    let (_, page) = app.get("/v1/returns", "acme").await;
    let first = page["returns"][0]["last_message"].clone();
    assert_eq!(first["state"], "delivered");
    let shown = app.get(&format!("/v1/deliveries/{}", first["delivery"].as_str().unwrap()), "acme");
    assert_eq!(shown.await.1["event"], "rma.created");
    app.carrier(&report("e1", "in_transit", Some(&rma), Some("1Z9"))).await;
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.in_transit"]);
    // A change without a message keeps the last one.
    let over = json!({ "findings": [{ "finding": "over", "quantity": 1, "sku": "X" }] });
    assert_eq!(app.receive(&rma, &over).await.0, StatusCode::OK);
    let (_, page) = app.get("/v1/returns", "acme").await;
    let second = page["returns"][0]["last_message"].clone();
    assert_ne!(second["delivery"], first["delivery"]);
    assert!(found_by(&app, "rival", "message_state=delivered").await.is_empty());
}

/// A page reads a limited number of returns, so that the only match comes on a later one.
#[tokio::test]
async fn a_rare_filter_continues_on_the_next_page() {
    let app = TestApp::start().await;
    let rma = start(&app, "A", "BOOT-M", |_| {}).await;
    let copies = format!(
        "INSERT INTO returns (merchant, rma_identifier, status, document, created_at, updated_at) \
         SELECT merchant, 'X-' || n, status, document, created_at + n * interval '1 second', \
             updated_at \
         FROM returns, generate_series(1, {MAX_SCANNED}) AS n WHERE merchant = 'acme'"
    );
    app.change_rows(&copies).await;
    for order in ["newest", "oldest"] {
        let filter = format!("return_reason=TOO_SMALL&order={order}");
        let mut pages = Vec::new();
        let mut after = String::new();
        loop {
            let (_, page) = app.get(&format!("/v1/returns?{filter}{after}"), "acme").await;
            pages.push(page["returns"].as_array().unwrap().len());
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        let expected = if order == "newest" { [0, 1] } else { [1, 0] };
        assert_eq!(pages, expected, "{order}");
    }
    let day = "from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z";
    let (_, page) = app.get(&format!("/v1/returns?return_reason=TOO_SMALL&{day}"), "acme").await;
    assert_eq!(page, json!({ "returns": [] }));
    let named = format!("rma_identifier={rma}&return_reason=");
    assert_eq!(found(&app, &format!("{named}TOO_SMALL")).await, [rma]);
    assert!(found(&app, &format!("{named}DAMAGED")).await.is_empty());
}

/// The lines of an export of a merchant's returns.
async fn export(app: &TestApp, merchant: &str, query: &str) -> Vec<String> {
    let token = app.issuer.token(Some(merchant), "returns");
    let path = format!("/v1/returns?{query}");
    let response = app.service.request(Method::GET, &path, &token).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "{query}");
    let file = response.headers()["content-disposition"].to_str().unwrap().to_owned();
    assert!(file.starts_with("attachment; filename=\"returns."), "{file}");
    let text = app.service.without_suffix(&response.text().await.unwrap());
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn an_export_has_all_returns_of_a_filter() {
    const COPIES: usize = 450;
    let app = TestApp::start().await;
    let rma = start(&app, "A", "=1+1", |_| {}).await;
    let rows = export(&app, "acme", "format=csv").await;
    assert_eq!(rows.len(), 2);
    assert!(rows[0].starts_with("rma_identifier,merchant,order_identifiers,status,"), "{rows:?}");
    let row: Vec<_> = rows[1].split(',').collect();
    assert_eq!(row[..6], [rma.as_str(), "acme", "A", "CREATED", "not_sent", "false"]);
    assert_eq!(row[8..14], ["mail-back", "2", "'=1+1", "TOO_SMALL", "refund", ""]);
    assert_eq!(export(&app, "rival", "format=csv").await, rows[..1]);
    assert!(export(&app, "rival", "format=ndjson").await.is_empty());

    let copies = format!(
        "INSERT INTO returns (merchant, rma_identifier, status, document, created_at, updated_at, \
             facts) \
         SELECT merchant, 'X-' || n, status, replace(document, rma_identifier, 'X-' || n), \
             created_at + n * interval '1 second', updated_at, facts \
         FROM returns, generate_series(1, {COPIES}) AS n WHERE merchant = 'acme'"
    );
    app.change_rows(&copies).await;
    for filter in ["", "&return_reason=TOO_SMALL", "&order=oldest"] {
        let lines = export(&app, "acme", &format!("format=ndjson&limit=1{filter}")).await;
        let listed = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let names: Vec<_> =
            listed.map(|it| it["rma_identifier"].as_str().unwrap().to_owned()).collect();
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!((names.len(), distinct.len()), (COPIES + 1, COPIES + 1), "{filter}");
        let is_oldest = filter.ends_with("oldest");
        let end = if is_oldest { names.first() } else { names.last() };
        assert_eq!(end, Some(&rma), "{filter}");
    }
    assert_eq!(export(&app, "acme", "format=csv&return_reason=OTHER").await, rows[..1]);
    for query in ["format=xml", "format=csv&sku=%00"] {
        let (status, _) = app.get(&format!("/v1/returns?{query}"), "acme").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
    }
}

/// The values of lists, by return.
const LISTED: &str = "SELECT own.merchant, own.rma_identifier, facts, amount_cents, last_delivery, work_list, \
         (SELECT array_agg(sku ORDER BY sku) FROM return_skus AS sku \
          WHERE (sku.merchant, sku.rma_identifier) = (own.merchant, own.rma_identifier)) AS skus \
     FROM returns AS own LEFT JOIN return_work_lists AS list \
         ON (list.merchant, list.rma_identifier) = (own.merchant, own.rma_identifier)";

#[tokio::test]
async fn returns_of_earlier_versions_are_on_the_same_lists() {
    const MIGRATION: &str =
        include_str!("../../../../migrations/rma-engine/2026-11-21-050010_lists_of_returns/up.sql");
    let (_, added) = MIGRATION.split_once("\nWITH units AS").unwrap();
    let (added, _) = added.split_once(";\n").unwrap();
    let app = TestApp::alone().await;
    let events =
        [&[][..], &["label", "failure"], &["in_transit", "failure"], &["in_transit", "delivered"]];
    for (number, events) in events.into_iter().enumerate() {
        let rma = start(&app, &format!("A{number}"), "BOOT-M", |_| {}).await;
        for event in events {
            let report = report(&format!("{number}{event}"), event, Some(&rma), Some("1Z9"));
            assert_eq!(app.carrier(&report).await.0, StatusCode::OK);
        }
    }
    let rma = start(&app, "B", "TEE-M", |_| {}).await;
    let cancel = json!({ "units": [unit("B", 1)] });
    app.post(&format!("/v1/returns/{rma}/cancel"), "acme", &cancel).await;
    let rma = start(&app, "C", "TEE-M", |_| {}).await;
    app.store("acme", &refunded(&order("C", 2), "R1", 2, Some(&rma))).await;
    let lists = "SELECT count(DISTINCT work_list) AS n FROM return_work_lists";
    assert_eq!(app.number(lists).await, 4);

    let forget = "DELETE FROM return_work_lists; DELETE FROM return_skus; \
                  UPDATE returns SET facts = '{}', amount_cents = 0, last_delivery = NULL";
    app.change_rows(&format!("CREATE TABLE listed AS {LISTED}; {forget}")).await;
    app.change_rows(&format!("WITH units AS{added}")).await;
    let same = format!("SELECT count(*) AS n FROM ({LISTED} INTERSECT TABLE listed) AS same");
    assert_eq!(app.number(&same).await, 6);
}
