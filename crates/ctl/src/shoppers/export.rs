//! Collects everything that the services store about a shopper: the same data that an erasure replaces.

use std::collections::{BTreeSet, HashSet};

use domain::erasure::{
    erase, erase_history, erase_mail, erase_order_document, erase_report, is_report_about,
    personal_values,
};
use platform::Clock;
use serde_json::{Value, json};

use crate::api_client::{ApiClient, NO_QUERY};
use crate::output::{self, items, text_at};
use crate::service_urls::{EXCHANGE, RETURNS, WAREHOUSE};
use crate::settings::Settings;

/// Prints one JSON document: orders, returns with their timelines, discrepancies, exchange orders, reports of the
/// warehouse, messages to the merchant and mails to the shopper, and a list of the personal data in them.
pub(super) async fn run(intake: &ApiClient, email: &str) -> anyhow::Result<()> {
    let settings = Settings::load()?;
    let [rma_engine, exchange, warehouse] =
        [RETURNS, EXCHANGE, WAREHOUSE].map(|service| intake.at_service(service, &settings));
    let rma_engine = rma_engine?;
    let exchange = exchange?;
    let warehouse = warehouse?;
    let query = [("customer_email", email)];
    let found = intake.list(&["v1", "orders"], "orders", &query, usize::MAX).await?;
    let order_identifiers: Vec<_> =
        items(&found, "/orders").iter().map(|order| text_at(order, "/identifier")).collect();
    let mut document = Export::default();
    document.returns_of(&rma_engine, ("email", email)).await?;
    for order in &order_identifiers {
        document.returns_of(&rma_engine, ("order_identifier", order)).await?;
        document.discrepancies_of(&rma_engine, ("order_identifier", order)).await?;
        document.exchange_orders_of(&exchange, order).await?;
        document.messages_of(&warehouse, &format!("order:{order}"), |_| true).await?;
    }
    let rmas: Vec<_> =
        document.returns.iter().map(|it| text_at(it, "/return/rma_identifier")).collect();
    for rma in &rmas {
        document.discrepancies_of(&rma_engine, ("rma_identifier", rma)).await?;
    }
    let identifiers: HashSet<_> =
        order_identifiers.iter().chain(&rmas).map(String::as_str).collect();
    document.reports_of(&warehouse, &identifiers).await?;
    document.print(email, &found)
}

/// Replaces the personal data of an export with the rules by which an erasure replaces it.
fn erase_export(exported: &mut Value) {
    let Some(sections) = exported.as_object_mut() else { return };
    for (section, value) in sections {
        let elements = value.as_array_mut().into_iter().flatten();
        elements.for_each(|element| erase_element(section, element));
    }
}

fn erase_element(section: &str, element: &mut Value) {
    match section {
        // Unknown fields of an order may be personal too.
        "orders" => element.get_mut("document").into_iter().for_each(erase_order_document),
        "returns" => element.get_mut("timeline").into_iter().for_each(erase_history),
        _ => {}
    }
    let key = text_at(element, "/ordering_key");
    match section {
        "messages" if key.starts_with("mail:") => erase_mail(element),
        "messages" if key.starts_with("asn:") || key.starts_with("inbound_asn:") => {
            erase_report(element);
        }
        "inbound_lines" | "receipts" | "outbound_shipments" => erase_report(element),
        _ => erase(element),
    }
}

#[derive(Default)]
struct Export {
    returns: Vec<Value>,
    discrepancies: Vec<Value>,
    exchange_orders: Vec<Value>,
    records: Vec<Value>,
    inbound_lines: Vec<Value>,
    receipts: Vec<Value>,
    outbound_shipments: Vec<Value>,
    messages: Vec<Value>,
}

impl Export {
    fn print(&self, email: &str, orders: &Value) -> anyhow::Result<()> {
        let mut exported = json!({
            "email": email,
            "exported_at": Clock::system().now(),
            "orders": orders.get("orders"),
            "returns": self.returns,
            "discrepancies": self.discrepancies,
            "exchange_orders": self.exchange_orders,
            "warehouse_records": self.records,
            "inbound_lines": self.inbound_lines,
            "receipts": self.receipts,
            "outbound_shipments": self.outbound_shipments,
            "messages": self.messages,
        });
        let personal: Vec<_> = personal_values(&exported, erase_export)
            .into_iter()
            .map(|(path, value)| json!({ "path": path, "value": value }))
            .collect();
        if let Some(members) = exported.as_object_mut() {
            members.insert("personal_data".to_owned(), json!(personal));
        }
        output::print_json(&exported)?;
        Ok(())
    }

    async fn returns_of(&mut self, client: &ApiClient, query: (&str, &str)) -> anyhow::Result<()> {
        let found = client.list(&["v1", "returns"], "returns", &[query], usize::MAX).await?;
        for found in items(&found, "/returns") {
            let rma = text_at(found, "/rma_identifier");
            let is_known = |it: &Value| text_at(it, "/return/rma_identifier") == rma;
            if self.returns.iter().any(is_known) {
                continue;
            }
            let shown = client.get(&["v1", "returns", &rma]).await?;
            let path = ["v1", "returns", &rma, "timeline"];
            let timeline = client.list(&path, "entries", NO_QUERY, usize::MAX).await?;
            self.returns.push(json!({ "return": shown, "timeline": timeline.get("entries") }));
            self.messages_of(client, &format!("rma:{rma}"), |_| true).await?;
            self.messages_of(client, &format!("mail:rma:{rma}"), |_| true).await?;
        }
        Ok(())
    }

    /// Adds discrepancies, with the notes of those that are resolved.
    async fn discrepancies_of(
        &mut self,
        client: &ApiClient,
        query: (&str, &str),
    ) -> anyhow::Result<()> {
        let path = ["v1", "discrepancies"];
        let found = client.list(&path, "discrepancies", &[query], usize::MAX).await?;
        for found in items(&found, "/discrepancies") {
            if !self.discrepancies.contains(found) {
                self.discrepancies.push(found.clone());
            }
        }
        Ok(())
    }

    async fn exchange_orders_of(&mut self, client: &ApiClient, order: &str) -> anyhow::Result<()> {
        let query = [("original_order_id", order)];
        let path = ["v1", "exchange_orders"];
        let found = client.list(&path, "exchange_orders", &query, 1).await?;
        if !items(&found, "/exchange_orders").is_empty() {
            self.exchange_orders.push(client.get(&["v1", "exchange_orders", order]).await?);
            self.messages_of(client, &format!("order:{order}"), |_| true).await?;
        }
        Ok(())
    }

    /// Adds the reports about these orders and returns. An ASN may have those of other shoppers too.
    async fn reports_of(
        &mut self,
        client: &ApiClient,
        identifiers: &HashSet<&str>,
    ) -> anyhow::Result<()> {
        let mut asns = BTreeSet::new();
        let mut shipments = BTreeSet::new();
        for identifier in identifiers {
            let query = [("order_identifier", *identifier)];
            let path = ["v1", "warehouse_records"];
            let found = client.list(&path, "records", &query, usize::MAX).await?;
            for record in items(&found, "/records") {
                let number = text_at(record, "/number");
                match text_at(record, "/kind").as_str() {
                    "inbound_asn" => asns.insert(number),
                    "outbound_shipment" => shipments.insert(number),
                    _ => false,
                };
                self.records.push(record.clone());
            }
        }
        for asn in &asns {
            self.asn(client, asn, identifiers).await?;
        }
        for number in &shipments {
            self.shipment(client, number, identifiers).await?;
        }
        Ok(())
    }

    async fn asn(
        &mut self,
        client: &ApiClient,
        number: &str,
        identifiers: &HashSet<&str>,
    ) -> anyhow::Result<()> {
        let is_named = |report: &Value| is_report_about(report, identifiers);
        let asn = client.get(&["v1", "inbound_asns", number]).await?;
        let is_of_shopper = |line: &&Value| is_named(&asn) || is_named(line);
        self.inbound_lines.extend(items(&asn, "/lines").iter().filter(is_of_shopper).cloned());
        let query = [("asn_number", number)];
        let found = client.list(&["v1", "receipts"], "receipts", &query, usize::MAX).await?;
        for receipt in items(&found, "/receipts") {
            if receipt.get("message").is_some_and(is_named) {
                let unit = text_at(receipt, "/message/unit_identifier");
                self.receipts.push(receipt.clone());
                self.messages_of(client, &format!("inbound_asn:{number}/{unit}"), is_named).await?;
            }
        }
        Ok(())
    }

    /// Adds a shipment and its messages, which have the address.
    async fn shipment(
        &mut self,
        client: &ApiClient,
        number: &str,
        identifiers: &HashSet<&str>,
    ) -> anyhow::Result<()> {
        let shipment = client.get(&["v1", "outbound_shipments", number]).await?;
        if !is_report_about(&shipment, identifiers) {
            return Ok(());
        }
        for part in items(&shipment, "/messages") {
            let key = format!("asn:{}", text_at(part, "/asn_number"));
            self.messages_of(client, &key, |_| true).await?;
        }
        self.outbound_shipments.push(shipment);
        Ok(())
    }

    /// Adds the shopper's messages with an ordering key, each with its body.
    async fn messages_of(
        &mut self,
        client: &ApiClient,
        key: &str,
        is_of_shopper: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<()> {
        let query = [("ordering_key", key)];
        let found = client.list(&["v1", "deliveries"], "deliveries", &query, usize::MAX).await?;
        for delivery in items(&found, "/deliveries") {
            let mut message = client.get(&["v1", "deliveries", &text_at(delivery, "/id")]).await?;
            read_body(&mut message);
            if message.get("body").is_none_or(&is_of_shopper) {
                self.messages.push(message);
            }
        }
        Ok(())
    }
}

/// Reads the body of a message, which the services show as it was sent. The body of an erased message may be no JSON.
fn read_body(message: &mut Value) {
    let Some(body) = message.get_mut("body") else { return };
    if let Some(read) = body.as_str().and_then(|text| serde_json::from_str(text).ok()) {
        *body = read;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_of_a_message_is_searched() {
        let mut message = json!({ "ordering_key": "order:1", "body": r#"{"comments":"ask Ada"}"# });
        read_body(&mut message);
        let exported = json!({ "messages": [message] });
        let found = personal_values(&exported, erase_export);
        assert_eq!(found, [("/messages/0/body/comments".to_owned(), json!("ask Ada"))]);
    }

    #[test]
    fn the_personal_data_of_an_export_is_what_an_erasure_replaces() {
        let exported = json!({
            "email": "ada@mail.example",
            "orders": [{ "identifier": "1", "document": { "identifier": "1", "wish": "call Ada" } }],
            "returns": [{
                "return": { "return_reason": "TOO_SMALL", "giftee_email": "bob@mail.example" },
                "timeline": [{ "event": "canceled", "detail": { "reason": "Ada called" } }],
            }],
            "receipts": [{ "message": { "return_reason": "Ada grew" } }],
            "messages": [
                { "ordering_key": "rma:1", "body": { "return_reason": "TOO_SMALL" } },
                { "ordering_key": "asn:1", "body": { "return_reason": "Ada grew" } },
                { "ordering_key": "mail:rma:1", "body": { "to": "ada@mail.example", "text": "Ada" } },
            ],
        });
        let found = personal_values(&exported, erase_export);
        let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
        let expected = [
            "/messages/1/body/return_reason",
            "/messages/2/body/text",
            "/messages/2/body/to",
            "/orders/0/document/wish",
            "/receipts/0/message/return_reason",
            "/returns/0/return/giftee_email",
            "/returns/0/timeline/0/detail/reason",
        ];
        assert_eq!(paths, expected);
    }
}
