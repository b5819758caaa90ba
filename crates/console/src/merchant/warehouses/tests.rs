//! Tests of the page of warehouses.

use actix_web::{
    HttpRequest, HttpResponse,
    cookie::Cookie,
    test::{TestRequest, call_service, init_service, read_body},
};

use super::*;
use crate::fixtures::{app_with_changed_merchant, app_with_services, post};

#[actix_web::test]
async fn a_warehouse_that_another_person_changed_is_not_replaced() {
    let app = actix_web::App::new().app_data(web::Data::new(app_with_changed_merchant()));
    let app = init_service(app.configure(routes)).await;
    for (version, status) in [("1", StatusCode::CONFLICT), ("2", StatusCode::SEE_OTHER)] {
        let fields =
            [("version", version), ("is_set", "true"), ("identifier", "reno"), ("city", "Sparks")];
        let request = TestRequest::post()
            .uri("/merchants/acme/warehouses")
            .cookie(Cookie::new("__Host-session", "s"))
            .set_form(fields);
        let response = call_service(&app, request.to_request()).await;
        assert_eq!(response.status(), status, "version {version}");
        let page = read_body(response).await;
        let page = String::from_utf8_lossy(&page);
        if status == StatusCode::CONFLICT {
            for part in ["Nothing was saved", "Stored now", "Reno", "Sparks", "Change the wareh"] {
                assert!(page.contains(part), "{part} in {page}");
            }
            assert!(page.contains(r#"name="version" value="2""#), "{page}");
        }
    }
}

/// An auth that has the warehouse `lyon`.
fn auth(app: &mut web::ServiceConfig) {
    let respond = async |request: HttpRequest| match request.headers().get("if-none-match") {
        Some(any) if any == "*" => HttpResponse::PreconditionFailed().json(json!({
            "message": "merchant acme already has a warehouse lyon", "code": "exists",
        })),
        _ => HttpResponse::Ok().json(json!({})),
    };
    app.route("/v1/merchants/acme/warehouses/lyon", web::put().to(respond));
}

#[actix_web::test]
async fn a_new_warehouse_replaces_none() {
    let path = "/merchants/acme/warehouses";
    let fields = [("version", "2"), ("identifier", "lyon")];
    let (status, _, page) = post(app_with_services(auth), routes, path, &fields).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{page}");
    assert!(page.contains("already has a warehouse lyon"), "{page}");
    assert!(page.contains("Add a warehouse") && page.contains(r#"value="lyon""#), "{page}");
    let fields = [("version", "2"), ("identifier", "lyon"), ("is_set", "true")];
    let (status, _, page) = post(app_with_services(auth), routes, path, &fields).await;
    assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
}

/// An auth in which a rule names the warehouse `lyon`.
fn auth_with_rule(app: &mut web::ServiceConfig) {
    let put = async || {
        let error = json!({ "field": "$.address", "code": "invalid",
            "detail": "rule outlet returns units to the warehouse, so it needs an address" });
        HttpResponse::UnprocessableEntity()
            .json(json!({ "message": "1 field is not valid", "errors": [error] }))
    };
    let delete = async || {
        let message =
            "rule outlet returns units to warehouse lyon of merchant acme: change the rule first";
        HttpResponse::Conflict().json(json!({ "message": message }))
    };
    let lyon = web::resource("/v1/merchants/acme/warehouses/lyon");
    app.service(lyon.route(web::put().to(put)).route(web::delete().to(delete)));
}

#[actix_web::test]
async fn a_warehouse_that_a_rule_names_says_so() {
    let fields = [("version", "2"), ("identifier", "lyon"), ("is_set", "true")];
    let app = || app_with_services(auth_with_rule);
    let (status, _, page) = post(app(), routes, "/merchants/acme/warehouses", &fields).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{page}");
    assert!(page.contains("Rule outlet returns units to the warehouse"), "{page}");
    let path = "/merchants/acme/warehouses/lyon/delete";
    let (status, _, page) = post(app(), routes, path, &[("version", "2")]).await;
    assert_eq!(status, StatusCode::CONFLICT, "{page}");
    assert!(page.contains("change the rule first."), "{page}");
}

#[actix_web::test]
async fn a_warehouse_that_another_person_changed_is_not_deleted() {
    for (version, expected) in [("1", StatusCode::CONFLICT), ("2", StatusCode::SEE_OTHER)] {
        let path = "/merchants/acme/warehouses/reno/delete";
        let fields = [("version", version)];
        let (status, _, page) = post(app_with_changed_merchant(), routes, path, &fields).await;
        assert_eq!(status, expected, "{page}");
        if status == StatusCode::CONFLICT {
            assert!(page.contains("Nothing was deleted"), "{page}");
            assert!(page.contains(r#"name="version" value="2""#), "{page}");
        }
    }
}

#[test]
fn a_stored_warehouse_is_sent_back_unchanged() {
    let stored = json!({
        "external_identifier": "DC-7", "settings": { "stock_transfer_identifier": null },
        "address": {
            "name": "Dock 7", "company": null, "street": "7 Dock Street", "street2": null,
            "city": "Reno", "state": "NV", "zip": "89501",
        },
    });
    assert_eq!(body(&mut Form::of(INPUTS, &stored)), stored);
    assert_eq!(body(&mut Form::empty(INPUTS))["address"], Value::Null);
}
