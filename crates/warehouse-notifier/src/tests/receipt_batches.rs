//! Tests of concurrent receipts.

use std::collections::BTreeSet;
use std::pin::pin;

use diesel_async::SimpleAsyncConnection as _;
use domain::warehouse::sample::{inbound_asn, receipt};
use futures_util::future::join_all;

use super::*;

const PATH: &str = "/v1/receipts";
/// Counts the statements that wait for a lock.
const BLOCKED: &str = "SELECT count(*) FROM pg_stat_activity \
     WHERE datname = current_database() AND wait_event_type = 'Lock'";

impl TestApp {
    async fn register(&self, merchant: &str, number: &str, units: usize) {
        let request = self.request(Method::POST, merchant, "/v1/inbound_asns");
        assert_eq!(send(request.json(&inbound_asn(number, units))).await.0, 201);
    }

    fn receipt_request(&self, merchant: &str, body: &Value) -> RequestBuilder {
        self.request(Method::POST, merchant, PATH).json(body)
    }

    async fn count(&self, query: &str) -> i64 {
        testkit::count(&mut self.service.pool.get().await.unwrap(), query).await
    }

    /// Sends requests while the first batches wait for a lock, so that the others are likely to form batches.
    async fn send_in_batches(&self, requests: Vec<RequestBuilder>) -> Vec<(u16, Value)> {
        let mut holder = self.service.pool.get().await.unwrap();
        holder.batch_execute("BEGIN; LOCK TABLE inbound_asns").await.unwrap();
        let release = async {
            eventually("the batches wait", TIMEOUT, || async {
                (self.count(BLOCKED).await == 2).then_some(())
            })
            .await;
            holder.batch_execute("COMMIT").await.unwrap();
        };
        tokio::join!(join_all(requests.into_iter().map(send)), release).0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_receipts_of_two_merchants_are_stored_once() {
    let app = TestApp::alone().await;
    let merchants = ["acme", "rival"];
    let numbers = ["IN-1", "IN-2"];
    let units = 15;
    let mut requests = Vec::new();
    for merchant in merchants {
        for number in numbers {
            app.register(merchant, number, units).await;
        }
    }
    for unit in 1..=units {
        for merchant in merchants {
            for number in numbers {
                requests.push(app.receipt_request(merchant, &receipt(number, unit)));
            }
        }
    }
    let responses = app.send_in_batches(requests).await;
    assert!(responses.iter().all(|(status, _)| *status == 201), "{responses:?}");
    assert_eq!(app.count("SELECT count(*) FROM receipts").await, 60);
    for (_, response) in &responses {
        let id = response["receipts"][0]["id"].as_str().unwrap();
        let number = response["receipts"][0]["asn_number"].as_str().unwrap();
        let own = format!("id = '{id}' AND asn_number = '{number}'");
        assert_eq!(app.count(&format!("SELECT count(*) FROM receipts WHERE {own}")).await, 1);
    }
    for merchant in merchants {
        for number in numbers {
            let of_asn = format!(
                "FROM delivery_messages JOIN receipts ON receipts.merchant = delivery_messages.merchant \
                 AND receipts.message = convert_from(body, 'UTF8') \
                 WHERE receipts.merchant = '{merchant}' AND ordering_key LIKE 'inbound_asn:{number}/%'"
            );
            for column in ["*", "DISTINCT receipts.id", "DISTINCT ordering_key"] {
                assert_eq!(app.count(&format!("SELECT count({column}) {of_asn}")).await, 15);
            }
            assert_eq!(app.count(&format!("SELECT max(sequence) {of_asn}")).await, 1);
        }
    }
    app.wait_for_arrivals(30).await;
    let arrivals = app.arrivals().await;
    for number in numbers {
        let of_asn = arrivals.iter().filter(|arrival| arrival.body["asn_number"] == number);
        let units: BTreeSet<_> =
            of_asn.map(|arrival| arrival.body["unit_identifier"].to_string()).collect();
        assert_eq!(units.len(), 15);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_request_in_a_batch_is_rejected_alone() {
    let app = TestApp::alone().await;
    app.register("acme", "IN-1", 10).await;
    let partly_valid = json!({ "receipts": [receipt("IN-1", 10), receipt("IN-1", 99)] });
    let invalid = [receipt("IN-1", 99), receipt("IN-9", 1), partly_valid];
    let valid = (1..=9).map(|unit| receipt("IN-1", unit));
    let (before, after): (Vec<_>, Vec<_>) = valid.partition(|it| it["client_unit_identifier"] != 9);
    let bodies = before.iter().chain(&invalid).chain(&after);
    let responses =
        app.send_in_batches(bodies.map(|body| app.receipt_request("acme", body)).collect()).await;
    let statuses: Vec<_> = responses.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [vec![201; 8], vec![422; 3], vec![201]].concat());
    let fields: Vec<_> = responses[8..11].iter().map(|(_, it)| field_errors(it)).collect();
    let expected = ["$.line_identifier", "$.asn_number", "$.receipts[1].line_identifier"];
    assert_eq!(fields, expected.map(|field| field_error(field, "invalid")));
    assert_eq!(app.count("SELECT count(*) FROM receipts").await, 9);
    app.delivered(9).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_repeats_with_a_key_get_one_response() {
    let app = TestApp::alone().await;
    app.register("acme", "IN-1", 2).await;
    let keyed = |unit| {
        let request = app.receipt_request("acme", &receipt("IN-1", unit));
        request.header("Idempotency-Key", format!("k-{unit}"))
    };
    let responses = app.send_in_batches((0..20).map(|place| keyed(1 + place % 2)).collect()).await;
    for (place, response) in responses.iter().enumerate() {
        assert_eq!((response.0, response), (201, &responses[place % 2]));
    }
    assert_eq!(app.count("SELECT count(*) FROM receipts").await, 2);
    assert_eq!(app.count("SELECT count(*) FROM idempotency_keys").await, 2);
    let other = app.receipt_request("acme", &receipt("IN-1", 2));
    assert_eq!(send(other.header("Idempotency-Key", "k-1")).await.0, 422);
    app.delivered(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_of_several_requests_in_a_batch_gets_its_first_receipt() {
    let app = TestApp::alone().await;
    app.register("acme", "IN-1", 10).await;
    let mut bodies = Vec::new();
    for unit in 1..=10 {
        let mut rejected = receipt("IN-1", unit);
        rejected["reject_reason"] = json!("another product");
        bodies.extend([rejected, receipt("IN-1", unit), receipt("IN-1", unit)]);
    }
    let requests = bodies.iter().map(|body| app.receipt_request("acme", body)).collect();
    let responses = app.send_in_batches(requests).await;
    assert!(responses.iter().all(|(status, _)| *status == 201), "{responses:?}");
    let mut messages = 10;
    for of_unit in responses.chunks(3) {
        let [rejected, first, second] = of_unit else { panic!("three requests for each unit") };
        assert_eq!(first, second);
        // A rejection that came first has its own receipt and message.
        messages += usize::from(rejected != first);
    }
    assert_eq!(app.get("acme", "/v1/inbound_asns/IN-1").await.1["received"], 10);
    app.delivered(messages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_asn_delays_no_receipt_of_another() {
    let app = TestApp::alone().await;
    app.register("acme", "IN-1", 3).await;
    app.register("acme", "IN-2", 10).await;
    let mut holder = app.service.pool.get().await.unwrap();
    let lock = "BEGIN; SELECT FROM inbound_asns WHERE asn_number = 'IN-1' FOR UPDATE";
    holder.batch_execute(lock).await.unwrap();
    let send_units = |number, units: usize| {
        join_all((1..=units).map(|unit| send(app.receipt_request("acme", &receipt(number, unit)))))
    };
    let check = |responses: Vec<(u16, Value)>| {
        assert!(responses.iter().all(|(status, _)| *status == 201), "{responses:?}");
    };
    let mut waiting = pin!(send_units("IN-1", 3));
    let while_waiting = async {
        // A merchant has one slot, so one of the three waits for a row and the others for the slot.
        eventually("a request waits", TIMEOUT, || async {
            (app.count(BLOCKED).await == 1).then_some(())
        })
        .await;
        check(send_units("IN-2", 10).await);
    };
    tokio::select! {
        responses = &mut waiting => panic!("not delayed: {responses:?}"),
        () = while_waiting => {}
    }
    holder.batch_execute("COMMIT").await.unwrap();
    check(waiting.await);
    app.delivered(13).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn units_whose_messages_a_replay_has_locked_delay_no_other() {
    let app = TestApp::alone().await;
    app.register("acme", "IN-1", 5).await;
    for unit in [1, 2] {
        let mut rejected = receipt("IN-1", unit);
        rejected.as_object_mut().unwrap().remove("initial_condition");
        rejected["reject_reason"] = json!("another product");
        assert_eq!(send(app.receipt_request("acme", &rejected)).await.0, 201);
    }
    let mut replay = app.service.pool.get().await.unwrap();
    let lock = "BEGIN; SELECT FROM delivery_ordering_keys FOR UPDATE";
    replay.batch_execute(lock).await.unwrap();
    let send_unit = |unit| send(app.receipt_request("acme", &receipt("IN-1", unit)));
    let mut waiting = pin!(join_all([send_unit(1), send_unit(2)]));
    let while_waiting = async {
        // A merchant has one slot, so one of the two waits for a counter and the other for the slot. The workers of
        // batches do not wait.
        eventually("a request waits", TIMEOUT, || async {
            (app.count(BLOCKED).await > 0).then_some(())
        })
        .await;
        for unit in [3, 4, 5] {
            assert_eq!(send_unit(unit).await.0, 201);
            assert!(app.count(BLOCKED).await <= 1);
        }
    };
    tokio::select! {
        responses = &mut waiting => panic!("not delayed: {responses:?}"),
        () = while_waiting => {}
    }
    replay.batch_execute("COMMIT").await.unwrap();
    let responses = waiting.await;
    assert!(responses.iter().all(|(status, _)| *status == 201), "{responses:?}");
    app.delivered(7).await;
}
