//! Tests of receipts.

use std::collections::BTreeSet;

use domain::warehouse::sample::{inbound_asn, outbound_shipment, receipt};

use super::*;

const PATH: &str = "/v1/receipts";

async fn start() -> TestApp {
    let app = TestApp::start().await;
    app.accept("/v1/inbound_asns", &inbound_asn("IN-1", 3)).await;
    app
}

/// Waits until the queue of the RMA engine has `count` events, and returns their data.
async fn unit_received_events(app: &TestApp, count: usize) -> Vec<Value> {
    let listener = app.service.listener(&QUEUES).await;
    let events = app.service.events_in(&listener, QUEUES[0], count).await;
    events.into_iter().map(|mut event| event["data"].take()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_reaches_the_merchant_and_the_rma_engine_with_all_fields() {
    let app = start().await;
    let response = app.accept(PATH, &receipt("IN-1", 1)).await;
    assert_eq!(response["message"], "1 unit received");
    let arrivals = app.delivered(1).await;
    let Arrival { path, event, body, .. } = &arrivals[0];
    assert_eq!(
        (path.as_str(), event.as_str()),
        ("/inventory_receipt", "inventory_receipt.received")
    );
    let expected = json!({
        "program_identifier": 7, "asn_number": "IN-1", "shipment_identifier": "RMA-100",
        "from": { "identifier": "shopper-1", "type": "customer" },
        "to": { "identifier": 12, "type": "warehouse", "original_identifier": 12 },
        "carton_identifier": "BOX-1",
        "reference": { "type": "RMA", "identifier": "RMA-100", "alternate_identifier": 100 },
        "line_identifier": "L-1", "reference_line_identifier": 1, "unit_identifier": "U-1",
        "sku": "TENT-001", "upc": "036000291452", "serial_number": "SN-1",
        "initial_condition": "A", "initial_channel": "Outlet", "return_reason": "Too small",
        "user_login": "mwagner", "merchant": "Acme Outdoor", "concept": "Acme Kids",
        "asin": "B00EXAMPLE", "tracking_number": "1Z999", "location_identifier": "A-01-02",
        "client_unit_identifier": 1,
    });
    assert_eq!(body, &expected);

    let events = unit_received_events(&app, 1).await;
    let data = &events[0];
    assert_eq!(data["merchant"], "acme");
    assert_eq!(
        (&data["rma_identifier"], &data["unit_identifier"]),
        (&json!("RMA-100"), &json!("U-1"))
    );
    assert_eq!(
        (&data["reference_line_identifier"], &data["condition"]),
        (&json!("1"), &json!("A"))
    );
    assert_eq!(data["receipt"], response["receipts"][0]["id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn absent_fields_come_from_the_line_and_then_from_the_header() {
    let app = TestApp::start().await;
    let names = ["merchant", "concept", "asin", "upc", "serial_number", "tracking_number"];
    let mut asn = inbound_asn("IN-1", 1);
    let mut unit = receipt("IN-1", 1);
    for name in names {
        asn[name] = json!("INHEADER99");
        unit.as_object_mut().unwrap().remove(name);
    }
    let on_line =
        json!({ "concept": "of the line", "asin": 306_406_152, "upc": 36_000_291_452_i64 });
    let line = asn["cartons"][0]["details"][0].as_object_mut().unwrap();
    line.extend(on_line.as_object().unwrap().clone());
    app.accept("/v1/inbound_asns", &asn).await;
    app.accept(PATH, &unit).await;
    let arrivals = app.delivered(1).await;
    let header = json!("INHEADER99");
    let expected =
        [&header, &on_line["concept"], &on_line["asin"], &on_line["upc"], &header, &header];
    assert_eq!(names.map(|name| &arrivals[0].body[name]), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_are_sent_as_numbers_or_strings_as_they_were_received() {
    let app = start().await;
    let codes = |unit: usize, codes: Value| {
        let mut unit = receipt("IN-1", unit);
        unit.as_object_mut().unwrap().extend(codes.as_object().unwrap().clone());
        unit
    };
    let numbers = json!({
        "asin": 306_406_152, "upc": 36_000_291_452_i64, "serial_number": 7, "tracking_number": 1999,
    });
    let texts = json!({
        "asin": "0306406152", "upc": "036000291452", "serial_number": "7", "tracking_number": "1999",
    });
    let batch = [codes(1, numbers.clone()), codes(2, texts.clone())];
    app.accept(PATH, &json!({ "receipts": batch })).await;
    let arrivals = app.delivered(2).await;
    // Messages about two units have no order.
    for codes in [numbers, texts] {
        let codes = codes.as_object().unwrap();
        let has_codes =
            |arrival: &Arrival| codes.iter().all(|(name, code)| &arrival.body[name] == code);
        assert!(arrivals.iter().any(has_codes), "{codes:?}");
    }
    let events = unit_received_events(&app, 2).await;
    assert_eq!(
        (&events[0]["upc"], &events[1]["upc"]),
        (&json!("36000291452"), &json!("036000291452"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shipment_with_the_number_of_an_asn_has_another_ordering_key() {
    let app = start().await;
    app.accept(PATH, &receipt("IN-1", 1)).await;
    app.accept("/v1/outbound_shipments", &outbound_shipment("IN-1", 1)).await;
    let arrivals = app.delivered(2).await;
    assert_eq!(arrivals.iter().map(|it| it.sequence).collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_unit_has_a_reason() {
    let app = start().await;
    let mut rejected = receipt("IN-1", 1);
    rejected.as_object_mut().unwrap().remove("initial_condition");
    assert_eq!(
        app.reject(PATH, &rejected).await,
        field_error("$.initial_condition", "missing_field")
    );
    rejected["reject_reason"] = json!("another product");
    app.accept(PATH, &rejected).await;
    let arrivals = app.delivered(1).await;
    assert_eq!(arrivals[0].event, "inventory_receipt.rejected");
    assert_eq!(arrivals[0].body["reject_reason"], "another product");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_was_rejected_can_still_be_received() {
    let app = start().await;
    let rejected = |unit| {
        let mut rejected = receipt("IN-1", unit);
        rejected["reject_reason"] = json!("another product");
        rejected
    };
    let first = app.accept(PATH, &rejected(1)).await;
    assert_eq!(app.accept(PATH, &rejected(1)).await, first);
    let shown = || async { app.get("acme", "/v1/inbound_asns/IN-1").await.1 };
    let before = shown().await;
    assert_eq!((&before["received"], &before["lines"][0]["received"]), (&json!(0), &json!(0)));

    let taken = app.accept(PATH, &receipt("IN-1", 1)).await;
    assert_ne!(taken["receipts"][0]["id"], first["receipts"][0]["id"]);
    assert_eq!(app.accept(PATH, &receipt("IN-1", 1)).await, taken);
    assert_eq!(app.accept(PATH, &rejected(1)).await, taken, "a received unit stays received");
    // Within a batch, too, a receipt replaces a rejection.
    let batch = json!({ "receipts": [rejected(2), receipt("IN-1", 2), rejected(2)] });
    let response = app.accept(PATH, &batch).await;
    assert_eq!(response["receipts"][0], response["receipts"][1]);
    assert_eq!(response["receipts"][2], response["receipts"][1]);
    let after = shown().await;
    assert_eq!((&after["received"], &after["lines"][0]["received"]), (&json!(2), &json!(1)));

    let arrivals = app.delivered(3).await;
    let delivered: Vec<_> = arrivals
        .iter()
        .map(|it| (it.event.as_str(), it.body["unit_identifier"].as_str().unwrap()))
        .collect();
    let received = "inventory_receipt.received";
    assert_eq!(
        delivered,
        [("inventory_receipt.rejected", "U-1"), (received, "U-1"), (received, "U-2")]
    );
    let events = unit_received_events(&app, 3).await;
    let published: Vec<_> =
        events.iter().map(|it| (&it["receipt"], &it["reject_reason"])).collect();
    let id = |response: &Value| response["receipts"][0]["id"].clone();
    assert_eq!(
        published,
        [
            (&id(&first), &json!("another product")),
            (&id(&taken), &Value::Null),
            (&id(&response), &Value::Null)
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_is_received_once() {
    let app = start().await;
    let first = app.accept(PATH, &receipt("IN-1", 1)).await;
    assert_eq!(app.accept(PATH, &receipt("IN-1", 1)).await, first);
    let mut elsewhere = receipt("IN-1", 1);
    elsewhere["location_identifier"] = json!("B-02");
    assert_eq!(app.accept(PATH, &elsewhere).await, first, "the first response");

    let batch = json!({ "receipts": [receipt("IN-1", 2), receipt("IN-1", 1), receipt("IN-1", 2)] });
    let response = app.accept(PATH, &batch).await;
    assert_eq!(response["receipts"][1], first["receipts"][0]);
    assert_eq!(response["receipts"][0], response["receipts"][2]);
    assert_eq!(app.accept(PATH, &batch).await, response);
    let keyed = app.post_keyed(PATH, "k", &receipt("IN-1", 3)).await;
    assert_eq!(app.post_keyed(PATH, "k", &receipt("IN-1", 3)).await, keyed);
    assert_eq!(app.post_keyed(PATH, "k", &receipt("IN-1", 2)).await.0, 422);

    let arrivals = app.delivered(3).await;
    let seen: BTreeSet<_> = arrivals
        .iter()
        .map(|it| (it.body["unit_identifier"].as_str().unwrap(), it.sequence))
        .collect();
    assert_eq!(seen, BTreeSet::from([("U-1", 1), ("U-2", 1), ("U-3", 1)]));
    let (_, page) = app.get("acme", "/v1/receipts?asn_number=IN-1&limit=2").await;
    let units: Vec<_> = page["receipts"].as_array().unwrap().iter().collect();
    assert_eq!((units.len(), &units[0]["message"]["unit_identifier"]), (2, &json!("U-3")));
    let next = page["next"].as_str().unwrap();
    let (_, page) = app.get("acme", &format!("/v1/receipts?after={next}&limit=1")).await;
    assert_eq!((page["receipts"].as_array().unwrap().len(), page.get("next")), (1, None));
    assert_eq!(app.get("rival", PATH).await.1, json!({ "receipts": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_receipts_of_one_unit_send_one_message() {
    let app = start().await;
    let (one, two) = (receipt("IN-1", 1), receipt("IN-1", 2));
    // The first unit was rejected before.
    let mut rejected = one.clone();
    rejected["reject_reason"] = json!("another product");
    app.accept(PATH, &rejected).await;
    let batch = json!({ "receipts": [one, two] });
    let reversed = json!({ "receipts": [two, one] });
    let post = |batch| app.accept(PATH, batch);
    let (a, b, c, d) = tokio::join!(post(&batch), post(&reversed), post(&batch), post(&reversed));
    assert_eq!((&a, &b), (&c, &d));
    assert_eq!(a["receipts"][0], b["receipts"][1]);
    app.delivered(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_asn_or_line_rejects_the_whole_batch() {
    let app = start().await;
    let mut asn = inbound_asn("IN-2", 1);
    asn["cartons"][0]["details"][0].as_object_mut().unwrap().remove("unit_identifier");
    app.accept("/v1/inbound_asns", &asn).await;
    let mut without_unit = receipt("IN-2", 1);
    without_unit.as_object_mut().unwrap().remove("client_unit_identifier");
    let batch = [receipt("IN-1", 1), receipt("IN-9", 1), receipt("IN-1", 9), without_unit];
    let errors = app.reject(PATH, &json!({ "receipts": batch })).await;
    let expected = [
        ("$.receipts[1].asn_number", "invalid"),
        ("$.receipts[2].line_identifier", "invalid"),
        ("$.receipts[3].unit_identifier", "missing_field"),
    ];
    assert_eq!(errors, expected.map(|(field, code)| (field.to_owned(), code.to_owned())));
    assert_eq!(app.reject(PATH, &receipt("IN-9", 1)).await, field_error("$.asn_number", "invalid"));
    let (_, page) = app.get("acme", PATH).await;
    assert_eq!(page, json!({ "receipts": [] }));
    app.delivered(0).await;
}
