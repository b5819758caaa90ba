//! Tests of outbound shipments.

use std::collections::BTreeSet;

use diesel_async::RunQueryDsl as _;
use domain::warehouse::sample::{inbound_asn, outbound_shipment, receipt};

use super::*;

const PATH: &str = "/v1/outbound_shipments";

#[tokio::test(flavor = "multi_thread")]
async fn a_shipment_reaches_the_merchant_with_all_fields() {
    let app = TestApp::start().await;
    let shipment = outbound_shipment("ASN-1", 3);
    let response = app.accept(PATH, &shipment).await;
    assert_eq!(response["messages"], json!([{ "asn_number": "ASN-1", "units": 3 }]));
    let arrivals = app.delivered(1).await;
    assert_eq!(arrivals[0].path, "/outbound_asn");
    assert_eq!(arrivals[0].event, "outbound_asn.pending");
    // The message is the reported shipment without its type.
    let mut expected = shipment.clone();
    expected.as_object_mut().unwrap().remove("shipment_type");
    assert_eq!(arrivals[0].body, expected);

    let (status, shown) = app.get("acme", "/v1/outbound_shipments/ASN-1").await;
    let mut expected = response;
    expected["from"] = shipment["from"].clone();
    expected["to"] = shipment["to"].clone();
    assert_eq!((status, shown), (200, expected));
    assert_eq!(app.get("rival", "/v1/outbound_shipments/ASN-1").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_carton_of_2500_units_becomes_three_messages_with_own_sequences() {
    let app = TestApp::start().await;
    let response = app.accept(PATH, &outbound_shipment("ASN-1", 2500)).await;
    let numbers = ["ASN-1_1", "ASN-1_2", "ASN-1_3"];
    let messages: Vec<_> = response["messages"].as_array().unwrap().iter().collect();
    assert_eq!(messages.iter().map(|it| it["asn_number"].clone()).collect::<Vec<_>>(), numbers);
    let mut arrivals = app.delivered(3).await;
    arrivals.sort_by_key(|it| it.body["asn_number"].to_string());
    let mut units = BTreeSet::new();
    for (arrival, number) in arrivals.iter().zip(numbers) {
        assert_eq!((&arrival.body["asn_number"], arrival.sequence), (&json!(number), 1));
        let cartons = arrival.body["cartons"].as_array().unwrap();
        assert_eq!((cartons.len(), &cartons[0]["identifier"]), (1, &json!("PALLET-1")));
        for detail in cartons[0]["details"].as_array().unwrap() {
            assert!(units.insert(detail["unit_identifier"].to_string()), "{detail}");
        }
    }
    assert_eq!(units.len(), 2500);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_sends_every_part_again_and_repeating_it_sends_nothing() {
    let app = TestApp::start().await;
    app.accept(PATH, &outbound_shipment("ASN-1", 1001)).await;
    let one = "/v1/outbound_shipments/ASN-1";
    let shipped = json!({ "status": "shipped", "ship_date": "2026-03-03T10:00:00+02:00" });
    let (status, response) = app.patch(one, &shipped).await;
    assert_eq!((status, &response["status"]), (200, &json!("shipped")));
    assert_eq!(response["ship_date"], "2026-03-03T08:00:00Z");
    assert_eq!(app.patch(one, &shipped).await, (200, response));
    let mut arrivals = app.delivered(4).await;
    // The messages of a part arrive in order; the sort is stable.
    arrivals.sort_by_key(|it| it.body["asn_number"].to_string());
    let seen: Vec<_> = arrivals.iter().map(|it| (it.sequence, it.event.as_str())).collect();
    let pending = "outbound_asn.pending";
    let shipped = "outbound_asn.shipped";
    assert_eq!(seen, [(1, pending), (2, shipped), (1, pending), (2, shipped)]);
    let first = &arrivals[0].body;
    let changed = &arrivals[1].body;
    assert_eq!(
        (&changed["status"], &changed["asn_number"]),
        (&json!("shipped"), &json!("ASN-1_1"))
    );
    assert_eq!(changed["cartons"], first["cartons"]);

    let (status, refused) = app.patch(one, &json!({ "status": "canceled" })).await;
    assert_eq!((status, field_errors(&refused)), (422, field_error("$.status", "invalid")));
    let (status, _) = app.patch("/v1/outbound_shipments/none", &shipped_only()).await;
    assert_eq!(status, 404);
    app.delivered(4).await;
}

fn shipped_only() -> Value {
    json!({ "status": "shipped" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_report_gets_the_first_response_and_sends_nothing() {
    let app = TestApp::start().await;
    let shipment = outbound_shipment("ASN-1", 2);
    let first = app.accept(PATH, &shipment).await;
    assert_eq!(app.accept(PATH, &shipment).await, first);
    app.patch("/v1/outbound_shipments/ASN-1", &shipped_only()).await;
    assert_eq!(app.accept(PATH, &shipment).await, first, "the first response");

    let keyed = outbound_shipment("ASN-2", 2);
    let first_response = app.post_keyed(PATH, "k1", &keyed).await;
    assert_eq!(first_response.0, 201);
    assert_eq!(app.post_keyed(PATH, "k1", &keyed).await, first_response);
    let other = outbound_shipment("ASN-3", 2);
    let (status, refused) = app.post_keyed(PATH, "k1", &other).await;
    assert_eq!((status, field_errors(&refused)), (422, field_error("$", "invalid")));
    app.delivered(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_requests_with_one_key_send_one_message() {
    let app = TestApp::start().await;
    let shipment = outbound_shipment("ASN-1", 2);
    let create = || app.post_keyed(PATH, "k1", &shipment);
    let (a, b, c, d) = tokio::join!(create(), create(), create(), create());
    assert_eq!((a.0, &a, &b, &c), (201, &b, &c, &d));
    app.delivered(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_can_be_used_again_after_an_error_and_after_it_expires() {
    let app = TestApp::alone().await;
    let wrong = outbound_shipment("ASN 1", 1);
    assert_eq!(app.post_keyed(PATH, "k", &wrong).await.0, 422);
    assert_eq!(app.post_keyed(PATH, "k", &outbound_shipment("ASN-1", 1)).await.0, 201);
    let other = outbound_shipment("ASN-2", 1);
    assert_eq!(app.post_keyed(PATH, "k", &other).await.0, 422);
    let rival = app.request(Method::POST, "rival", PATH).header("Idempotency-Key", "k");
    assert_eq!(send(rival.json(&other)).await.0, 201, "another merchant's key");

    let pool = app.service.database.pool();
    let now = platform::Clock::system().now();
    let age = chrono::TimeDelta::seconds(-1);
    platform::database::delete_older_than(&pool, "idempotency_keys", "completed_at", now, age)
        .await
        .unwrap();
    assert_eq!(app.post_keyed(PATH, "k", &other).await.0, 201);
    app.wait_for_arrivals(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_can_be_used_once_including_its_suffixes() {
    let app = TestApp::start().await;
    let used = field_error("$.asn_number", "invalid");
    app.accept(PATH, &outbound_shipment("ASN-1", 1)).await;
    assert_eq!(app.reject(PATH, &outbound_shipment("ASN-1", 2)).await, used);
    app.accept(PATH, &outbound_shipment("ASN-2", 1001)).await;
    assert_eq!(app.reject(PATH, &outbound_shipment("ASN-2_2", 1)).await, used);
    app.accept(PATH, &outbound_shipment("ASN-3_2", 1)).await;
    assert_eq!(app.reject(PATH, &outbound_shipment("ASN-3", 1001)).await, used);
    let (_, page) = app.get("acme", "/v1/outbound_shipments?limit=2").await;
    assert_eq!(page["outbound_shipments"].as_array().unwrap().len(), 2);
    let next = page["next"].as_str().unwrap();
    let (_, page) = app.get("acme", &format!("/v1/outbound_shipments?after={next}")).await;
    assert_eq!(page["outbound_shipments"][0]["asn_number"], "ASN-3_2");
    assert_eq!(page["next"], json!(null));
    app.delivered(4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_and_a_split_shipment_cannot_have_the_same_number() {
    let app = TestApp::start().await;
    let used = field_error("$.asn_number", "invalid");
    app.accept(PATH, &outbound_shipment("ASN-1", 1001)).await;
    assert_eq!(app.reject(PATH, &outbound_shipment("ASN-1_2", 1001)).await, used);
    app.accept(PATH, &outbound_shipment("ASN-2_2", 1001)).await;
    assert_eq!(app.reject(PATH, &outbound_shipment("ASN-2", 1001)).await, used);
    let both = ["ASN-3", "ASN-3_1"].map(|number| outbound_shipment(number, 1001));
    let (one, other) = tokio::join!(app.post(PATH, &both[0]), app.post(PATH, &both[1]));
    assert_eq!(BTreeSet::from([one.0, other.0]), BTreeSet::from([201, 422]));
    app.delivered(6).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_invalid_fields_are_reported_and_nothing_is_stored() {
    let app = TestApp::start().await;
    let mut shipment = outbound_shipment("ASN 1", 2);
    shipment["status"] = json!("lost");
    shipment["to"]["address"]["zip"] = json!(null);
    shipment["cartons"][0]["details"][1]["quantity"] = json!(2);
    shipment.as_object_mut().unwrap().remove("channel");
    let expected = [
        ("$.to.address.zip", "invalid_type"),
        ("$.asn_number", "invalid"),
        ("$.channel", "missing_field"),
        ("$.status", "invalid"),
        ("$.cartons[0].details[1].quantity", "invalid"),
    ];
    let expected = expected.map(|(field, code)| (field.to_owned(), code.to_owned()));
    assert_eq!(app.reject(PATH, &shipment).await, expected);
    let (_, page) = app.get("acme", PATH).await;
    assert_eq!(page, json!({ "outbound_shipments": [] }));
    app.delivered(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stock_transfers_and_vendor_shipments_have_their_own_fields() {
    let app = TestApp::start().await;
    let mut transfer = outbound_shipment("ASN-1", 1);
    transfer["shipment_type"] = json!("stock_transfer");
    for field in ["tracking_number", "carrier", "carrier_payment_type"] {
        transfer.as_object_mut().unwrap().remove(field);
    }
    app.accept(PATH, &transfer).await;
    let mut vendor = outbound_shipment("ASN-2", 1);
    vendor["shipment_type"] = json!("vendor");
    vendor["to"]["identifier"] = json!(4711);
    app.accept(PATH, &vendor).await;
    let mut arrivals = app.delivered(2).await;
    arrivals.sort_by_key(|arrival| arrival.body["asn_number"].to_string());
    for field in ["tracking_number", "carrier", "carrier_payment_type"] {
        assert_eq!(arrivals[0].body.get(field), Some(&json!(null)), "{field}");
    }
    assert_eq!(arrivals[1].body["to"]["identifier"], 4711);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_size_of_a_page_is_limited_in_bytes() {
    let app = TestApp::alone().await;
    for number in ["ASN-1", "ASN-2", "ASN-3"] {
        app.accept(PATH, &outbound_shipment(number, 1)).await;
    }
    let pool = app.service.database.pool();
    let padded = "UPDATE outbound_shipments SET header = header || repeat(' ', 3 * 1024 * 1024)";
    diesel::sql_query(padded).execute(&mut *pool.get().await.unwrap()).await.unwrap();
    let (_, first) = app.get("acme", PATH).await;
    let (_, second) = app.get("acme", &format!("{PATH}?after=acme/ASN-2&limit=1")).await;
    let length = |page: &Value| page["outbound_shipments"].as_array().unwrap().len();
    assert_eq!((length(&first), &first["next"]), (2, &json!("acme/ASN-2")));
    assert_eq!((length(&second), second.get("next")), (1, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_and_references_of_received_units_come_from_their_asn() {
    let app = TestApp::start().await;
    let mut asn = inbound_asn("IN-1", 2);
    asn["reference"] = json!({ "type": "RA", "identifier": 77 });
    asn["eligibility_flags"] = json!(["resale"]);
    asn["cartons"][0].as_object_mut().unwrap().remove("reference");
    asn["cartons"][0]["details"][0]["eligibility_flags"] = json!(["outlet"]);
    app.accept("/v1/inbound_asns", &asn).await;
    app.accept("/v1/receipts", &receipt("IN-1", 1)).await;
    let mut shipment = outbound_shipment("ASN-1", 2);
    shipment["cartons"][0]["reference"] = Value::Null;
    for (index, client_unit) in ["U-1", "U-9"].into_iter().enumerate() {
        let detail = &mut shipment["cartons"][0]["details"][index];
        detail["inbound_received_asn"] = json!("IN-1");
        detail["client_unit_identifier"] = json!(client_unit);
        detail["eligibility_flags"] = Value::Null;
    }
    app.accept(PATH, &shipment).await;
    let arrivals = app.delivered(2).await;
    let sent = arrivals.iter().find(|arrival| arrival.path == "/outbound_asn").unwrap();
    let carton = &sent.body["cartons"][0];
    assert_eq!(carton["reference"], json!({ "type": "RA", "identifier": 77 }));
    // The second unit was not received under its identifiers, so only the header of its ASN applies.
    assert_eq!(carton["details"][0]["eligibility_flags"], json!(["outlet"]));
    assert_eq!(carton["details"][1]["eligibility_flags"], json!(["resale"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warehouse_of_the_merchant_fills_the_locations() {
    let app = TestApp::start().await;
    let mut shipment = outbound_shipment("ASN-1", 1);
    shipment["shipment_type"] = json!("freight");
    shipment["from"] = json!({ "warehouse": "reno" });
    shipment["to"] = json!({ "warehouse": "reno" });
    let response = app.accept(PATH, &shipment).await;
    assert_eq!(response["asn_number"], "ASN-1", "{response}");
    let body = &app.delivered(1).await[0].body;
    assert_eq!(body["from"], json!({ "identifier": "DC-7", "type": "warehouse" }));
    let address = json!({
        "name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "state": "NV", "zip": "89501",
    });
    let to = json!({ "identifier": "DC-7", "type": "warehouse", "address": address });
    assert_eq!(body["to"], to);
}
