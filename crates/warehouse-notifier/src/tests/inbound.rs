//! What merchants announce.

use domain::warehouse::sample::{inbound_asn, receipt};

use super::*;

const PATH: &str = "/v1/inbound_asns";

#[tokio::test(flavor = "multi_thread")]
async fn an_announcement_shows_what_is_expected_and_received() {
    let warehouse = Warehouse::open().await;
    let mut asn = inbound_asn("IN-1", 2);
    asn["cartons"][0]["details"][1]["quantity"] = json!(5);
    let answer = warehouse.accept(PATH, &asn).await;
    assert_eq!((&answer["lines"], &answer["expected"]), (&json!(2), &json!(6)));
    warehouse.accept("/v1/receipts", &receipt("IN-1", 1)).await;
    let (status, shown) = warehouse.get("acme", "/v1/inbound_asns/IN-1").await;
    assert_eq!((status, &shown["expected"], &shown["received"]), (200, &json!(6), &json!(1)));
    assert_eq!(shown["to"], asn["to"]);
    let line = &shown["lines"][0];
    assert_eq!((&line["line_identifier"], &line["received"]), (&json!("L-1"), &json!(1)));
    assert_eq!(
        (&line["carton_identifier"], &line["reference"]["type"]),
        (&json!("BOX-1"), &json!("RMA"))
    );
    assert_eq!(shown["lines"][1]["received"], 0);
    let (_, page) = warehouse.get("acme", PATH).await;
    assert_eq!(page["inbound_asns"][0]["received"], 1);
    assert_eq!(warehouse.get("rival", "/v1/inbound_asns/IN-1").await.0, 404);
    assert_eq!(warehouse.get("rival", PATH).await.1, json!({ "inbound_asns": [] }));
    warehouse.delivered(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announcement_changes_until_the_first_unit_arrives() {
    let warehouse = Warehouse::open().await;
    let first = warehouse.accept(PATH, &inbound_asn("IN-1", 2)).await;
    assert_eq!(warehouse.accept(PATH, &inbound_asn("IN-1", 2)).await, first);
    let used = fault("$.asn_number", "invalid");
    assert_eq!(warehouse.refuse(PATH, &inbound_asn("IN-1", 3)).await, used);

    let one = "/v1/inbound_asns/IN-1";
    let (status, changed) = warehouse.put(one, &inbound_asn("IN-1", 3)).await;
    assert_eq!((status, &changed["expected"]), (200, &json!(3)));
    let (status, refused) = warehouse.put(one, &inbound_asn("IN-2", 3)).await;
    assert_eq!((status, faults(&refused)), (422, used.clone()));
    let (status, _) = warehouse.put("/v1/inbound_asns/IN-9", &inbound_asn("IN-9", 3)).await;
    assert_eq!(status, 404);

    warehouse.accept("/v1/receipts", &receipt("IN-1", 3)).await;
    let (status, refused) = warehouse.put(one, &inbound_asn("IN-1", 4)).await;
    assert_eq!((status, faults(&refused)), (422, used));
    assert_eq!(warehouse.put(one, &inbound_asn("IN-1", 3)).await.0, 200, "changes nothing");
    warehouse.delivered(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announcement_changes_though_a_unit_was_rejected() {
    let warehouse = Warehouse::open().await;
    warehouse.accept(PATH, &inbound_asn("IN-1", 2)).await;
    let mut rejected = receipt("IN-1", 1);
    rejected["reject_reason"] = json!("another product");
    warehouse.accept("/v1/receipts", &rejected).await;
    let one = "/v1/inbound_asns/IN-1";
    let (status, changed) = warehouse.put(one, &inbound_asn("IN-1", 3)).await;
    assert_eq!((status, &changed["expected"]), (200, &json!(3)));

    // The unit that was rejected is taken after all.
    warehouse.accept("/v1/receipts", &receipt("IN-1", 1)).await;
    let (status, refused) = warehouse.put(one, &inbound_asn("IN-1", 4)).await;
    assert_eq!((status, faults(&refused)), (422, fault("$.asn_number", "invalid")));
    warehouse.delivered(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_may_be_numbers() {
    let warehouse = Warehouse::open().await;
    let mut asn = inbound_asn("", 1);
    asn["asn_number"] = json!(12345);
    asn["cartons"][0]["details"][0]["line_identifier"] = json!(1);
    let answer = warehouse.accept(PATH, &asn).await;
    assert_eq!(answer["asn_number"], 12345);
    assert_eq!(warehouse.get("acme", "/v1/inbound_asns/12345").await.1["asn_number"], 12345);
    let mut unit = receipt("", 1);
    unit["asn_number"] = json!(12345);
    unit["line_identifier"] = json!("1");
    unit["unit_identifier"] = json!(9_007_199_254_740_993_i64);
    warehouse.accept("/v1/receipts", &unit).await;
    let arrivals = warehouse.delivered(1).await;
    let body = &arrivals[0].body;
    assert_eq!((&body["asn_number"], &body["line_identifier"]), (&json!(12345), &json!("1")));
    assert_eq!(body["unit_identifier"], 9_007_199_254_740_993_i64);
}
