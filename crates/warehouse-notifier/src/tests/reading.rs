//! Tests of lists and searches with the scope `read`, of one merchant and of all merchants.

use diesel_async::AsyncPgConnection;
use domain::warehouse::sample::{
    cancellation, confirmation, inbound_asn, outbound_shipment, receipt,
};

use super::*;
use crate::list_position::ListPosition;
use crate::record_keys::Key;
use crate::store;

impl TestApp {
    /// Reports the same records for acme and rival.
    async fn report_for_both(&self) {
        for merchant in ["acme", "rival"] {
            for (path, body) in [
                ("inbound_asns", inbound_asn("IN-1", 2)),
                ("receipts", receipt("IN-1", 1)),
                ("outbound_shipments", outbound_shipment("ASN-1", 1)),
                ("drop_shipments/confirmations", confirmation("A-1")),
                ("drop_shipments/cancellations", cancellation("A-1")),
            ] {
                let request = self.request(Method::POST, merchant, &format!("/v1/{path}"));
                let (status, response) = send(request.json(&body)).await;
                assert_eq!(status, 201, "{path}: {response}");
            }
        }
    }

    async fn get_as(&self, merchant: Option<&str>, scope: &str, path: &str) -> (u16, Value) {
        let token = self.issuer.token(merchant, scope);
        send(self.client.get(format!("{}{path}", self.service.url)).bearer_auth(token)).await
    }

    /// The merchants of the entries of a list, page by page.
    async fn merchants_in(&self, path: &str, merchant: Option<&str>) -> Vec<String> {
        let name = path.trim_start_matches("/v1/").split('?').next().unwrap();
        let name = if name == "warehouse_records" { "records" } else { name };
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let separator = if path.contains('?') { '&' } else { '?' };
            let page = format!("{path}{separator}limit=1{after}");
            let (status, page) = self.get_as(merchant, "read", &page).await;
            assert_eq!(status, 200, "{path}: {page}");
            let entries = page[name].as_array().unwrap();
            found.extend(entries.iter().map(|it| it["merchant"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { return found };
            after = format!("&after={next}");
        }
    }
}

const LISTS: [(&str, &[&str]); 4] = [
    ("/v1/inbound_asns", &["acme", "rival"]),
    ("/v1/outbound_shipments", &["acme", "rival"]),
    ("/v1/receipts", &["rival", "acme"]),
    ("/v1/drop_shipments", &["rival", "rival", "acme", "acme"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn staff_read_the_records_of_all_merchants_and_a_merchant_its_own() {
    let app = TestApp::alone().await;
    app.report_for_both().await;
    for (path, expected) in LISTS {
        assert_eq!(app.merchants_in(path, None).await, expected, "{path}");
        let own: Vec<_> = expected.iter().filter(|it| **it == "rival").copied().collect();
        assert_eq!(app.merchants_in(path, Some("rival")).await, own, "{path}");
        let named = format!("{path}?merchant=rival");
        assert_eq!(app.merchants_in(&named, None).await, own, "{path}");
        assert_eq!(app.get_as(Some("acme"), "read", &named).await.0, 404, "{path}");
        assert_eq!(app.get_as(None, "read", &format!("{path}?merchant=nobody")).await.0, 404);
        assert_eq!(app.get_as(None, "warehouse", path).await.0, 400, "{path}");
        assert_eq!(app.get_as(Some("acme"), "returns", path).await.0, 403, "{path}");
    }
    for path in ["/v1/inbound_asns/IN-1", "/v1/outbound_shipments/ASN-1"] {
        assert_eq!(app.get_as(Some("rival"), "read", path).await.0, 200, "{path}");
        assert_eq!(app.get_as(None, "read", path).await.0, 400, "{path} needs a merchant");
    }
    for path in ["/v1/receipts?asn_number=IN-1", "/v1/drop_shipments?order_identifier=A-1"] {
        assert_eq!(app.get_as(Some("rival"), "read", path).await.0, 200, "{path}");
        assert_eq!(app.get_as(None, "read", path).await.0, 400, "{path} needs a merchant");
    }
    let request = app.client.post(format!("{}/v1/inbound_asns", app.service.url));
    let request = request.bearer_auth(app.issuer.token(Some("acme"), "read"));
    assert_eq!(send(request.json(&inbound_asn("IN-2", 1))).await.0, 403, "may only read");
}

#[tokio::test(flavor = "multi_thread")]
async fn drop_shipments_of_an_order_are_listed() {
    let app = TestApp::start().await;
    app.report_for_both().await;
    app.accept("/v1/drop_shipments/confirmations", &confirmation("A-2")).await;
    let (_, page) = app.get("acme", "/v1/drop_shipments?order_identifier=A-1").await;
    let listed = page["drop_shipments"].as_array().unwrap();
    let kinds: Vec<_> = listed.iter().map(|it| (&it["kind"], &it["order"])).collect();
    let order = &json!("A-1");
    assert_eq!(kinds, [(&json!("cancellation"), order), (&json!("confirmation"), order)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_found_by_asn_tracking_number_and_order() {
    let app = TestApp::alone().await;
    app.report_for_both().await;
    let mut unit = receipt("IN-1", 2);
    unit["tracking_number"] = json!("LATE-1");
    app.accept("/v1/receipts", &unit).await;
    let mut long = outbound_shipment("ASN-2", 1);
    long["tracking_number"] = json!("9".repeat(5000));
    long["shipment_identifier"] = json!("IN-1");
    app.accept("/v1/outbound_shipments", &long).await;
    let find = async |merchant: Option<&str>, query: &str| {
        let path = format!("/v1/warehouse_records?{query}");
        let (status, page) = app.get_as(merchant, "read", &path).await;
        assert_eq!(status, 200, "{page}");
        let text = |record: &Value, key: &str| record[key].as_str().unwrap().to_owned();
        let line = |it: &Value| ["merchant", "kind", "number"].map(|key| text(it, key)).join(" ");
        page["records"].as_array().unwrap().iter().map(line).collect::<Vec<_>>()
    };
    let both = |record: &str| ["acme", "rival"].map(|merchant| format!("{merchant} {record}"));
    let inbound = both("inbound_asn IN-1");
    assert_eq!(find(None, "asn_number=IN-1").await, inbound);
    assert_eq!(find(None, "tracking_number=1Z999").await, inbound);
    assert_eq!(find(None, "order_identifier=RMA-100").await, inbound);
    assert_eq!(find(None, "order_identifier=100").await, inbound);
    assert_eq!(find(None, "tracking_number=LATE-1").await, inbound[..1]);
    let outbound = both("outbound_shipment ASN-1");
    assert_eq!(find(None, "asn_number=ASN-1").await, outbound);
    assert_eq!(find(None, "tracking_number=PRO-778").await, outbound);
    assert_eq!(find(None, "order_identifier=RA-5&merchant=rival").await, outbound[1..]);
    let tracking = format!("tracking_number={}", "9".repeat(5000));
    assert_eq!(find(None, &tracking).await, ["acme outbound_shipment ASN-2"]);
    assert_eq!(find(None, "order_identifier=IN-1").await, ["acme outbound_shipment ASN-2"]);
    let dropped = both("drop_shipment A-1");
    assert_eq!(find(None, "order_identifier=A-1").await, dropped);
    assert_eq!(find(None, "tracking_number=1Z1").await, dropped);
    assert_eq!(find(Some("rival"), "tracking_number=1Z1").await, dropped[1..]);
    assert_eq!(find(Some("rival"), "tracking_number=LATE-1").await, [""; 0]);
    assert_eq!(find(None, "asn_number=1Z1").await, [""; 0]);
    let pages = app.merchants_in("/v1/warehouse_records?tracking_number=1Z1", None).await;
    assert_eq!(pages, ["acme", "rival"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_before_a_change_still_finds_the_asn() {
    let app = TestApp::start().await;
    let mut asn = inbound_asn("IN-1", 1);
    app.accept("/v1/inbound_asns", &asn).await;
    asn["tracking_number"] = json!("NEW-1");
    assert_eq!(app.put("/v1/inbound_asns/IN-1", &asn).await.0, 200);
    for number in ["1Z999", "NEW-1"] {
        let path = format!("/v1/warehouse_records?tracking_number={number}");
        assert_eq!(app.get("acme", &path).await.1["records"][0]["number"], "IN-1", "{number}");
    }
}

/// Fills all tables for acme, whose records are the older half, and rival. Every ASN of a list has two
/// receipts.
fn fill(rows: i64) -> String {
    format!(
        "CREATE TEMPORARY TABLE numbers AS \
         SELECT merchant, n, lpad(to_hex(older + n), 32, '0')::uuid AS id \
         FROM (VALUES ('acme', 0), ('rival', {rows})) AS merchants (merchant, older), \
             generate_series(1, {rows}) AS n; \
         INSERT INTO inbound_asns SELECT merchant, 'N-' || n, \
             '{{\"asn_number\": \"N\", \"from\": {place}, \"to\": {place}}}', 1, 1, '', now(), now() \
             FROM numbers; \
         INSERT INTO outbound_shipments SELECT merchant, 'N-' || n, 'freight', '{header}', 1, '', \
             now(), now() FROM numbers; \
         INSERT INTO receipts SELECT merchant, 'R-' || n % 10, n, id, n, '{{}}', \
             false, now() FROM numbers; \
         INSERT INTO receipts SELECT merchant, 'N-' || n, unit, gen_random_uuid(), n, '{{}}', \
             false, now() FROM numbers, generate_series(1, 2) AS unit WHERE n <= 1000; \
         INSERT INTO drop_shipments SELECT merchant, 'confirmation', n, id, \
             'O-' || n % 10, '', now() FROM numbers; \
         INSERT INTO record_keys SELECT '\\x{key}'::bytea, merchant, 'inbound_asn', 'N-' || n, now() \
             FROM numbers",
        place = r#"{"identifier": "W", "type": "warehouse"}"#,
        header = outbound_shipment("N", 1),
        key = hex(Key::TrackingNumber("T".to_owned()).digest().as_bytes()),
    )
}

/// Every list and search reads as many rows as a page has, in tables with many more.
#[tokio::test(flavor = "multi_thread")]
async fn lists_and_searches_read_few_rows() {
    let database = testkit::Database::create(<App as platform::Service>::migrations()).await;
    // An ASN with fewer receipts is cheaper to sort than to read in order.
    database.execute_raw(&fill(testkit::fill_rows().max(10_000))).await;
    database.execute_raw("VACUUM ANALYZE").await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    let acme = "acme".parse().unwrap();
    let start = ListPosition::default();
    let later = ListPosition { merchant: "acme".to_owned(), number: "N-5".to_owned() };
    let lists = [
        "asns",
        "later asns",
        "shipments",
        "receipts",
        "receipts of an asn",
        "drop shipments",
        "drop shipments of an order",
        "records",
    ];
    for merchant in [None, Some(&acme)] {
        for list in lists {
            let find = async |conn: &mut AsyncPgConnection| match list {
                "asns" => store::inbound::page(conn, merchant, &start, 10).await.unwrap().len(),
                "later asns" => {
                    store::inbound::page(conn, merchant, &later, 10).await.unwrap().len()
                }
                "shipments" => {
                    store::outbound::page(conn, merchant, &start, 10).await.unwrap().0.len()
                }
                "receipts" | "receipts of an asn" => {
                    let asn = merchant.filter(|_| list != "receipts").map(|_| "R-7");
                    store::receipts::page(conn, merchant, asn, None, 10).await.unwrap().len()
                }
                "drop shipments" | "drop shipments of an order" => {
                    let order = merchant.filter(|_| list != "drop shipments").map(|_| "O-7");
                    store::drop_shipments::page(conn, merchant, order, None, 10)
                        .await
                        .unwrap()
                        .len()
                }
                _ => {
                    let key = Key::TrackingNumber("T".to_owned());
                    let after = store::record_keys::RecordPosition::default();
                    store::record_keys::find(conn, merchant, &key, &after, 10).await.unwrap().len()
                }
            };
            // The plan of a prepared statement changes after some executions.
            for _ in 0..7 {
                let (found, reads) = testkit::reads(&mut conn, &find).await;
                assert_eq!(found, 10, "{list}");
                let is_cheap = reads.rows <= 60 && reads.pages <= 200;
                assert!(is_cheap, "{list} of {merchant:?}: {reads:?}");
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
