//! Labels of parcels: requests, the responses of providers, and labels that are not used.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::TimeDelta;
use domain::erasure::ShopperErased;
use domain::labels::{LabelMessage, LabelState, MAX_DOCUMENT_BYTES};
use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use sandbox::journal::Entry;
use testkit::add_endpoint;

use super::moving::report;
use super::projecting::{later, order};
use super::*;

const LABELS: &str = "/acme/label_requests";

pub(super) fn with_labels(acme: &mut Merchant) {
    add_endpoint(acme, MessageKind::LabelRequest);
}

/// A response with a label.
pub(super) fn label(tracking_number: &str) -> Value {
    let label = json!({
        "tracking_number": tracking_number, "carrier": "UPS",
        "label": format!("https://carrier.example/{tracking_number}.pdf"),
    });
    json!({ "do": "respond", "body": label })
}

pub(super) const PDF: &[u8] = b"%PDF-1.7 PLANTED";

/// A response with a label as a document and as a code.
pub(super) fn document(tracking_number: &str) -> Value {
    let label = json!({
        "tracking_number": tracking_number, "label": STANDARD.encode(PDF), "qr_code": "PLANTED-QR",
    });
    json!({ "do": "respond", "body": label })
}

impl TestApp {
    /// The service with order A of three units, whose returns get labels.
    async fn with_provider() -> Self {
        let app = Self::with(with_labels).await;
        app.store("acme", &order("A", 3)).await;
        app
    }

    /// Lets the provider respond with these steps first.
    pub(super) async fn provider_responds(&self, steps: &[Value]) {
        let rule = json!({ "path": LABELS, "steps": steps });
        let set = self.client.put(self.sandbox.url("/behaviour")).json(&rule).send().await.unwrap();
        assert!(set.status().is_success(), "{}", set.status());
    }

    /// The requests that the provider got, once no delivery is left.
    async fn label_messages(&self) -> Vec<Entry> {
        self.arrivals("acme").await;
        let url = self.sandbox.url(&format!("/journal?path={LABELS}&limit=1000"));
        let page: sandbox::journal::Page =
            self.client.get(url).send().await.unwrap().json().await.unwrap();
        page.entries
    }

    /// The events of these requests, with the tracking number and the reason of a cancellation.
    pub(super) async fn label_events(&self) -> Vec<String> {
        let event = |entry: Entry| match serde_json::from_value(entry.body).unwrap() {
            LabelMessage::Requested(_) => "requested".to_owned(),
            LabelMessage::Canceled(it) => {
                format!("canceled {} {}", it.tracking_number.unwrap_or_default(), it.reason)
            }
        };
        self.label_messages().await.into_iter().map(event).collect()
    }

    /// The number of label requests of acme for which a condition holds.
    async fn label_requests(&self, condition: &str) -> i64 {
        let of_acme = "SELECT count(*) AS n FROM label_requests WHERE merchant = 'acme'";
        self.number(&format!("{of_acme} AND {condition}")).await
    }

    pub(super) async fn until_labels(&self, condition: &str) {
        eventually(&format!("a label request is {condition}"), SOON, || async {
            (self.label_requests(condition).await > 0).then_some(())
        })
        .await;
    }

    async fn cancel_return(&self, rma: &str) {
        let path = format!("/v1/returns/{rma}/cancel");
        assert_eq!(self.post(&path, "acme", &json!({})).await.0, StatusCode::OK);
    }

    async fn unused_labels(&self) -> Vec<Value> {
        let (_, listed) = self.get("/v1/discrepancies?kind=unused_label", "acme").await;
        let found = listed["discrepancies"].as_array().unwrap();
        found.iter().map(|it| it["detail"].clone()).collect()
    }
}

#[tokio::test]
async fn a_return_that_starts_gets_its_label() {
    let app = TestApp::with_provider().await;
    let rma = app.start_return(&refund_of("A", &[1, 2])).await;
    let arrivals = app.arrivals("acme").await;
    let events: Vec<_> = arrivals.iter().map(|it| it.event.as_str()).collect();
    assert_eq!(events, ["rma.created", "rma.tracking_updated"]);
    assert_eq!(arrivals[0].body["items"][0]["tracking_number"], Value::Null);
    let [message]: [Entry; 1] = app.label_messages().await.try_into().unwrap();
    assert_eq!(message.headers["x-service-event"], "label.requested");
    let id = message.body["label_request_id"].clone();
    assert_eq!((&message.headers["webhook-id"], &message.headers["idempotency-key"]), (&id, &id));
    let requested = &message.body;
    assert_eq!((&requested["rma_identifier"], &requested["reference"]), (&json!(rma), &json!(rma)));
    assert_eq!((&requested["parcel"], &requested["parcel_count"]), (&json!(1), &json!(1)));
    assert_eq!((&requested["form"], &requested["to"]), (&json!("pdf"), &Value::Null));
    assert_eq!(requested["units"].as_array().unwrap().len(), 2);
    assert_eq!(requested["units"][0]["value_cents"], 2165);
    assert!(requested["from"]["address"]["street1"].is_string(), "{requested}");
    let number = format!("SANDBOX-{}", id.as_str().unwrap().replace('-', "").to_uppercase());
    for item in arrivals[1].body["items"].as_array().unwrap() {
        assert_eq!(
            (&item["tracking_number"], &item["package_tracking_status"]),
            (&json!(number), &json!("PRE_TRANSIT"))
        );
    }
    let shown = app.show(&rma).await;
    assert_eq!(shown["units"][0]["label"], Value::Null);
    let bought = "state = 'bought' AND carrier = 'Sandbox' AND cost_cents = 499 \
                  AND document_format = 'pdf'";
    assert_eq!((app.label_requests(bought).await, app.label_requests("true").await), (1, 1));
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let entry = &timeline["entries"][1];
    assert_eq!(
        (&entry["actor"], &entry["detail"]["carrier"]),
        (&json!("label.requested"), &json!("Sandbox"))
    );
}

#[tokio::test]
async fn only_returns_that_are_sent_to_a_merchant_with_a_provider_get_labels() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    app.start_return(&refund_of("A", &[1])).await;
    assert_eq!(app.sent_messages().await, ["rma.created"]);
    assert_eq!(app.label_requests("true").await, 0);
    let review = json!({ "rules": [{ "id": "look", "then": { "review": { "within_days": 3, "then": "approve" } } }] });
    let app = TestApp::with(|acme| {
        with_labels(acme);
        acme.settings.policy = serde_json::from_value(review).unwrap();
    })
    .await;
    app.store("acme", &order("B", 1)).await;
    let rma = app.start_return(&refund_of("B", &[1])).await;
    assert_eq!(app.label_requests("true").await, 0);
    let path = format!("/v1/returns/{rma}/approve");
    assert_eq!(app.post(&path, "acme", &json!({})).await.0, StatusCode::OK);
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.tracking_updated"]);
    assert_eq!(app.label_events().await, ["requested"]);
}

#[tokio::test]
async fn a_label_leads_to_the_warehouse_that_receives_returns() {
    let app = TestApp::with(|acme| {
        with_labels(acme);
        let warehouse = |receives_returns: bool| {
            let warehouse = json!({
                "external_identifier": "DC-7",
                "address": {
                    "name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "state": "NV",
                    "zip": "89501",
                },
                "settings": { "country_code": "US", "receives_returns": receives_returns },
            });
            serde_json::from_value(warehouse).unwrap()
        };
        acme.warehouses.insert("oslo".to_owned(), warehouse(false));
        acme.warehouses.insert("reno".to_owned(), warehouse(true));
    })
    .await;
    app.store("acme", &order("A", 1)).await;
    app.start_return(&refund_of("A", &[1])).await;
    let [message]: [Entry; 1] = app.label_messages().await.try_into().unwrap();
    let address = json!({
        "name": "Dock 7", "street1": "7 Dock Street", "city": "Reno", "state": "NV",
        "zip_code": "89501", "country_code": "US",
    });
    let expected = json!({ "identifier": "DC-7", "company": null, "address": address });
    assert_eq!(message.body["to"], expected);
}

#[tokio::test]
async fn a_heavy_return_gets_a_label_for_each_parcel() {
    let app = TestApp::with(|acme| {
        with_labels(acme);
        acme.settings.parcel_max_weight = Some(0.3);
    })
    .await;
    let mut heavy = order("A", 4);
    // The sum of three such numbers is a little more than 0.3.
    heavy.items[0].weight = Some(0.1);
    app.store("acme", &heavy).await;
    let rma = app.start_return(&refund_of("A", &[1, 2, 3, 4])).await;
    let parcels: Vec<_> = app.label_messages().await.into_iter().map(|it| it.body).collect();
    let [first, second]: [Value; 2] = parcels.try_into().unwrap();
    for (parcel, number, units, reference) in
        [(&first, 1, 3, rma.clone()), (&second, 2, 1, format!("{rma}/2"))]
    {
        assert_eq!((&parcel["parcel"], &parcel["parcel_count"]), (&json!(number), &json!(2)));
        assert_eq!(parcel["units"].as_array().unwrap().len(), units);
        assert_eq!(parcel["reference"], json!(reference));
    }
    let shown = app.show(&rma).await;
    let number = |index: usize| shown["units"][index]["tracking_number"].as_str().unwrap();
    assert_eq!((number(0), number(0)), (number(1), number(2)));
    assert_ne!(number(0), number(3));
    // A canceled unit takes the label of its parcel with it, and no other one.
    let canceled = json!({ "units": [unit("A", 4)] });
    let path = format!("/v1/returns/{rma}/cancel");
    assert_eq!(app.post(&path, "acme", &canceled).await.0, StatusCode::OK);
    let last = format!("canceled {} return_canceled", number(3));
    assert_eq!(app.label_events().await, ["requested", "requested", last.as_str()]);
    let live = "state = 'bought' AND parcel = 1";
    assert_eq!((app.label_requests(live).await, app.label_requests("true").await), (1, 2));
}

#[tokio::test]
async fn the_label_of_a_canceled_return_is_canceled_once() {
    let app = TestApp::with_provider().await;
    app.provider_responds(&[label("1Z-1")]).await;
    let rma = app.start_return(&refund_of("A", &[1, 2])).await;
    app.until_labels("state = 'bought'").await;
    // The parcel still has a unit.
    let one = json!({ "units": [unit("A", 1)] });
    let path = format!("/v1/returns/{rma}/cancel");
    assert_eq!(app.post(&path, "acme", &one).await.0, StatusCode::OK);
    assert_eq!(app.label_events().await, ["requested"]);
    app.cancel_return(&rma).await;
    app.cancel_return(&rma).await;
    assert_eq!(app.label_events().await, ["requested", "canceled 1Z-1 return_canceled"]);
    assert_eq!(app.label_requests("state = 'canceled'").await, 1);
}

#[tokio::test]
async fn the_label_of_an_expired_return_is_canceled() {
    let app = TestApp::with_provider().await;
    app.provider_responds(&[label("1Z-1")]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'bought'").await;
    app.pass_deadlines().await;
    app.until_status(&rma, "CANCELED").await;
    assert_eq!(app.label_events().await, ["requested", "canceled 1Z-1 return_expired"]);
}

#[tokio::test]
async fn a_label_that_comes_after_the_cancellation_is_not_used() {
    let paused = |acme: &mut Merchant, is_paused| {
        with_labels(acme);
        let labels = Interface::Message(MessageKind::LabelRequest);
        acme.endpoints.get_mut(&labels).unwrap().paused = is_paused;
    };
    let app = TestApp::with(|acme| paused(acme, true)).await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.cancel_return(&rma).await;
    let mut acme = merchant("acme");
    paused(&mut acme, false);
    acme.version = 2;
    acme.settings.base_url = Some(app.sandbox.url("/acme"));
    app.service.publish_merchant(acme).await;
    // The provider makes the label and then learns that it is not needed.
    assert_eq!(app.label_events().await, ["requested", "canceled  return_canceled"]);
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.canceled"]);
    assert_eq!(app.show(&rma).await["units"][0]["tracking_number"], Value::Null);
    assert_eq!(app.label_requests("state = 'canceled'").await, 1);
    assert!(app.unused_labels().await.is_empty());
}

#[tokio::test]
async fn a_refusal_is_not_asked_again_and_says_why() {
    let app = TestApp::with_provider().await;
    let refusal = json!({ "reason": "too_heavy", "detail": "over 30 kg" });
    app.provider_responds(&[json!({ "do": "respond", "status": 422, "body": refusal })]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    assert_eq!(app.label_events().await, ["requested"]);
    assert_eq!(app.sent_messages().await, ["rma.created"]);
    let refused = "state = 'refused' AND refusal = 'too_heavy' AND detail = 'over 30 kg'";
    assert_eq!(app.label_requests(refused).await, 1);
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let entry = &timeline["entries"][1];
    assert_eq!(
        (&entry["event"], &entry["detail"]["refusal"]),
        (&json!("label refused"), &json!("too_heavy"))
    );
    // There is no label to cancel.
    app.cancel_return(&rma).await;
    assert_eq!(app.label_events().await, ["requested"]);
}

#[tokio::test]
async fn a_label_that_cannot_be_used_is_refused_and_canceled() {
    for body in [
        json!({ "tracking_number": "1Z", "label": "javascript:alert(1)" }),
        json!({ "tracking_number": "1Z", "label": "http://carrier.example/1.pdf" }),
        json!({ "message": "received" }),
        json!({ "tracking_number": "1Z", "label": "x".repeat(100_000) }),
        json!({ "tracking_number": "1Z", "label": STANDARD.encode("<!doctype html><script>") }),
        json!({ "tracking_number": "1Z", "label": "JVBERi0xLjc" }),
    ] {
        let app = TestApp::with_provider().await;
        app.provider_responds(&[json!({ "do": "respond", "body": body })]).await;
        let rma = app.start_return(&refund_of("A", &[1])).await;
        assert_eq!(app.label_events().await, ["requested", "canceled  unusable"], "{body}");
        assert_eq!(app.label_requests("state = 'refused' AND refusal = 'other'").await, 1);
        assert_eq!(app.show(&rma).await["units"][0]["tracking_number"], Value::Null);
    }
    let app = TestApp::with_provider().await;
    app.provider_responds(&[json!({ "do": "huge", "bytes": 10_000_000 })]).await;
    app.start_return(&refund_of("A", &[1])).await;
    assert_eq!(app.label_events().await, ["requested", "canceled  unusable"]);
    assert_eq!(app.newest_request().await["detail"], "the response has 1.5 MiB or more");
}

#[tokio::test]
async fn a_label_as_a_document_is_sealed_until_it_is_canceled_or_old() {
    let app = TestApp::with_provider().await;
    let canceled = json!({ "do": "respond" });
    app.provider_responds(&[document("1Z-1"), canceled, document("1Z-2")]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'bought'").await;
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.tracking_updated"]);
    let shown = app.show(&rma).await;
    let unit = &shown["units"][0];
    assert_eq!((&unit["tracking_number"], &unit["label"]), (&json!("1Z-1"), &Value::Null));
    let request = app.newest_request().await;
    assert_eq!(
        (&request["document"], &request["has_qr_code"], request.get("label_url")),
        (&json!("pdf"), &json!(true), None)
    );
    let path = format!("/v1/label_requests/{}", request["label_request_id"].as_str().unwrap());
    let (_, shown) = app.get(&path, "acme").await;
    assert_eq!((&shown["qr_code"], &shown["document"]), (&json!("PLANTED-QR"), &json!("pdf")));
    // Nothing has the content as it came: neither the request nor the log of attempts.
    let sealed = "position('PLANTED' IN encode(document, 'escape')) = 0 \
                  AND position('PLANTED' IN encode(qr_code, 'escape')) = 0";
    assert_eq!(app.label_requests(sealed).await, 1);

    assert_eq!(app.post_label(&request, "cancel", "returns", &json!({})).await.0, StatusCode::OK);
    assert_eq!(app.label_requests("sealed_at IS NULL AND state = 'canceled'").await, 1);
    assert_eq!(app.get(&path, "acme").await.1.get("qr_code"), None);
    assert_eq!(app.post_label(&request, "retry", "returns", &json!({})).await.0, StatusCode::OK);
    app.until_labels("tracking_number = '1Z-2'").await;
    let clean_up = async || {
        let (now, age) = (Clock::system().now(), TimeDelta::days(90));
        crate::label_documents::remove_expired(&app.pool, now, age).await.unwrap();
    };
    clean_up().await;
    assert_eq!(app.label_requests("document IS NOT NULL AND qr_code IS NOT NULL").await, 1);
    let ages = "UPDATE label_requests SET sealed_at = sealed_at - interval '91 days' \
                WHERE merchant = 'acme'";
    app.change_rows(ages).await;
    clean_up().await;
    assert_eq!(app.label_requests("sealed_at IS NOT NULL").await, 0);
    assert_eq!(app.label_requests("state = 'bought' AND tracking_number = '1Z-2'").await, 1);
}

#[tokio::test]
async fn a_label_that_comes_later_is_that_of_the_request() {
    let app = TestApp::with_provider().await;
    app.provider_responds(&[json!({ "do": "respond", "status": 202 })]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'accepted'").await;
    assert_eq!(
        app.carrier(&report("1", "label", Some(&rma), Some("1Z-1"))).await.0,
        StatusCode::OK
    );
    assert_eq!(app.label_requests("state = 'bought' AND tracking_number = '1Z-1'").await, 1);
    app.cancel_return(&rma).await;
    assert_eq!(app.label_events().await, ["requested", "canceled 1Z-1 return_canceled"]);
}

#[tokio::test]
async fn a_label_that_the_carrier_replaces_is_canceled() {
    let app = TestApp::with_provider().await;
    app.provider_responds(&[label("1Z-1")]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'bought'").await;
    assert_eq!(
        app.carrier(&report("1", "label", Some(&rma), Some("1Z-1"))).await.0,
        StatusCode::OK
    );
    assert_eq!(app.label_events().await, ["requested"]);
    assert_eq!(
        app.carrier(&report("2", "label", Some(&rma), Some("1Z-2"))).await.0,
        StatusCode::OK
    );
    assert_eq!(app.show(&rma).await["units"][0]["tracking_number"], "1Z-2");
    assert_eq!(app.label_events().await, ["requested", "canceled 1Z-1 unused"]);
    let [unused]: [Value; 1] = app.unused_labels().await.try_into().unwrap();
    assert_eq!(
        (&unused["tracking_number"], &unused["used_tracking_number"]),
        (&json!("1Z-1"), &json!("1Z-2"))
    );
}

#[tokio::test]
async fn a_second_label_for_a_parcel_is_canceled() {
    let app = TestApp::with_provider().await;
    app.provider_responds(&[label("1Z-1"), label("1Z-1"), label("1Z-2")]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let [message]: [Entry; 1] = app.label_messages().await.try_into().unwrap();
    let id = message.body["label_request_id"].as_str().unwrap().to_owned();
    let token = app.issuer.token(Some("acme"), "replay");
    let replay = format!("/v1/deliveries/{id}/replay");
    for (seen, expected) in [
        // The provider sends the label of the parcel again.
        (1, vec!["requested", "requested"]),
        // The provider makes another one.
        (2, vec!["requested", "requested", "requested", "canceled 1Z-2 unused"]),
    ] {
        let (status, response) = app.send(Method::POST, &replay, &token, &[], None).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{seen}: {response}");
        assert_eq!(app.label_events().await, expected);
    }
    assert_eq!(app.show(&rma).await["units"][0]["tracking_number"], "1Z-1");
    let [unused]: [Value; 1] = app.unused_labels().await.try_into().unwrap();
    assert_eq!(
        (&unused["tracking_number"], &unused["used_tracking_number"]),
        (&json!("1Z-2"), &json!("1Z-1"))
    );
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.tracking_updated"]);
}

#[tokio::test]
async fn an_undeliverable_request_stays_open_for_a_replay() {
    let app = TestApp::with_settings(&[("DELIVERY__RETRIES", "0")], with_labels).await;
    app.store("acme", &order("A", 1)).await;
    app.provider_responds(&[json!({ "do": "respond", "status": 503 }), label("1Z-1")]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let [message]: [Entry; 1] = app.label_messages().await.try_into().unwrap();
    let failed = "state = 'requested' AND undeliverable_since IS NOT NULL AND detail LIKE '%503%'";
    assert_eq!(app.label_requests(failed).await, 1);
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    assert_eq!(timeline["entries"][1]["event"], "label undeliverable");
    assert_eq!(timeline["entries"][1]["delivery"], message.headers["webhook-id"]);
    let id = message.headers["webhook-id"].as_str().unwrap();
    let token = app.issuer.token(Some("acme"), "replay");
    let replay = format!("/v1/deliveries/{id}/replay");
    assert_eq!(app.send(Method::POST, &replay, &token, &[], None).await.0, StatusCode::ACCEPTED);
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.tracking_updated"]);
    let bought = "state = 'bought' AND undeliverable_since IS NULL";
    assert_eq!(app.label_requests(bought).await, 1);
}

#[tokio::test]
async fn a_provider_reads_the_requests_of_its_merchants() {
    let app = TestApp::with_provider().await;
    app.provider_responds(&[json!({ "do": "respond", "status": 202 }), label("1Z-1")]).await;
    let first = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'accepted'").await;
    let second = app.start_return(&refund_of("A", &[2])).await;
    app.until_labels("state = 'bought'").await;
    let provider = app.issuer.token(Some("acme"), "labels");
    let get = async |path: &str, token: &str| app.send(Method::GET, path, token, &[], None).await;
    let found = async |query: &str| -> Vec<String> {
        let (status, listed) = get(&format!("/v1/label_requests{query}"), &provider).await;
        assert_eq!(status, StatusCode::OK, "{listed}");
        let listed = listed["label_requests"].as_array().unwrap();
        listed.iter().map(|it| it["rma_identifier"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found("").await, [&*second, &*first]);
    assert_eq!(found("?order=oldest&limit=1").await, [&*first]);
    assert_eq!(found("?state=accepted").await, [&*first]);
    assert_eq!(found(&format!("?rma_identifier={second}")).await, [&*second]);
    let (_, page) = get("/v1/label_requests?limit=1", &provider).await;
    let next = page["next"].as_str().unwrap();
    assert_eq!(found(&format!("?limit=1&after={next}")).await, [&*first]);
    let bought = page["label_requests"][0].clone();
    assert_eq!((&bought["state"], &bought["tracking_number"]), (&json!("bought"), &json!("1Z-1")));
    let path = format!("/v1/label_requests/{}", bought["label_request_id"].as_str().unwrap());
    let (status, shown) = get(&path, &provider).await;
    assert_eq!((status, &shown["message"]["rma_identifier"]), (StatusCode::OK, &json!(second)));
    assert_eq!(shown["units"], json!([unit("A", 2)]));
    // Others do not see them.
    let rival = app.issuer.token(Some("rival"), "labels");
    assert_eq!(get(&path, &rival).await.0, StatusCode::NOT_FOUND);
    assert_eq!(get("/v1/label_requests", &rival).await.1["label_requests"], json!([]));
    let carrier = app.issuer.token(Some("acme"), "carrier");
    assert_eq!(get(&path, &carrier).await.0, StatusCode::FORBIDDEN);
    // A provider of all merchants names none.
    let shared = app.issuer.token(None, "labels");
    assert_eq!(get(&path, &shared).await.0, StatusCode::OK);
    assert_eq!(get("/v1/label_requests", &shared).await.0, StatusCode::OK);
}

impl TestApp {
    /// The newest label request of acme in the API.
    pub(super) async fn newest_request(&self) -> Value {
        let (_, listed) = self.get("/v1/label_requests?limit=1", "acme").await;
        listed["label_requests"][0].clone()
    }

    /// Changes a label request with a token of acme that has this scope.
    pub(super) async fn post_label(
        &self,
        request: &Value,
        action: &str,
        scope: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let id = request["label_request_id"].as_str().unwrap();
        let token = self.issuer.token(Some("acme"), scope);
        let path = format!("/v1/label_requests/{id}/{action}");
        self.send(Method::POST, &path, &token, &[], Some(body)).await
    }
}

#[tokio::test]
async fn a_provider_reports_its_label_later() {
    let app = TestApp::with_provider().await;
    app.provider_responds(&[json!({ "do": "respond", "status": 202, "times": 3 })]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'accepted'").await;
    let request = app.newest_request().await;
    let body = label("1Z-1")["body"].clone();
    assert_eq!(app.post_label(&request, "label", "carrier", &body).await.0, StatusCode::FORBIDDEN);
    let http = json!({ "tracking_number": "1Z-1", "label": "http://carrier.example/1.pdf" });
    let (status, refusal) = app.post_label(&request, "label", "labels", &http).await;
    assert_eq!(
        (status, &refusal["errors"][0]["field"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!("$.label"))
    );
    for _again in 0..2 {
        let (status, shown) = app.post_label(&request, "label", "labels", &body).await;
        assert_eq!((status, &shown["state"]), (StatusCode::OK, &json!("bought")), "{shown}");
    }
    let messages = ["rma.created", "rma.tracking_updated"];
    assert_eq!(app.sent_messages().await, messages);
    assert_eq!(app.show(&rma).await["units"][0]["tracking_number"], "1Z-1");
    // Another label is not used.
    let other = label("1Z-2")["body"].clone();
    let (status, shown) = app.post_label(&request, "label", "labels", &other).await;
    assert_eq!((status, &shown["tracking_number"]), (StatusCode::OK, &json!("1Z-1")));
    assert_eq!(app.label_events().await, ["requested", "canceled 1Z-2 unused"]);
    assert_eq!(app.unused_labels().await.len(), 1);

    app.start_return(&refund_of("A", &[2])).await;
    app.until_labels("state = 'accepted'").await;
    let request = app.newest_request().await;
    let refusal = json!({ "reason": "prohibited", "detail": "lithium" });
    let (status, shown) = app.post_label(&request, "refuse", "labels", &refusal).await;
    assert_eq!((status, &shown["refusal"]), (StatusCode::OK, &json!("prohibited")), "{shown}");
    assert_eq!(shown["detail"], "lithium");
}

#[tokio::test]
async fn a_refused_label_can_be_requested_again() {
    let app = TestApp::with_provider().await;
    let refusal = json!({ "reason": "invalid_address" });
    let refused = json!({ "do": "respond", "status": 422, "body": refusal });
    app.provider_responds(&[refused, label("1Z-1")]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'refused'").await;
    let first = app.newest_request().await;
    // The merchant corrects the address.
    let mut corrected = later(&order("A", 3), 5);
    corrected.shipping_address.street1 = "2 Right Road".to_owned();
    app.store("acme", &corrected).await;
    let note = json!({ "note": "corrected" });
    let (status, _) = app.post_label(&first, "retry", "labels", &note).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let (status, second) = app.post_label(&first, "retry", "returns", &note).await;
    assert_eq!((status, &second["state"]), (StatusCode::OK, &json!("requested")), "{second}");
    assert_ne!(second["label_request_id"], first["label_request_id"]);
    app.until_labels("state = 'bought'").await;
    let messages = app.label_messages().await;
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[1].body["from"]["address"]["street1"], "2 Right Road");
    assert_eq!(messages[1].body["parcel"], 1);
    assert_eq!(app.show(&rma).await["units"][0]["tracking_number"], "1Z-1");
    // A parcel with a label gets no other.
    let (status, conflict) = app.post_label(&first, "retry", "returns", &json!({})).await;
    assert_eq!(status, StatusCode::CONFLICT, "{conflict}");
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let entries = timeline["entries"].as_array().unwrap();
    let asked = entries.iter().find(|it| it["event"] == "label requested").unwrap();
    assert_eq!(asked["detail"]["note"], "corrected");
}

#[tokio::test]
async fn a_canceled_request_is_canceled_once_and_can_be_sent_again() {
    let app = TestApp::with_provider().await;
    app.provider_responds(&[label("1Z-1"), json!({ "do": "respond" }), label("1Z-2")]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'bought'").await;
    let first = app.newest_request().await;
    for _again in 0..2 {
        let (status, shown) = app.post_label(&first, "cancel", "returns", &json!({})).await;
        assert_eq!((status, &shown["state"]), (StatusCode::OK, &json!("canceled")), "{shown}");
    }
    assert_eq!(app.label_events().await, ["requested", "canceled 1Z-1 request_canceled"]);
    assert_eq!(app.post_label(&first, "retry", "returns", &json!({})).await.0, StatusCode::OK);
    let label_of_second = "state = 'bought' AND tracking_number = '1Z-2'";
    app.until_labels(label_of_second).await;
    assert_eq!(app.show(&rma).await["units"][0]["tracking_number"], "1Z-2");
    // A return that is on its way needs no label.
    let scan = report("1", "in_transit", Some(&rma), Some("1Z-2"));
    assert_eq!(app.carrier(&scan).await.0, StatusCode::OK);
    let (status, conflict) = app.post_label(&first, "retry", "returns", &json!({})).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(conflict["message"], format!("parcel 1 of return {rma} needs no label"));
}

#[tokio::test]
async fn a_dead_request_is_canceled_before_it_is_sent_again() {
    let app = TestApp::with_settings(&[("DELIVERY__RETRIES", "0")], with_labels).await;
    app.store("acme", &order("A", 1)).await;
    let steps = [json!({ "do": "respond", "status": 503 }), json!({ "do": "respond" })];
    app.provider_responds(&steps).await;
    app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("undeliverable_since IS NOT NULL").await;
    let first = app.newest_request().await;
    assert_eq!(app.post_label(&first, "retry", "returns", &json!({})).await.0, StatusCode::OK);
    app.until_labels("state = 'bought'").await;
    let expected = ["requested", "canceled  request_canceled", "requested"];
    assert_eq!(app.label_events().await, expected);
    assert_eq!(app.label_requests("state = 'canceled'").await, 1);
}

impl TestApp {
    /// Erases the shopper of order A, also in returns that are open.
    async fn erase_shopper(&self) {
        let erased = ShopperErased {
            erasure_id: uuid::Uuid::now_v7(),
            batch: 1,
            merchant: "acme".parse().unwrap(),
            order_identifiers: vec!["A".to_owned()],
            email_sha256: None,
            force: true,
            force_before: None,
        };
        self.publish_event_at(erased, Some(1000)).await;
    }
}

#[tokio::test]
async fn a_label_is_erased_with_its_shopper() {
    let app = TestApp::with(with_labels).await;
    let mut planted = order("A", 3);
    planted.shipping_address.name = "PLANTED".to_owned();
    app.store("acme", &planted).await;
    let label_of_shopper =
        json!({ "tracking_number": "1Z-1", "label": "https://carrier.example/PLANTED" });
    app.provider_responds(&[
        json!({ "do": "respond", "body": label_of_shopper }),
        json!({ "do": "respond", "status": 422, "body": { "reason": "other", "detail": "PLANTED" } }),
        document("1Z-2"),
    ])
    .await;
    app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("label_url LIKE '%PLANTED%'").await;
    app.start_return(&refund_of("A", &[2])).await;
    app.until_labels("detail = 'PLANTED'").await;
    app.start_return(&refund_of("A", &[3])).await;
    app.until_labels("document IS NOT NULL").await;
    app.erase_shopper().await;
    app.until_labels("detail = 'erased'").await;
    assert_eq!(app.label_requests("label_url IS NOT NULL OR sealed_at IS NOT NULL").await, 0);
    let sent = "SELECT count(*) AS n FROM delivery_messages \
                WHERE merchant = 'acme' AND convert_from(body, 'UTF8') LIKE '%PLANTED%'";
    assert_eq!(app.number(sent).await, 0);
}

#[tokio::test]
async fn a_label_that_comes_after_the_erasure_is_not_stored() {
    let app = TestApp::with_provider().await;
    app.provider_responds(&[json!({ "do": "respond", "status": 202, "times": 2 })]).await;
    for unit in [1, 2] {
        app.start_return(&refund_of("A", &[unit])).await;
    }
    let accepted = "(SELECT count(*) FROM label_requests AS own WHERE own.merchant = 'acme' \
                    AND own.state = 'accepted') = 2";
    app.until_labels(accepted).await;
    app.erase_shopper().await;
    eventually("both returns are erased", SOON, || async {
        let erased = "SELECT count(*) AS n FROM returns \
                      WHERE merchant = 'acme' AND erased_at IS NOT NULL";
        (app.number(erased).await == 2).then_some(())
    })
    .await;
    let (_, listed) = app.get("/v1/label_requests", "acme").await;
    let requests = listed["label_requests"].as_array().unwrap();
    for (request, label) in requests.iter().zip([label("1Z-1"), document("1Z-2")]) {
        let (status, shown) = app.post_label(request, "label", "labels", &label["body"]).await;
        assert_eq!((status, &shown["state"]), (StatusCode::OK, &json!("bought")), "{shown}");
    }
    assert_eq!(app.label_requests("label_url IS NOT NULL OR sealed_at IS NOT NULL").await, 0);
    assert_eq!(app.label_requests("tracking_number IS NOT NULL").await, 2);
}

#[tokio::test]
async fn a_label_that_is_not_used_expires() {
    let app = TestApp::with_provider().await;
    let expiring = |tracking_number: &str| {
        let mut label = document(tracking_number);
        label["body"]["expires_at"] = json!("2099-01-01T00:00:00Z");
        label
    };
    app.provider_responds(&[expiring("1Z-1"), expiring("1Z-2"), label("1Z-3")]).await;
    let first = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("tracking_number = '1Z-1'").await;
    let second = app.start_return(&refund_of("A", &[2])).await;
    app.until_labels("tracking_number = '1Z-2'").await;
    // The parcel of the second return is on its way.
    let scan = report("1", "in_transit", Some(&second), Some("1Z-2"));
    assert_eq!(app.carrier(&scan).await.0, StatusCode::OK);
    let ages = "UPDATE label_requests SET expiry_due_at = now() WHERE merchant = 'acme'";
    app.change_rows(ages).await;
    for _again in 0..2 {
        let now = Clock::system().now();
        crate::labels::expiry::expire_due(&app.pool, now).await.unwrap();
    }
    let expired = "state = 'expired' AND tracking_number = '1Z-1' AND sealed_at IS NULL";
    assert_eq!(app.label_requests(expired).await, 1);
    let used = "state = 'bought' AND tracking_number = '1Z-2' AND sealed_at IS NOT NULL";
    assert_eq!(app.label_requests(used).await, 1);
    let (_, timeline) = app.get(&format!("/v1/returns/{first}/timeline"), "acme").await;
    let entries = timeline["entries"].as_array().unwrap();
    assert_eq!(entries.iter().filter(|it| it["event"] == "label expired").count(), 1);
    // It needs no cancellation, and another one comes only if a person asks for it.
    assert_eq!(app.label_events().await, ["requested"; 2]);
    let (_, listed) = app.get("/v1/label_requests?state=expired", "acme").await;
    let request = &listed["label_requests"][0];
    assert_eq!(app.post_label(request, "retry", "returns", &json!({})).await.0, StatusCode::OK);
    app.until_labels("state = 'bought' AND tracking_number = '1Z-3'").await;
    assert_eq!(app.show(&first).await["units"][0]["tracking_number"], "1Z-3");
}

#[tokio::test]
async fn a_label_that_does_not_come_is_noticed() {
    let app = TestApp::with_settings(&[], with_labels).await;
    app.store("acme", &order("A", 1)).await;
    let oldest = async |state: LabelState| {
        let since = Clock::system().now() - TimeDelta::days(1);
        let mut conn = app.pool.get().await.unwrap();
        crate::store::label_requests::oldest_open(&mut conn, state, since).await.unwrap()
    };
    assert_eq!(oldest(LabelState::Accepted).await, Duration::ZERO);
    app.provider_responds(&[json!({ "do": "respond", "status": 202 })]).await;
    app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'accepted'").await;
    let older = "UPDATE label_requests SET requested_at = requested_at - interval '20 minutes'";
    app.change_rows(older).await;
    assert!(oldest(LabelState::Accepted).await >= Duration::from_secs(1200));
    assert_eq!(oldest(LabelState::Requested).await, Duration::ZERO);
    // The label comes.
    let request = app.newest_request().await;
    let label = label("1Z-1")["body"].clone();
    assert_eq!(app.post_label(&request, "label", "labels", &label).await.0, StatusCode::OK);
    assert_eq!(oldest(LabelState::Accepted).await, Duration::ZERO);
}

#[tokio::test]
async fn a_unit_that_came_back_without_a_label_needs_none() {
    let app = TestApp::with(|acme| {
        with_labels(acme);
        acme.settings.managed_receiving = true;
    })
    .await;
    app.store("acme", &order("A", 1)).await;
    app.provider_responds(&[json!({ "do": "respond", "status": 202 })]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'accepted'").await;
    let mut finding = unit("A", 1);
    finding["finding"] = json!("received");
    let (status, received) = app.receive(&rma, &json!({ "findings": [finding] })).await;
    assert_eq!(status, StatusCode::OK, "{received}");
    let request = app.newest_request().await;
    let label = label("1Z-1")["body"].clone();
    let (status, shown) = app.post_label(&request, "label", "labels", &label).await;
    assert_eq!((status, &shown["state"]), (StatusCode::OK, &json!("canceled")), "{shown}");
    assert_eq!(app.label_events().await, ["requested", "canceled 1Z-1 unused"]);
    assert_eq!(app.show(&rma).await["units"][0]["tracking_number"], Value::Null);
}

#[tokio::test]
async fn a_provider_may_report_the_largest_document() {
    let app = TestApp::with_provider().await;
    app.provider_responds(&[json!({ "do": "respond", "status": 202 })]).await;
    app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'accepted'").await;
    let request = app.newest_request().await;
    let largest = |more: usize| {
        let padded = [PDF, &vec![b'.'; MAX_DOCUMENT_BYTES - PDF.len() + more]].concat();
        json!({ "tracking_number": "1Z-1", "label": STANDARD.encode(padded) })
    };
    let (status, refusal) = app.post_label(&request, "label", "labels", &largest(1)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refusal}");
    let (status, shown) = app.post_label(&request, "label", "labels", &largest(0)).await;
    assert_eq!((status, &shown["document"]), (StatusCode::OK, &json!("pdf")), "{shown}");
}
