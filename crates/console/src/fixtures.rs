//! A signed-in person and bodies of responses for unit tests, to whose calls no service responds, and a stand-in for
//! auth.

use std::{collections::BTreeMap, net::Ipv4Addr};

use actix_web::{
    HttpRequest, HttpResponse, HttpServer,
    cookie::Cookie,
    http::{StatusCode, header},
    rt,
    test::{TestRequest, call_service, init_service, read_body},
    web,
};
use api::{
    delivery::{DeliveryView, EndpointView},
    orders::OrderSummary,
};
use domain::returns::Rma;
use pages::api::{Api, Service};
use platform::Clock;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use crate::{App, Page, Section, SignedIn};

/// A person with this role. `changes` are further fields of the person.
pub(crate) fn signed_in(role: &str, merchant: Option<&str>, changes: &Value) -> SignedIn {
    let person = json!({
        "email": "ada@acme.example", "name": "Ada", "role": role, "merchant": merchant,
    });
    SignedIn {
        person: changed(person, changes),
        api: Api::new(BTreeMap::new()).unwrap().caller(Ipv4Addr::LOCALHOST.into(), None),
        zone: chrono_tz::Tz::UTC,
        notice: None,
        now: Clock::system().now(),
    }
}

pub(crate) fn page(signed_in: &SignedIn) -> Page {
    signed_in.page(Section::Account)
}

/// The console with an auth whose merchant `acme` has version 2, because another person has just changed it.
pub(crate) fn app_with_changed_merchant() -> App {
    app_with_services(|_| {})
}

/// The console with such an auth and a stand-in for rma-engine, which also respond as configured.
pub(crate) fn app_with_services(configure: fn(&mut web::ServiceConfig)) -> App {
    let services = HttpServer::new(move || {
        let merchant = web::resource("/v1/merchants/acme")
            .route(web::get().to(show_merchant))
            .route(web::patch().to(change));
        let warehouse = web::resource("/v1/merchants/acme/warehouses/reno")
            .route(web::get().to(show_warehouse))
            .route(web::put().to(change))
            .route(web::delete().to(change));
        let endpoint =
            web::resource("/v1/merchants/acme/endpoints/rma").route(web::delete().to(change));
        let token = web::resource("/v1/sessions/token").route(web::post().to(issue_token));
        let client = web::resource("/v1/clients/bh_1").route(web::get().to(show_client));
        let app = actix_web::App::new().service(token).service(merchant).service(warehouse);
        app.service(client).service(endpoint).configure(configure)
    });
    let services = services.workers(1).bind(("127.0.0.1", 0)).unwrap();
    let url: Url = format!("http://{}", services.addrs()[0]).parse().unwrap();
    rt::spawn(services.run());
    let urls = [Service::Auth, Service::RmaEngine].map(|service| (service, url.clone()));
    App { api: Api::new(BTreeMap::from(urls)).unwrap(), clock: Clock::system() }
}

/// The response to a form of the signed-in person: its status, its `Location` and its page.
pub(crate) async fn post(
    app: App,
    routes: fn(&mut web::ServiceConfig),
    path: &str,
    fields: &[(&str, &str)],
) -> (StatusCode, String, String) {
    let app = actix_web::App::new().app_data(web::Data::new(app)).configure(routes);
    let cookie = Cookie::new("__Host-session", "s");
    let request = TestRequest::post().uri(path).cookie(cookie).set_form(fields);
    let response = call_service(&init_service(app).await, request.to_request()).await;
    let location = response.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
    let location = location.unwrap_or_default().to_owned();
    let status = response.status();
    let page = String::from_utf8(read_body(response).await.to_vec()).unwrap();
    (status, location, page)
}

/// A page of the signed-in person: its status and its text.
pub(crate) async fn get_page(
    app: App,
    routes: fn(&mut web::ServiceConfig),
    path: &str,
) -> (StatusCode, String) {
    let app = actix_web::App::new().app_data(web::Data::new(app)).configure(routes);
    let request = TestRequest::get().uri(path).cookie(Cookie::new("__Host-session", "s"));
    let response = call_service(&init_service(app).await, request.to_request()).await;
    let status = response.status();
    (status, String::from_utf8(read_body(response).await.to_vec()).unwrap())
}

/// The idempotency key of a request.
pub(crate) fn key_of(request: &HttpRequest) -> &str {
    request.headers().get("idempotency-key").unwrap().to_str().unwrap()
}

async fn issue_token() -> HttpResponse {
    let person = json!({ "email": "a@b.c", "name": "A", "role": "operator", "merchant": null });
    HttpResponse::Ok().json(json!({ "access_token": "t", "person": person }))
}

async fn show_client() -> HttpResponse {
    HttpResponse::Ok().json(json!({ "client_id": "bh_1", "name": "Shop" }))
}

async fn show_merchant() -> HttpResponse {
    HttpResponse::Ok().json(json!({
        "identifier": "acme", "version": 2, "name": "Acme", "time_zone": "Europe/Berlin",
        "appearance": { "name": "Brand one", "languages": ["en", "de"] },
        "created_at": "2026-11-16T08:00:00Z",
        "mails": {
            "reply_to": "old@acme.example",
            "texts": { "de": { "refunded": { "subject": "Geld <zurück>" } } },
        },
    }))
}

async fn show_warehouse() -> HttpResponse {
    HttpResponse::Ok().json(json!({
        "identifier": "reno", "external_identifier": null, "settings": {},
        "address": { "name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "zip": "89501" },
    }))
}

async fn change(request: HttpRequest) -> HttpResponse {
    let version = request.headers().get("if-match").and_then(|it| it.to_str().ok());
    match version {
        Some("\"2\"") => HttpResponse::Ok().json(json!({})),
        _ => HttpResponse::PreconditionFailed()
            .json(json!({ "message": "changed", "code": "changed" })),
    }
}

/// A body with some fields changed.
fn changed<T: DeserializeOwned>(mut body: Value, changes: &Value) -> T {
    for (name, value) in changes.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    serde_json::from_value(body).unwrap()
}

pub(crate) fn delivery(changes: &Value) -> DeliveryView {
    let delivery = json!({
        "id": Uuid::nil(), "merchant": "acme", "kind": "rma", "event": "rma.created", "sequence": 1,
        "state": "dead", "created_at": "2026-11-16T08:00:00Z",
    });
    changed(delivery, changes)
}

pub(crate) fn endpoint(changes: &Value) -> EndpointView {
    let endpoint = json!({
        "merchant": "acme", "kind": "rma", "state": "ok", "waiting": 0, "in_flight": 0, "window": 10,
    });
    changed(endpoint, changes)
}

/// A return with a unit for each of the changes.
pub(crate) fn rma(status: &str, units: &[Value]) -> Rma {
    let unit = |changes: &Value| -> Value {
        let unit = json!({
            "order_identifier": "A", "order_line_item_identifier": "1", "unit": 1, "sku": "S",
            "return_reason": "other", "resolution": "refund", "refund_type": "REFUND",
            "amounts": { "product_amount_cents": 0, "discount_amount_cents": 0, "tax_amount_cents": 0 },
            "receiving_status": "PENDING", "is_damaged": false,
        });
        changed(unit, changes)
    };
    let units: Vec<_> = units.iter().map(unit).collect();
    let rma = json!({
        "merchant": "acme", "rma_identifier": "RMA-1", "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z", "return_method": "mail-back",
        "return_shipping_cost_cents": 0, "managed_receiving": false,
    });
    changed(rma, &json!({ "status": status, "units": units }))
}

pub(crate) fn order_summary(changes: &Value) -> OrderSummary {
    let recent =
        json!({ "since": "2026-11-16T08:00:00Z", "received": 0, "changed": 0, "rejected": 0 });
    let summary =
        json!({ "merchant": "acme", "count": 0, "last_24_hours": recent, "rejections": [] });
    changed(summary, changes)
}
