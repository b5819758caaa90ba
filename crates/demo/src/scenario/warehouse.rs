//! The warehouse receives the returned units and ships others.

use serde_json::{Value, json};

use super::context::{DemoContext, print_step, text_at};

/// The shop announces the returned units and the warehouse receives them.
pub(super) async fn receive(
    context: &mut DemoContext,
    order: &str,
    rma: &str,
) -> anyhow::Result<()> {
    let asn = format!("IN-{}", order.replace('.', "-"));
    let detail = |line: &str| {
        json!({ "line_identifier": line, "reference_line_identifier": line,
                "unit_identifier": format!("{order}-{line}"), "sku": format!("{line}-1") })
    };
    let inbound_asn = json!({
        "asn_number": asn, "shipment_identifier": rma,
        "from": { "identifier": "ada", "type": "customer" },
        "to": { "identifier": 12, "type": "warehouse" },
        "cartons": [{ "reference": { "type": "RMA", "identifier": rma },
                      "details": [detail("HAT"), detail("BOOT")] }],
    });
    context.shop.warehouse.post(&["v1", "inbound_asns"], &inbound_asn).await?;
    print_step(&format!("the shop announces the return: ASN {asn}"), "-")?;

    let receipt = |line: &str| {
        json!({ "asn_number": asn, "line_identifier": line, "initial_condition": "A",
                "initial_channel": "Outlet", "user_login": "mwagner" })
    };
    let receipts = json!({ "receipts": [receipt("HAT"), receipt("BOOT")] });
    context.operator.warehouse.post(&["v1", "receipts"], &receipts).await?;
    for line in ["HAT", "BOOT"] {
        let matches = |body: &Value| {
            text_at(body, "/asn_number") == asn && text_at(body, "/line_identifier") == line
        };
        let body = context.inbox.receive("inventory_receipt.received", matches).await?;
        let unit = text_at(&body, "/unit_identifier");
        print_step(
            &format!("the warehouse receives the {}", line.to_lowercase()),
            &format!("inventory receipt: {unit}"),
        )?;
        let (message, _) = context.rma_message("rma.received", rma).await?;
        print_step("the unit of the return is received", &message)?;
    }
    Ok(())
}

/// The warehouse ships a pallet to another warehouse and a parcel to a shopper.
pub(super) async fn ship(context: &mut DemoContext, order: &str) -> anyhow::Result<()> {
    let asn = format!("OUT-{}", order.replace('.', "-"));
    let shipment = domain::warehouse::sample::outbound_shipment(&asn, 3);
    context.operator.warehouse.post(&["v1", "outbound_shipments"], &shipment).await?;
    let is_shipment = |body: &Value| text_at(body, "/asn_number") == asn;
    let body = context.inbox.receive("outbound_asn.pending", is_shipment).await?;
    let units = body.pointer("/cartons/0/details").and_then(Value::as_array).map_or(0, Vec::len);
    print_step("the warehouse packs a pallet", &format!("outbound ASN: {units} units"))?;

    let drop_shipment = format!("DROP-{order}");
    let confirmation = domain::warehouse::sample::confirmation(&drop_shipment);
    let path = ["v1", "drop_shipments", "confirmations"];
    context.operator.warehouse.post(&path, &confirmation).await?;
    let is_confirmation =
        |body: &Value| text_at(body, "/shipment/client_identifier") == drop_shipment;
    let body = context.inbox.receive("drop_shipment.confirmed", is_confirmation).await?;
    let number = text_at(&body, "/shipment/tracking_number");
    print_step("the warehouse sends a parcel to a shopper", &format!("drop shipment: {number}"))
}
