//! Rules name the warehouse to which a return goes.

use domain::warehouse::Warehouses;

use super::policies::adjust;
use super::projecting::order;
use super::quoting::quote;
use super::*;

/// The warehouses reno and west of acme.
pub(super) fn warehouses() -> Warehouses {
    let at = |city: &str| json!({ "address": { "name": "Dock 7", "street": "7 Dock Street", "city": city, "state": "NV", "zip": "89501" } });
    serde_json::from_value(json!({ "reno": at("Reno"), "west": at("Elko") })).unwrap()
}

/// Damaged units go to reno, and units with the tag `outlet` to west.
fn rules() -> Value {
    json!({ "rules": [
        { "id": "damaged", "when": { "reasons": ["DAMAGED"] }, "then": { "return_to": "reno" } },
        { "id": "outlet", "when": { "line_tags": ["outlet"] }, "then": { "return_to": "west" } },
    ] })
}

/// The service with orders A and B of one shopper, of which B has the tag `outlet`.
async fn start() -> TestApp {
    let app = TestApp::with(|acme| {
        adjust(acme, rules());
        acme.warehouses = warehouses();
    })
    .await;
    app.store("acme", &order("A", 3)).await;
    let mut outlet = order("B", 3);
    outlet.items[0].tags = vec!["Outlet".to_owned()];
    app.store("acme", &outlet).await;
    app
}

fn damaged(order: &str, units: &[i32]) -> Value {
    let mut body = refund_of(order, units);
    for unit in body["units"].as_array_mut().unwrap() {
        unit["return_reason"] = json!("DAMAGED");
    }
    body
}

/// One request for the units of two.
fn together(mut first: Value, mut second: Value) -> Value {
    let others = second["units"].as_array_mut().unwrap();
    first["units"].as_array_mut().unwrap().append(others);
    first
}

#[tokio::test]
async fn a_list_a_quote_and_a_return_name_the_same_warehouse() {
    let app = start().await;
    let (_, shown) = app.get("/v1/orders/B/returnable", "acme").await;
    let choices = &shown["units"][0]["choices"];
    // The reason DAMAGED has an entry of its own.
    let return_to =
        |entry: usize, option: usize| choices[entry]["options"][option]["return_to"].clone();
    let west = json!({ "warehouse": "west", "rule": "outlet" });
    let reno = json!({ "warehouse": "reno", "rule": "damaged" });
    assert_eq!([return_to(0, 0), return_to(0, 1), return_to(1, 0)], [west.clone(), west, reno]);
    let keep = &choices[0]["options"][2];
    assert_eq!((&keep["method"], keep.get("return_to")), (&json!("customer-keep"), None));

    let elko = json!({ "warehouse": "west", "rule": "outlet",
                       "address_lines": ["Dock 7", "7 Dock Street", "Elko, NV 89501"] });
    let body = refund_of("B", &[1]);
    assert_eq!(quote(&app, &body).await["return_to"], elko);
    let rma = app.start_return(&body).await;
    assert_eq!(app.show(&rma).await["return_to"], elko);
    let usual = app.start_return(&refund_of("A", &[1])).await;
    assert_eq!(app.show(&usual).await.get("return_to"), None);
    // The message is that of the contract.
    let bodies = app.arrivals("acme").await.into_iter().map(|it| it.body);
    let with_warehouse: Vec<_> = bodies.filter(|it| it.to_string().contains("Elko")).collect();
    assert_eq!(with_warehouse, Vec::<Value>::new());
}

#[tokio::test]
async fn units_that_go_to_different_warehouses_need_a_return_each() {
    let app = start().await;
    let both = together(damaged("A", &[1]), refund_of("B", &[1]));
    let quoted = quote(&app, &both).await;
    let detail = "the unit goes to another warehouse than the first one: return it separately";
    let refusal = json!({ "code": "other_warehouse", "detail": detail, "rule": "outlet" });
    assert_eq!((&quoted["possible"], &quoted["units"][1]["ineligible"]), (&json!(false), &refusal));
    assert_eq!(quoted["return_to"]["warehouse"], "reno");
    let (status, refused) = app.post("/v1/returns", "acme", &both).await;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    assert_eq!(refused["ineligible"][0]["code"], "other_warehouse");
    // Without a rule, units go where the merchant usually receives them.
    let with_usual = together(refund_of("A", &[2]), refund_of("B", &[2]));
    assert_eq!(quote(&app, &with_usual).await["possible"], false);
    for alone in [damaged("A", &[1]), refund_of("B", &[1])] {
        app.start_return(&alone).await;
    }
    let same = together(damaged("A", &[2]), damaged("B", &[2]));
    let rma = app.start_return(&same).await;
    assert_eq!(app.show(&rma).await["return_to"]["warehouse"], "reno");

    let mut overridden = together(refund_of("B", &[3]), damaged("A", &[3]));
    overridden["override"] = json!({ "by": "Ann", "reason": "one parcel" });
    let rma = app.start_return(&overridden).await;
    assert_eq!(app.show(&rma).await["return_to"]["warehouse"], "west");
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let passed = &timeline["entries"][0]["detail"]["override"]["units"][0];
    assert_eq!((&passed["code"], &passed["rule"]), (&json!("other_warehouse"), &json!("damaged")));
}

#[tokio::test]
async fn a_return_keeps_the_address_that_it_started_with() {
    let app = start().await;
    let rma = app.start_return(&refund_of("B", &[1])).await;
    let before = app.show(&rma).await["return_to"].clone();
    assert_eq!(before["address_lines"][2], "Elko, NV 89501");
    let mut changed = merchant("acme");
    changed.version = 2;
    adjust(&mut changed, json!({}));
    changed.settings.base_url = Some(app.sandbox.url("/acme"));
    app.service.publish_merchant(changed).await;
    eventually("the rules are gone", SOON, || async {
        quote(&app, &refund_of("B", &[2])).await.get("return_to").is_none().then_some(())
    })
    .await;
    assert_eq!(app.show(&rma).await["return_to"], before);
}

#[tokio::test]
async fn a_preview_says_where_returns_would_have_gone() {
    let app = start().await;
    let first = app.start_return(&refund_of("B", &[1])).await;
    let preview = async |rules: Value| {
        app.post("/v1/policies/preview", "acme", &json!({ "policy": { "rules": rules } })).await
    };
    let (status, refused) = preview(json!([{ "id": "a", "then": { "return_to": "south" } }])).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    let error = &refused["errors"][0];
    assert_eq!(error["field"], "$.policy.rules[0].then.return_to");
    assert_eq!(error["detail"], "the merchant has no warehouse south");
    let (status, preview) =
        preview(json!([{ "id": "all", "then": { "return_to": "reno" } }])).await;
    assert_eq!(status, StatusCode::OK, "{preview}");
    let change = &preview["changes"][0];
    assert_eq!(change["rma_identifier"], json!(first));
    assert_eq!(change["current"]["return_to"], json!({ "warehouse": "west", "rule": "outlet" }));
    assert_eq!(change["draft"]["return_to"], json!({ "warehouse": "reno", "rule": "all" }));
}
