//! Discrepancies: the people that may see and resolve them, and refunds that get several names.

use diesel_async::SimpleAsyncConnection as _;

use super::projecting::{later, order, refunded};
use super::refunding::{newest, open_kinds, renamed};
use super::*;

const NO_HEADERS: &[(&str, &str)] = &[];

/// Stores an order of acme or rival whose refund names an unknown return.
async fn mistyped(app: &TestApp, merchant: &str, name: &str) -> Order {
    let order = order(name, 2);
    app.store(merchant, &order).await;
    let wrong = refunded(&order, &format!("R-{name}"), 1, Some("RMA-TYPO"));
    app.store(merchant, &wrong).await;
    wrong
}

async fn listed(app: &TestApp, token: &str, query: &str) -> (StatusCode, Value) {
    let path = format!("/v1/discrepancies{query}");
    app.send(Method::GET, &path, token, NO_HEADERS, None).await
}

/// Merchant and order of each discrepancy on a page.
fn rows(page: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let found = page["discrepancies"].as_array().unwrap().iter();
    found.map(|it| (text(&it["merchant"]), text(&it["detail"]["order_identifier"]))).collect()
}

#[tokio::test]
async fn a_token_without_a_merchant_lists_the_discrepancies_of_all() {
    let app = TestApp::alone().await;
    for (merchant, name) in [("acme", "A"), ("rival", "A"), ("acme", "B")] {
        mistyped(&app, merchant, name).await;
    }
    let row = |merchant: &str, order: &str| (merchant.to_owned(), order.to_owned());
    let acme = [row("acme", "B"), row("acme", "A")];
    let rival = [row("rival", "A")];
    let all = [row("acme", "B"), row("rival", "A"), row("acme", "A")];
    let support = app.issuer.token(None, "read replay");
    let operator = app.issuer.token(None, "operator");
    for token in [&support, &operator] {
        assert_eq!(rows(&listed(&app, token, "").await.1), all);
        assert_eq!(rows(&listed(&app, token, "?merchant=rival").await.1), rival);
        let of_kind = "?kind=refund_of_unknown_return&state=open";
        assert_eq!(rows(&listed(&app, token, of_kind).await.1), all);
        assert!(rows(&listed(&app, token, "?state=resolved").await.1).is_empty());
        assert_eq!(rows(&listed(&app, token, "?order_identifier=A").await.1), all[1..]);
    }
    let (_, first) = listed(&app, &support, "?limit=2").await;
    let next = first["next"].as_str().unwrap();
    let (_, second) = listed(&app, &support, &format!("?limit=2&after={next}")).await;
    assert_eq!([rows(&first), rows(&second)].concat(), all);
    assert_eq!(second.get("next"), None);
    let (_, first) = listed(&app, &support, "?limit=2&order=oldest").await;
    let next = first["next"].as_str().unwrap();
    let (_, second) = listed(&app, &support, &format!("?limit=2&order=oldest&after={next}")).await;
    let oldest = [row("acme", "A"), row("rival", "A"), row("acme", "B")];
    assert_eq!([rows(&first), rows(&second)].concat(), oldest);
    assert_eq!(second.get("next"), None);

    let viewer = app.issuer.token(Some("acme"), "read");
    assert_eq!(rows(&listed(&app, &viewer, "").await.1), acme);
    assert_eq!(rows(&listed(&app, &viewer, "?merchant=acme").await.1), acme);
    // A foreign merchant and one that does not exist are the same.
    let foreign = listed(&app, &viewer, "?merchant=rival").await;
    let unknown = "?merchant=none";
    assert_eq!(foreign.0, StatusCode::NOT_FOUND);
    assert_eq!(foreign.1["message"], "there is no merchant rival");
    assert_eq!(listed(&app, &support, unknown).await.1["message"], "there is no merchant none");
    let portal = app.issuer.token(None, "returns");
    assert_eq!(listed(&app, &portal, "").await.0, StatusCode::BAD_REQUEST);
    let orders = app.issuer.token(Some("acme"), "orders");
    assert_eq!(listed(&app, &orders, "").await.0, StatusCode::FORBIDDEN);
    for query in ["?state=closed", "?merchant=No%20such", "?open=true"] {
        assert_eq!(listed(&app, &support, query).await.0, StatusCode::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn operators_and_the_merchants_own_people_resolve_a_discrepancy() {
    let app = TestApp::start().await;
    mistyped(&app, "acme", "A").await;
    let path = format!("/v1/discrepancies/{}/resolve", newest(&app).await["position"]);
    let note = json!({ "note": "agreed with the merchant" });
    let resolve = async |client: &str, merchant: Option<&str>, scope: &str| {
        let token = app.issuer.token_of(client, merchant, scope);
        app.send(Method::POST, &path, &token, NO_HEADERS, Some(&note)).await
    };
    let viewer = resolve("vera@acme.example", Some("acme"), "read").await;
    let support = resolve("sam@backhaul.example", None, "read replay").await;
    assert_eq!([viewer.0, support.0], [StatusCode::FORBIDDEN; 2]);
    let foreign = resolve("rob@rival.example", Some("rival"), "manage").await;
    assert_eq!(foreign.0, StatusCode::NOT_FOUND);
    // An operator need not name the merchant. Later decisions without a return change nothing.
    let (status, resolved) = resolve("olga@backhaul.example", None, "operator").await;
    assert_eq!(status, StatusCode::OK, "{resolved}");
    assert_eq!(resolved["merchant"], "acme");
    assert_eq!(resolved["resolution"]["by"], "olga@backhaul.example");
    let again = resolve("ada@acme.example", Some("acme"), "manage").await;
    assert_eq!(again, (StatusCode::OK, resolved));
    let other = json!({ "note": "the merchant says no" });
    let token = app.issuer.token_of("ada@acme.example", Some("acme"), "manage");
    let (status, refusal) = app.send(Method::POST, &path, &token, NO_HEADERS, Some(&other)).await;
    assert_eq!(status, StatusCode::CONFLICT, "{refusal}");
    let message = refusal["message"].as_str().unwrap();
    assert!(message.contains("was resolved already by olga@backhaul.example"), "{message}");

    mistyped(&app, "acme", "B").await;
    let path = format!("/v1/discrepancies/{}/resolve", newest(&app).await["position"]);
    let token = app.issuer.token_of("ada@acme.example", Some("acme"), "manage");
    let (_, resolved) = app.send(Method::POST, &path, &token, NO_HEADERS, Some(&note)).await;
    assert_eq!(resolved["resolution"]["by"], "ada@acme.example");
    assert!(open_kinds(&app).await.is_empty());
}

#[tokio::test]
async fn a_refund_can_be_assigned_after_its_discrepancy_was_resolved_with_a_note() {
    let app = TestApp::start().await;
    mistyped(&app, "acme", "A").await;
    let rma = app.start_return(&refund_of("A", &[2])).await;
    let path = format!("/v1/discrepancies/{}/resolve", newest(&app).await["position"]);
    let (_, noted) = app.post(&path, "acme", &json!({ "note": "nobody knows" })).await;
    assert_eq!(noted["resolution"].get("rma_identifier"), None);
    let assignment = json!({ "note": "found it", "rma_identifier": rma });
    let (status, assigned) = app.post(&path, "acme", &assignment).await;
    assert_eq!(status, StatusCode::OK, "{assigned}");
    let resolution = &assigned["resolution"];
    assert_eq!(
        (&resolution["note"], &resolution["rma_identifier"]),
        (&json!("found it"), &json!(rma))
    );
    assert_eq!(app.show(&rma).await["status"], "REFUNDED");
    // The timeline records the first note.
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let last = timeline["entries"].as_array().unwrap().last().unwrap();
    assert_eq!(last["detail"]["earlier_resolution"]["note"], "nobody knows");
    // The same decision changes nothing, and the refund cannot be assigned to another return.
    assert_eq!(app.post(&path, "acme", &assignment).await, (StatusCode::OK, assigned));
    let noted = json!({ "note": "found it again", "rma_identifier": rma });
    assert_eq!(app.post(&path, "acme", &noted).await.0, StatusCode::CONFLICT);
    let other = json!({ "note": "no, this one", "rma_identifier": "RMA-OTHER" });
    let (status, refusal) = app.post(&path, "acme", &other).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["message"], "refund R-A does not wait for a return");
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.refunded"]);
}

#[tokio::test]
async fn a_refund_that_a_newer_snapshot_omits_can_be_assigned() {
    let app = TestApp::start().await;
    let wrong = mistyped(&app, "acme", "A").await;
    let rma = app.start_return(&refund_of("A", &[2])).await;
    let mut omitting = later(&wrong, 1);
    omitting.refunds.clear();
    app.store("acme", &omitting).await;
    let path = format!("/v1/discrepancies/{}/resolve", newest(&app).await["position"]);
    let assignment = json!({ "note": "mistyped", "rma_identifier": rma });
    let (status, assigned) = app.post(&path, "acme", &assignment).await;
    assert_eq!(status, StatusCode::OK, "{assigned}");
    assert_eq!(app.show(&rma).await["units"][0]["refunded_by"], "R-A");
    // The refund covers no other unit any more, also when a snapshot has it again.
    app.store("acme", &later(&wrong, 2)).await;
    let (_, shown) = app.get("/v1/orders/A/returnable", "acme").await;
    assert_eq!(shown["units"][0]["returnable"], true);
    assert!(open_kinds(&app).await.is_empty());
}

#[tokio::test]
async fn a_discrepancy_is_open_again_when_a_refund_gets_an_earlier_name_again() {
    let app = TestApp::start().await;
    let first = mistyped(&app, "acme", "A").await;
    let second = renamed(&first, "RMA-TYPO-2");
    app.store("acme", &second).await;
    let open = async || {
        let (_, page) = app.get("/v1/discrepancies?state=open", "acme").await;
        let open = page["discrepancies"].as_array().unwrap().iter();
        open.map(|it| it["detail"]["rma_identifier"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(open().await, ["RMA-TYPO-2"]);
    let third = renamed(&second, "RMA-TYPO");
    app.store("acme", &third).await;
    assert_eq!(open().await, ["RMA-TYPO"]);
    app.store("acme", &later(&third, 1)).await;
    assert_eq!(open().await, ["RMA-TYPO"]);
    // An assignment through an old discrepancy resolves the open one too.
    let rma = app.start_return(&refund_of("A", &[2])).await;
    let (_, page) = app.get("/v1/discrepancies", "acme").await;
    let oldest = page["discrepancies"].as_array().unwrap().last().unwrap();
    let path = format!("/v1/discrepancies/{}/resolve", oldest["position"]);
    let assignment = json!({ "note": "mistyped twice", "rma_identifier": rma });
    assert_eq!(app.post(&path, "acme", &assignment).await.0, StatusCode::OK);
    assert!(open().await.is_empty());
    assert_eq!(app.show(&rma).await["status"], "REFUNDED");
}

#[tokio::test]
async fn a_discrepancy_stays_open_if_a_later_snapshot_of_the_batch_does_not_correct_it() {
    let app = TestApp::alone().await;
    let first = mistyped(&app, "acme", "A").await;
    let mut conn = app.pool.get().await.unwrap();
    // Events queue up while the inbox is locked.
    conn.batch_execute("BEGIN; LOCK TABLE inbox").await.unwrap();
    let second = renamed(&first, "RMA-TYPO-2");
    app.publish("acme", &second).await;
    app.publish("acme", &later(&second, 1)).await;
    conn.batch_execute("COMMIT").await.unwrap();
    app.projected("acme", &later(&second, 1)).await;
    let (_, page) = app.get("/v1/discrepancies?state=open", "acme").await;
    assert_eq!(page["discrepancies"].as_array().unwrap().len(), 1, "{page}");
    assert_eq!(page["discrepancies"][0]["detail"]["rma_identifier"], "RMA-TYPO-2");
}
