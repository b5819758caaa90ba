//! What a warehouse does on the tour.

use serde_json::{Value, json};

use super::stage::{Stage, body};
use super::{text, told};

/// The returned goods arrive: the merchant had announced them.
pub(super) async fn receive(stage: &mut Stage, order: &str, rma: &str) -> anyhow::Result<()> {
    let asn = format!("IN-{order}");
    let detail = |line: &str| {
        json!({ "line_identifier": line, "reference_line_identifier": line,
                "unit_identifier": format!("{order}-{line}"), "sku": format!("{line}-1") })
    };
    let announced = json!({
        "asn_number": asn, "shipment_identifier": rma,
        "from": { "identifier": "ada", "type": "customer" },
        "to": { "identifier": 12, "type": "warehouse" },
        "cartons": [{ "reference": { "type": "RMA", "identifier": rma },
                      "details": [detail("HAT"), detail("BOOT")] }],
    });
    stage.shop.warehouse.post(&["v1", "inbound_asns"], body(announced)).await?;
    stage.say(&format!("the shop announces the return: ASN {asn}"), "-")?;

    let unit = |line: &str| {
        json!({ "asn_number": asn, "line_identifier": line, "initial_condition": "A",
                "initial_channel": "Outlet", "user_login": "mwagner" })
    };
    let units = json!({ "receipts": [unit("HAT"), unit("BOOT")] });
    stage.staff.warehouse.post(&["v1", "receipts"], body(units)).await?;
    for line in ["HAT", "BOOT"] {
        let (asn, line) = (asn.clone(), line.to_owned());
        let wanted = line.clone();
        let is_it = move |it: &Value| {
            text(it, "/asn_number") == asn && text(it, "/line_identifier") == wanted
        };
        let seen = stage.mailbox.received("inventory_receipt.received", is_it).await?;
        let unit = text(&seen, "/unit_identifier");
        stage.say(
            &format!("the warehouse receives the {}", line.to_lowercase()),
            &format!("inventory receipt: {unit}"),
        )?;
        let (message, _) = told(stage, "rma.received", rma).await?;
        stage.say("so the return is received, unit by unit", &message)?;
    }
    Ok(())
}

/// Goods leave: a pallet for another warehouse, and a parcel for a shopper.
pub(super) async fn ship(stage: &mut Stage, order: &str) -> anyhow::Result<()> {
    let asn = format!("OUT-{}", order.replace('.', "-"));
    let shipment = domain::warehouse::sample::outbound_shipment(&asn, 3);
    stage.staff.warehouse.post(&["v1", "outbound_shipments"], body(shipment)).await?;
    let number = asn.clone();
    let seen = stage
        .mailbox
        .received("outbound_asn.pending", move |it| text(it, "/asn_number") == number)
        .await?;
    let units = seen.pointer("/cartons/0/details").and_then(Value::as_array).map_or(0, Vec::len);
    stage.say("the warehouse packs a pallet", &format!("outbound ASN: {units} units"))?;

    let drop = format!("DROP-{order}");
    let confirmation = domain::warehouse::sample::confirmation(&drop);
    let path = ["v1", "drop_shipments", "confirmations"];
    stage.staff.warehouse.post(&path, body(confirmation)).await?;
    let seen = stage
        .mailbox
        .received("drop_shipment.confirmed", move |it| {
            text(it, "/shipment/client_identifier") == drop
        })
        .await?;
    let number = text(&seen, "/shipment/tracking_number");
    stage.say("the warehouse sends a parcel to a shopper", &format!("drop shipment: {number}"))
}
