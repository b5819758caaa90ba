//! The endpoints of a merchant: one row for each interface, with state and health.

use actix_web::{get, web};
use api::delivery::EndpointView as EndpointHealth;
use askama::Template;
use chrono::{DateTime, Utc};
use domain::{endpoint_state::EndpointState, merchant::Interface, message_kind::MessageKind};
use futures_util::future::join;
use pages::{api::Service, text::grouped};

use super::{EndpointView, Frame, Merchant, Tab, page_of};
use crate::{
    Page, PageError, PageResult, SignedIn,
    endpoint_health::{self, p95, success_rate},
    error::sentence,
    html, parts,
    record_list::Records,
    states::Shown as _,
};

/// One row of the table.
struct EndpointRow {
    interface: Interface,
    title: &'static str,
    /// The URL without secrets; `None` if the endpoint is not set.
    url: Option<String>,
    /// Tone and name.
    state: (&'static str, &'static str),
    explanation: Option<String>,
    health: Option<EndpointHealth>,
    can_resume: bool,
    can_pause: bool,
    is_signed: bool,
    /// The end of the previous signing secret during a rotation.
    old_secret_ends_at: Option<DateTime<Utc>>,
}

impl EndpointRow {
    /// The start of the present state.
    fn since(&self) -> Option<DateTime<Utc>> {
        self.health.as_ref()?.since
    }
}

#[derive(Template)]
#[template(path = "merchant_endpoints.html")]
struct EndpointsPage {
    page: Page,
    merchant: Frame,
    rows: Vec<EndpointRow>,
    unavailable: Vec<Service>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_endpoints);
}

#[get("/merchants/{merchant}/endpoints")]
async fn list_endpoints(signed_in: SignedIn, merchant: web::Path<String>) -> PageResult {
    let id = signed_in.merchant(&merchant)?;
    let query = [("merchant", id), ("limit", "200")];
    let (found, health) = join(
        Merchant::load(&signed_in, id),
        parts::each::<Records<EndpointHealth>>(
            &signed_in.api,
            &Service::DELIVERING,
            "v1/endpoints",
            &query,
        ),
    )
    .await;
    let found = found?;
    let health = health?;
    let page = page_of(&signed_in, &found);
    let list = HealthList {
        endpoints: health.entries.into_iter().flat_map(|(_, list)| list.records).collect(),
        unavailable: health.missing,
    };
    let now = signed_in.now;
    let rows = Interface::all().map(|interface| row(now, &found, &list, interface)).collect();
    let merchant = Frame::new(&signed_in.person, &found, Tab::Endpoints);
    html(&EndpointsPage { page, merchant, rows, unavailable: list.unavailable })
}

/// The health of a merchant's endpoints.
struct HealthList {
    endpoints: Vec<EndpointHealth>,
    /// The services that did not respond.
    unavailable: Vec<Service>,
}

fn row(
    now: DateTime<Utc>,
    merchant: &Merchant,
    list: &HealthList,
    interface: Interface,
) -> EndpointRow {
    let endpoint = merchant.endpoints.get(interface.name());
    let health = list.endpoints.iter().find(|health| health.kind.name() == interface.name());
    let is_known = !list.unavailable.contains(&service_of(interface));
    let state = state(endpoint, health, is_known);
    let is_set = endpoint.is_some();
    let is_stopped = state.1 == "paused";
    let base_url = merchant.settings.base_url.as_deref();
    EndpointRow {
        interface,
        title: title(interface),
        url: endpoint.map(|endpoint| shown_url(base_url, endpoint, interface)),
        state,
        explanation: explanation(state.1, health.and_then(|health| health.reason.as_deref())),
        health: health.cloned(),
        can_resume: is_set && is_stopped,
        can_pause: is_set && !is_stopped,
        is_signed: interface != Interface::Variants,
        old_secret_ends_at: endpoint
            .and_then(EndpointView::old_secret_ends_at)
            .filter(|at| *at > now),
    }
}

/// Tone and name of a state.
fn state(
    endpoint: Option<&EndpointView>,
    health: Option<&EndpointHealth>,
    is_known: bool,
) -> (&'static str, &'static str) {
    let Some(endpoint) = endpoint else { return ("", "not set") };
    let shown = |state: EndpointState| (state.tone(), state.words());
    match health {
        // Auth knows that an endpoint is paused before the other services do.
        _ if endpoint.paused => shown(EndpointState::Paused),
        Some(health) => (endpoint_health::tone(health), health.state.words()),
        None if is_known => ("info", "set"),
        None => ("", "not known"),
    }
}

/// The reason for a state that needs attention, and how to end it.
fn explanation(state: &str, reason: Option<&str>) -> Option<String> {
    match state {
        "failing" => Some(sentence(reason.unwrap_or("the last attempt failed"))),
        "paused" => Some("Messages wait until you resume it.".to_owned()),
        _ => None,
    }
}

/// The URL of an endpoint: its own, or the base URL with its path.
fn shown_url(base_url: Option<&str>, endpoint: &EndpointView, interface: Interface) -> String {
    match &endpoint.url {
        Some(url) => url.clone(),
        None => {
            let base = base_url.unwrap_or_default().trim_end_matches('/');
            let path = endpoint.path.as_deref().unwrap_or(interface.default_path());
            format!("{base}{path}")
        }
    }
}

/// The service that sends to an endpoint.
pub(super) fn service_of(interface: Interface) -> Service {
    match interface {
        Interface::Message(MessageKind::Rma | MessageKind::LabelRequest) => Service::RmaEngine,
        Interface::Message(MessageKind::ExchangeOrder) | Interface::Variants => Service::Exchange,
        Interface::Message(_) => Service::WarehouseNotifier,
    }
}

/// The interface in plain words.
pub(super) fn title(interface: Interface) -> &'static str {
    match interface {
        Interface::Message(kind) => match kind {
            MessageKind::Rma => "Returns",
            MessageKind::ExchangeOrder => "Exchange orders",
            MessageKind::LabelRequest => "Label requests",
            MessageKind::OutboundAsn => "Outbound ASNs",
            MessageKind::InventoryReceipt => "Inventory receipts",
            MessageKind::DropShipmentConfirmation => "Drop shipment confirmations",
            MessageKind::DropShipmentCancellation => "Drop shipment cancellations",
            MessageKind::DropShipmentPartialCancellation => "Drop shipment partial cancellations",
        },
        Interface::Variants => "Exchange variants",
    }
}

/// The interface in a URL.
pub(super) fn interface_of(name: &str) -> Result<Interface, PageError> {
    name.parse().map_err(|_unknown| PageError::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RMA: Interface = Interface::Message(MessageKind::Rma);

    fn health(state: &str) -> EndpointHealth {
        crate::fixtures::endpoint(&serde_json::json!({ "state": state }))
    }

    #[test]
    fn the_state_of_an_endpoint_has_a_name() {
        let set = EndpointView::default();
        let paused = EndpointView { paused: true, ..EndpointView::default() };
        let name = |endpoint, health: Option<&str>, is_known| {
            state(endpoint, health.map(self::health).as_ref(), is_known).1
        };
        assert_eq!(name(None, None, true), "not set");
        assert_eq!(name(Some(&set), None, true), "set");
        assert_eq!(name(Some(&set), None, false), "not known");
        assert_eq!(name(Some(&set), Some("ok"), true), "ok");
        assert_eq!(name(Some(&set), Some("not_tried"), true), "not tried yet");
        assert_eq!(name(Some(&set), Some("failing"), true), "failing");
        assert_eq!(name(Some(&paused), Some("failing"), true), "paused");
    }

    #[test]
    fn an_endpoint_without_a_url_is_below_the_base_url() {
        let endpoint = EndpointView::default();
        let base = Some("https://acme.example/hooks/");
        assert_eq!(shown_url(base, &endpoint, RMA), "https://acme.example/hooks/rmas");
        let endpoint = EndpointView { path: Some("/r".to_owned()), ..EndpointView::default() };
        assert_eq!(shown_url(base, &endpoint, RMA), "https://acme.example/hooks/r");
    }
}
