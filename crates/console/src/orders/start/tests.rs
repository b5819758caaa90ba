//! The form that starts a return.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode};

use super::*;
use crate::fixtures;

const PATH: &str = "/merchants/acme/orders/A/return";

fn unit(number: i32, ineligible: Option<&str>) -> Value {
    let reason = ineligible.map(|code| json!({ "code": code, "detail": format!("it is {code}") }));
    json!({ "order_identifier": "A", "order_line_item_identifier": "1", "unit": number, "sku": "BOOT",
            "title": format!("Boot {number}"), "variant_identifier": "boot", "unit_price_amount_cents": 500,
            "returnable": reason.is_none(), "ineligible": reason, "refund_amount_cents": 495 })
}

fn returnable() -> Value {
    let units = [unit(1, None), unit(2, Some("window_expired")), unit(3, Some("already_returned"))];
    json!({ "currency": "USD", "exchange_possible": true, "units": units, "gift_card": null,
            "reasons": [{ "code": "DAMAGED", "label": "Damaged", "offers_exchange": true }],
            "methods": [{ "method": "mail-back", "shipping_cost_cents": 250 }] })
}

fn quote() -> Value {
    let mut quoted = unit(1, None);
    let share = json!({ "estimated_refund_amount_cents": 495, "service_refund_amount_cents": 0,
                        "shopper_refund_amount_cents": 495 });
    quoted["refund_financials"] = share;
    json!({ "quote": "token", "possible": true, "return_shipping_cost_cents": 250,
            "gift_card_bonus_amount_cents": 0, "shopper_refund_amount_cents": 495, "currency": "USD",
            "units": [quoted] })
}

/// A service that quotes what it is asked for, refuses an outdated quote, and starts a return once for each key.
fn engine(services: &mut web::ServiceConfig) {
    let start = async |request: HttpRequest, body: web::Json<Value>| {
        if body["quote"] != "token" {
            let conflict = json!({ "message": "the quote is out of date", "quote": quote() });
            return HttpResponse::Conflict().json(conflict);
        }
        assert_eq!(fixtures::key_of(&request).len(), 36);
        assert_eq!(body["override"], json!({ "by": "a@b.c", "reason": "goodwill" }));
        HttpResponse::Created().json(fixtures::rma("CREATED", &[json!({})]))
    };
    let quote = async |body: web::Json<Value>| match body["units"][0]["resolution"].as_str() {
        Some("refund") => HttpResponse::Ok().json(quote()),
        _ => HttpResponse::UnprocessableEntity().json(json!({ "message": "not possible" })),
    };
    services
        .route(
            "/v1/orders/A/returnable",
            web::get().to(async || HttpResponse::Ok().json(returnable())),
        )
        .route("/v1/returns/quote", web::post().to(quote))
        .route("/v1/returns", web::post().to(start));
}

async fn post(fields: &[(&str, &str)]) -> (StatusCode, String, String) {
    let key = FormKey::random().to_string();
    let fields: Vec<_> = [("key", key.as_str()), ("reason", "DAMAGED"), ("method", "mail-back")]
        .into_iter()
        .chain(fields.iter().copied())
        .collect();
    fixtures::post(fixtures::app_with_services(engine), routes, PATH, &fields).await
}

fn id(number: i32) -> String {
    json!({ "order_identifier": "A", "order_line_item_identifier": "1", "unit": number })
        .to_string()
}

#[actix_web::test]
async fn units_with_a_fact_cannot_be_chosen_and_others_only_against_the_policy() {
    let app = fixtures::app_with_services(engine);
    let (status, page) = fixtures::get_page(app, routes, PATH).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert_eq!(page.matches(" disabled>").count(), 1, "{page}");
    for part in [
        "It is window_expired. Possible against the policy.",
        "It is already_returned.</span>",
        "mail-back (2.50 USD)",
        "Exchange for another variant",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("Gift card") && !page.contains("Start the return"), "{page}");
}

#[actix_web::test]
async fn a_return_starts_on_the_terms_of_its_quote() {
    let unit = id(1);
    let chosen = [("unit", unit.as_str()), ("resolution", "refund"), ("override", "true")];
    let noted = [&chosen[..], &[("note", "goodwill")]].concat();
    let (status, _, page) = post(&[&noted[..], &[("step", "quote")]].concat()).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    for part in ["Start the return", r#"name="quote" value="token""#, "4.95 USD", " checked>"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let started = [("step", "start"), ("quote", "token")];
    let (status, location, page) = post(&[&noted[..], &started].concat()).await;
    assert_eq!(
        (status, location.as_str()),
        (StatusCode::SEE_OTHER, "/merchants/acme/returns/RMA-1"),
        "{page}"
    );
    let outdated = [("step", "start"), ("quote", "old")];
    let (status, _, page) = post(&[&noted[..], &outdated].concat()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("The quote is out of date."), "{page}");
    assert!(page.contains(r#"name="quote" value="token""#), "{page}");
}

#[actix_web::test]
async fn an_incomplete_form_says_what_is_missing() {
    let (status, _, page) = post(&[("resolution", "refund"), ("override", "true")]).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("Choose at least one unit."), "{page}");
    assert!(page.contains("Say why the policy does not apply."), "{page}");
    // exchange does not respond here, so there is no variant to choose.
    let unit = id(1);
    let (status, _, page) = post(&[("unit", unit.as_str()), ("resolution", "exchange")]).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("Choose a variant of each product"), "{page}");
    assert!(page.contains("Boot 1: exchange for"), "{page}");
    let (status, _, page) = post(&[("unit", unit.as_str()), ("resolution", "gift_card")]).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(page.contains("Not possible."), "{page}");
}

#[test]
fn a_request_has_the_chosen_variant_of_each_unit() {
    let variant = json!({ "sku": "BOOT-L", "title": "Boot, L", "unit_price_amount_cents": 500 });
    let unit = serde_json::from_str(&id(1)).unwrap();
    let offer = ProductOffer {
        product: "boot".to_owned(),
        title: "Boot".to_owned(),
        units: vec![unit],
        variants: vec![serde_json::from_value(variant.clone()).unwrap()],
        missing: None,
    };
    let fields = [
        ("unit", id(1)),
        ("resolution", "exchange".to_owned()),
        ("reason", "DAMAGED".to_owned()),
        ("method", "mail-back".to_owned()),
        ("variant:boot", "BOOT-L".to_owned()),
    ];
    let form = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let choices = Choices::read(&form);
    let body = json!(choices.body("ada@shop.test", &[offer]));
    assert_eq!(body["units"][0]["variant"], variant);
    assert_eq!(body.get("override"), None);
}
