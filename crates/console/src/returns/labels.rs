//! The label requests of a return.

use actix_web::{get, web};
use api::labels::LabelRequestView;
use pages::{
    api::{ApiError, Service},
    file, path,
};
use uuid::Uuid;

use crate::{
    Page, PageResult, SignedIn,
    markup::{Markup, badge, link, outside, text, text_or_dash},
    record_list::{Records, amount, load, load_file, web_url, words},
    states::Shown as _,
    table::Table,
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_label);
}

pub(super) async fn load_labels(
    signed_in: &SignedIn,
    merchant: &str,
    rma: &str,
) -> Result<Vec<LabelRequestView>, ApiError> {
    let of_return = [("rma_identifier", rma)];
    let path = "v1/label_requests";
    let found = load::<Records<_>>(signed_in, Service::RmaEngine, Some(merchant), path, &of_return);
    Ok(found.await?.records)
}

pub(super) fn label_table(requests: &[LabelRequestView], page: &Page) -> Table {
    Table::of("Label requests of the return", requests)
        .head("Parcel", |it| text(it.parcel))
        .wrapped("State", |it| {
            let dead = it.undeliverable_since.map(|_| badge("bad", "undeliverable"));
            let refusal = it.refusal.map(|reason| text(words(reason)));
            let detail = it.detail.as_ref().map(|detail| text(detail).classed("small muted"));
            it.state.badge().and_some(dead).below_some(refusal).below_some(detail)
        })
        .wrapped("Tracking number", |it| text_or_dash(it.tracking_number.as_ref()))
        .cell("Label", |it| label(it).unwrap_or_else(|| text("–")))
        .cell("Carrier", |it| {
            let service = it.service.as_ref().map(|service| text(service).classed("small muted"));
            text_or_dash(it.carrier.as_ref()).below_some(service)
        })
        .classed("number nowrap", "Cost", |it| {
            let cost = it.cost_cents.map(|cents| amount(cents, it.currency.as_deref()));
            text_or_dash(cost)
        })
        .cell("Requested", |it| {
            let message = format!("/deliveries/rma-engine/{}", it.label_request_id);
            page.time(it.requested_at).below(link(message, "Message").classed("small"))
        })
        .table()
}

/// The label of a request, wherever it is.
fn label(request: &LabelRequestView) -> Option<Markup> {
    let at_carrier = web_url(request.label_url.as_deref()).map(|url| outside(url, "Label"));
    let file = request.document.map(|format| {
        let id = request.label_request_id.to_string();
        let url = path!("merchants", request.merchant.as_str(), "labels", id);
        link(format!("/{url}"), format!("Label ({})", format.as_str().to_uppercase()))
    });
    let code = request.has_qr_code.then(|| text("QR code"));
    [at_carrier, file, code].into_iter().flatten().reduce(Markup::below)
}

#[get("/merchants/{merchant}/labels/{id}")]
async fn show_label(signed_in: SignedIn, path: web::Path<(String, Uuid)>) -> PageResult {
    let (merchant, id) = path.into_inner();
    let merchant = signed_in.merchant(&merchant)?;
    let path = path!("v1", "label_requests", id.to_string(), "document");
    Ok(file::save(load_file(&signed_in, Service::RmaEngine, merchant, &path).await?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn a_request_leads_to_its_label_and_its_message() {
        let id = "01980a4c-7c1e-7000-8000-000000000001";
        let request = |changes: serde_json::Value| {
            let mut request = json!({
                "label_request_id": id, "merchant": "acme", "rma_identifier": "RMA-1", "parcel": 1,
                "state": "bought", "units": [], "requested_at": "2026-11-20T08:00:00Z",
                "updated_at": "2026-11-20T08:00:00Z",
            });
            request.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
            serde_json::from_value::<LabelRequestView>(request).unwrap()
        };
        let requests = [
            request(json!({
                "document": "pdf", "has_qr_code": true, "cost_cents": 499, "currency": "USD",
            })),
            request(json!({ "label_url": "https://carrier.example/1.pdf" })),
            request(json!({ "label_url": "javascript:alert(1)" })),
            request(json!({ "state": "refused", "refusal": "too_heavy", "detail": "<30 kg>" })),
            request(json!({
                "state": "requested", "undeliverable_since": "2026-11-20T09:00:00Z",
            })),
        ];
        let page = fixtures::page(&fixtures::signed_in("support", None, &json!({})));
        let table = label_table(&requests, &page).to_string();
        let file = format!(r#"<a href="/merchants/acme/labels/{id}">Label (PDF)</a><br>QR code"#);
        let message = format!(r#"href="/deliveries/rma-engine/{id}""#);
        for part in [
            file.as_str(),
            message.as_str(),
            r#"<a href="https://carrier.example/1.pdf" rel="noopener noreferrer">Label</a>"#,
            r#"<span class="badge bad">refused</span><br>too heavy<br>"#,
            "&#60;30 kg&#62;",
            r#"<span class="badge bad">undeliverable</span>"#,
            "4.99 USD",
        ] {
            assert!(table.contains(part), "{part} in {table}");
        }
        assert!(!table.contains("javascript"), "{table}");
    }
}
