//! Statements whose plans were made while their tables were empty read few rows of the full tables.

use std::collections::BTreeSet;

use diesel_async::AsyncPgConnection;
use domain::json::Digest;
use domain::warehouse::sample::{inbound_asn, outbound_shipment};
use domain::warehouse::{
    AsnPart, DropShipment, DropShipmentKind, InboundHeader, OutboundHeader, ShipmentType,
};
use platform::batching::Processing;
use platform::{Clock, Service as _};

use super::*;
use crate::list_position::ListPosition;
use crate::record_keys::Key;
use crate::store::inbound::NewAsn;
use crate::store::outbound::{Lock, NewShipment};
use crate::store::receipts::NewReceipt;
use crate::store::{
    drop_shipments, erased_orders, erasures, inbound, new_id, outbound, outbound_parts, receipts,
    received_units, record_keys,
};

/// Records of each kind.
const ROWS: i64 = 5_000;
/// Rows that a statement about one record may read: some entries of indexes, and rows.
const MAX_ROWS: i64 = 60;
/// Executions after which PostgreSQL keeps a plan.
const WARM_UPS: usize = 6;
/// The record that each statement is about.
const NUMBER: &str = "N-505";

const STATEMENTS: [&str; 26] = [
    "headers of receipts",
    "headers of a batch",
    "lines of receipts",
    "find receipts",
    "insert receipt",
    "page of receipts",
    "new asn",
    "replace asn",
    "find asn",
    "lock asn",
    "page of asns",
    "lines of an asn",
    "new shipment",
    "find shipment",
    "lock shipment",
    "change shipment",
    "page of shipments",
    "new parts",
    "parts",
    "received units",
    "drop order",
    "drop shipment",
    "page of drop shipments",
    "records",
    "erased orders",
    "erase",
];

fn header() -> OutboundHeader {
    let mut header: OutboundHeader = serde_json::from_value(outbound_shipment("N", 1)).unwrap();
    header.asn_number = NUMBER.to_owned();
    header
}

fn inbound_header() -> InboundHeader {
    serde_json::from_value(inbound_asn("N", 1)).unwrap()
}

async fn receive(name: &str, conn: &mut AsyncPgConnection) {
    let asn = ("acme".to_owned(), NUMBER.to_owned());
    let now = Clock::system().now();
    let processing = Processing::Alone;
    match name {
        "headers of receipts" => {
            drop(receipts::headers(conn, &BTreeSet::from([&asn]), processing).await.unwrap());
        }
        "headers of a batch" => {
            let batch = Processing::Batch;
            drop(receipts::headers(conn, &BTreeSet::from([&asn]), batch).await.unwrap());
        }
        "lines of receipts" => {
            let wanted = BTreeSet::from([(asn, "1".to_owned())]);
            // The line of the full table is not complete.
            drop(receipts::lines(conn, &wanted).await.ok());
        }
        "find receipts" => {
            drop(receipts::find(conn, &[("acme", NUMBER, "1")]).await.unwrap());
        }
        "insert receipt" => {
            let new = NewReceipt {
                merchant: "acme".parse().unwrap(),
                id: new_id(now),
                asn_number: NUMBER.to_owned(),
                line_identifier: "1".to_owned(),
                unit_identifier: "2".to_owned(),
                message: "{}".to_owned(),
                rejected: false,
                received_at: now,
            };
            drop(receipts::insert(conn, &[&new]).await.unwrap());
        }
        "page of receipts" => {
            let acme = "acme".parse().unwrap();
            drop(receipts::page(conn, Some(&acme), Some(NUMBER), None, 10).await.unwrap());
        }
        other => announce(other, conn).await,
    }
}

async fn announce(name: &str, conn: &mut AsyncPgConnection) {
    let acme = "acme".parse().unwrap();
    let header = inbound_header();
    let asn = NewAsn {
        merchant: &acme,
        number: if name == "new asn" { "NEW" } else { NUMBER },
        header: &header,
        lines: &[],
        units: 1,
        digest: Digest::of_value(&json!(1)),
        at: Clock::system().now(),
    };
    match name {
        "new asn" => {
            inbound::insert(conn, &asn).await.unwrap();
            inbound::insert_lines(conn, &asn).await.unwrap();
        }
        "replace asn" => inbound::replace(conn, &asn).await.unwrap(),
        "find asn" => drop(inbound::find(conn, &acme, NUMBER).await.unwrap()),
        "lock asn" => inbound::lock(conn, &acme, NUMBER).await.unwrap(),
        "page of asns" => {
            drop(inbound::page(conn, Some(&acme), &ListPosition::default(), 5).await.unwrap());
        }
        "lines of an asn" => {
            inbound::lines_bytes(conn, &acme, NUMBER).await.unwrap();
            // The line of the full table is not complete.
            drop(inbound::lines(conn, &acme, NUMBER).await.ok());
        }
        other => ship(other, conn).await,
    }
}

async fn ship(name: &str, conn: &mut AsyncPgConnection) {
    let acme = "acme".parse().unwrap();
    let now = Clock::system().now();
    let mut header = header();
    let part = |asn_number: &str| AsnPart {
        asn_number: asn_number.to_owned(),
        units: 1,
        cartons: "[]".to_owned(),
    };
    let parts = [part("NEW_1"), part("NEW_2")];
    if name.starts_with("new") {
        header.asn_number = "NEW".to_owned();
    }
    let shipment = NewShipment {
        merchant: &acme,
        shipment_type: ShipmentType::Freight,
        header: &header,
        parts: &parts,
        digest: Digest::of_value(&json!(1)),
        at: now,
    };
    match name {
        "new shipment" => {
            outbound::insert(conn, &shipment).await.unwrap();
        }
        "find shipment" => drop(outbound::find(conn, &acme, NUMBER, Lock::None).await.unwrap()),
        "lock shipment" => drop(outbound::find(conn, &acme, NUMBER, Lock::Update).await.unwrap()),
        "change shipment" => outbound::change(conn, &acme, &header, now).await.unwrap(),
        "page of shipments" => {
            drop(outbound::page(conn, Some(&acme), &ListPosition::default(), 5).await.unwrap());
        }
        "new parts" => {
            outbound::insert(conn, &shipment).await.unwrap();
            outbound_parts::insert(conn, &shipment).await.unwrap();
        }
        "parts" => drop(outbound_parts::load(conn, &acme, NUMBER).await.unwrap()),
        "received units" => {
            drop(received_units::headers(conn, &acme, &BTreeSet::from([NUMBER])).await.unwrap());
            // The line of the full table is not complete.
            let units = BTreeSet::from([(NUMBER, "1")]);
            drop(received_units::lines(conn, &acme, &units).await.ok());
        }
        other => drop_ship(other, conn).await,
    }
}

async fn drop_ship(name: &str, conn: &mut AsyncPgConnection) {
    let acme = "acme".parse().unwrap();
    let now = Clock::system().now();
    let shipment = DropShipment {
        kind: DropShipmentKind::Confirmation,
        order: NUMBER.to_owned(),
        reference: "NEW".to_owned(),
        tracking_number: None,
        digest: Digest::of_value(&json!(1)),
        body: "{}".to_owned(),
    };
    let key = Key::OrderIdentifier(NUMBER.to_owned());
    match name {
        "drop order" => {
            drop_shipments::lock_order(conn, &acme, NUMBER).await.unwrap();
            drop_shipments::cancel_order(conn, &acme, NUMBER, now).await.unwrap();
        }
        "drop shipment" => {
            drop(drop_shipments::find(conn, &acme, &shipment).await.unwrap());
            drop_shipments::insert(conn, &acme, &shipment, new_id(now), now).await.unwrap();
        }
        "page of drop shipments" => {
            let page = drop_shipments::page(conn, Some(&acme), Some(NUMBER), None, 5);
            drop(page.await.unwrap());
        }
        "records" => {
            let after = record_keys::RecordPosition::default();
            drop(record_keys::find(conn, Some(&acme), &key, &after, 5).await.unwrap());
        }
        "erased orders" => {
            let orders = BTreeSet::from([("acme".to_owned(), NUMBER.to_owned())]);
            drop(erased_orders::ErasedOrders::find(conn, &orders).await.unwrap());
        }
        "erase" => {
            let numbers = [NUMBER.to_owned()];
            drop(erasures::numbers(conn, &acme, &[key.digest()]).await.unwrap());
            let locked = erasures::lock_shipments(conn, &acme, &numbers, now).await.unwrap();
            drop(erasures::parts(conn, &acme, &locked).await.unwrap());
            erasures::erase_shipments(conn, &acme, &locked, domain::erasure::erase).await.unwrap();
            let asns = erasures::lock_asns(conn, &acme, &numbers).await.unwrap();
            erasures::erase_asns(conn, &acme, &asns, |_| true).await.unwrap();
            let erase = domain::erasure::erase_report;
            erasures::erase_receipts(conn, &acme, &numbers, Some(now), erase).await.unwrap();
            drop(erasures::received_units(conn, &acme, &numbers).await.unwrap());
        }
        other => panic!("{other} is not a statement"),
    }
}

fn fill() -> String {
    let asn = serde_json::to_string(&inbound_header()).unwrap();
    let digest = Key::OrderIdentifier(NUMBER.to_owned()).digest();
    let key: String = digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "CREATE TEMPORARY TABLE numbers AS SELECT n, 'N-' || n AS name FROM generate_series(1, {ROWS}) AS n; \
         INSERT INTO inbound_asns SELECT 'acme', name, '{asn}', 1, 1, '', now(), now() FROM numbers; \
         INSERT INTO inbound_lines SELECT 'acme', name, '1', 0, '{{}}' FROM numbers; \
         INSERT INTO receipts SELECT 'acme', name, '1', gen_random_uuid(), '1', '{{}}', false, \
             now() - interval '1 minute' FROM numbers; \
         INSERT INTO outbound_shipments SELECT 'acme', name, 'freight', '{shipment}', 1, '', \
             now() - interval '1 minute', now() FROM numbers; \
         INSERT INTO outbound_parts SELECT 'acme', name, name, 0, 1, '[]' FROM numbers; \
         INSERT INTO drop_orders SELECT 'acme', name FROM numbers; \
         INSERT INTO drop_shipments SELECT 'acme', 'confirmation', name, gen_random_uuid(), name, '', now() \
             FROM numbers; \
         INSERT INTO erased_orders SELECT 'acme', name, now() FROM numbers; \
         INSERT INTO record_keys SELECT CASE WHEN name = '{NUMBER}' THEN '\\x{key}'::bytea \
             ELSE sha256(name::bytea) END, 'acme', 'inbound_asn', name, now() FROM numbers",
        shipment = serde_json::to_string(&header()).unwrap(),
    )
}

#[tokio::test]
async fn plans_made_while_tables_were_empty_read_few_rows_of_full_ones() {
    let database = testkit::Database::create(App::migrations()).await;
    let off = "DO $$ DECLARE name TEXT; BEGIN \
                   FOR name IN SELECT quote_ident(relname) FROM pg_class \
                       WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' \
                   LOOP EXECUTE 'ALTER TABLE ' || name || ' SET (autovacuum_enabled = off)'; END LOOP; \
               END $$";
    database.execute_raw(off).await;
    database.execute_raw("VACUUM ANALYZE").await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    for name in STATEMENTS.iter().flat_map(|name| [name; WARM_UPS]) {
        testkit::reads(&mut conn, async |conn: &mut AsyncPgConnection| receive(name, conn).await)
            .await;
    }
    database.execute_raw(&fill()).await;
    let mut expensive = Vec::new();
    for name in STATEMENTS {
        let work = async |conn: &mut AsyncPgConnection| receive(name, conn).await;
        let ((), reads) = testkit::reads(&mut conn, work).await;
        if reads.rows > MAX_ROWS {
            expensive.push(format!("{name}: {reads:?}"));
        }
    }
    assert!(expensive.is_empty(), "{expensive:#?}");
}
