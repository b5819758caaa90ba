use actix_web::{HttpResponse, web::ServiceConfig};

use super::*;
use crate::fixtures::{app_with_changed_merchant, app_with_services, get_page, post};

const POLICY: &str = "/merchants/acme/policy";
const PREVIEW: &str = "/merchants/acme/policy/preview";
const TWO_RULES: &str = r#"{ "rules": [
    { "id": "a", "then": { "window": { "days": 60 } } },
    { "id": "b", "when": { "countries": ["DE"] }, "then": { "window": { "days": 90 } } }] }"#;

/// The value of a hidden field of a page.
fn hidden(page: &str, name: &str) -> String {
    let start = format!("<input type=\"hidden\" name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("{name} in {page}"));
    rest.split('"').next().unwrap().replace("&#34;", "\"")
}

#[actix_web::test]
async fn a_merchant_without_rules_has_the_settings_as_the_last_rule() {
    let (status, page) = get_page(app_with_changed_merchant(), routes, POLICY).await;
    assert_eq!(status, StatusCode::OK);
    let parts = [
        "There are no rules",
        "Otherwise: the unit can be returned for 30 days",
        "A holiday window",
    ];
    for part in parts {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("These rules are not saved"), "{page}");
}

#[actix_web::test]
async fn a_policy_that_another_person_overtook_is_not_saved_and_both_are_shown() {
    for (version, status) in [("1", StatusCode::CONFLICT), ("2", StatusCode::SEE_OTHER)] {
        let fields = [("version", version), ("policy", TWO_RULES)];
        let (sent, location, page) =
            post(app_with_changed_merchant(), routes, POLICY, &fields).await;
        assert_eq!(sent, status, "version {version}: {page}");
        if status == StatusCode::SEE_OTHER {
            assert_eq!(location, POLICY);
            continue;
        }
        let parts =
            ["Nothing was saved", "Stored now", "for 90 days from shipping", "<title>Error: "];
        for part in parts {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert_eq!(hidden(&page, "version"), "2");
    }
}

#[actix_web::test]
async fn a_text_that_cannot_be_read_is_kept() {
    for path in [POLICY, PREVIEW, "/merchants/acme/policy/edit"] {
        let fields = [("version", "2"), ("policy", "{ \"rules\": [no] }"), ("edit", "up a")];
        let (status, _, page) = post(app_with_changed_merchant(), routes, path, &fields).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}");
        for part in ["The text is not JSON", "[no] }</textarea>", "Please correct this"] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}

#[actix_web::test]
async fn a_button_changes_the_draft_and_saves_nothing() {
    let edit = async |edit: &str| {
        let fields = [("version", "1"), ("policy", TWO_RULES), ("edit", edit)];
        let path = "/merchants/acme/policy/edit";
        post(app_with_changed_merchant(), routes, path, &fields).await
    };
    let (status, _, page) = edit("up b").await;
    assert_eq!(status, StatusCode::OK);
    let first = page.find("<strong>b</strong>").unwrap();
    assert!(first < page.find("<strong>a</strong>").unwrap(), "{page}");
    assert!(page.contains("These rules are not saved"), "{page}");
    // The page still has the version that the person has seen, so saving is refused.
    assert_eq!(hidden(&page, "version"), "1");
    let (_, _, page) = edit("down b").await;
    // In this order the second rule never decides anything.
    assert!(
        page.contains("Never decides anything, because earlier rules always decide: a."),
        "{page}"
    );
    let (_, _, page) = edit("insert faulty-goods").await;
    assert!(page.contains("<strong>faulty-goods</strong>"), "{page}");
    assert_eq!(edit("sort a").await.0, StatusCode::BAD_REQUEST);
}

async fn refuse() -> HttpResponse {
    HttpResponse::UnprocessableEntity().json(json!({
        "message": "the request is not valid",
        "errors": [
            { "field": "$.policy.rules[1].then.window.days", "code": "missing_field" },
            { "field": "$.policy.shoppers.Vip", "code": "invalid", "detail": "the name is too long" },
        ],
    }))
}

#[actix_web::test]
async fn every_fault_is_shown_with_its_path_and_its_rule() {
    let services = |app: &mut ServiceConfig| {
        app.route("/v1/policies/preview", web::post().to(refuse));
    };
    let fields = [("version", "2"), ("policy", TWO_RULES), ("preview", "history")];
    let (status, _, page) = post(app_with_services(services), routes, PREVIEW, &fields).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    for part in [
        "<code>rules[1].then.window.days</code> (rule b): Is required.",
        "<code>shoppers.Vip</code>: The name is too long.",
        "The text has 2 faults.",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

/// Seven responses about 2000 returns each, and the units of the order 1001.
async fn preview(body: web::Json<Value>) -> HttpResponse {
    let unit = |until: &str, ineligible: Value| {
        json!({ "units": [{ "order_line_item_identifier": "line-1", "unit": 1, "title": "Hat",
                            "returnable_until": until, "ineligible": ineligible }] })
    };
    match body["order_identifier"].as_str() {
        Some("1001") => {
            let refusal = json!({ "code": "not_returnable", "detail": "no", "rule": "a" });
            HttpResponse::Ok().json(json!({
                "current": unit("2026-12-01T23:00:00Z", Value::Null),
                "draft": unit("2026-12-01T23:00:00Z", refusal),
            }))
        }
        Some(_) => HttpResponse::NotFound().json(json!({ "message": "no order" })),
        None => {
            let page: u32 = body["after"].as_str().map_or(1, |after| after.parse().unwrap());
            let next = (page < 7).then(|| (page + 1).to_string());
            let figures = json!({ "refused": 1, "return_shipping_cost_cents": {} });
            HttpResponse::Ok().json(json!({
                "returns": 2000, "changed": 1, "current": figures, "draft": figures, "changes": [],
                "next": next,
            }))
        }
    }
}

fn previews(app: &mut ServiceConfig) {
    app.route("/v1/policies/preview", web::post().to(preview));
}

#[actix_web::test]
async fn a_preview_of_many_returns_goes_on_with_its_figures() {
    let fields = [("version", "2"), ("policy", TWO_RULES), ("preview", "history")];
    let (status, _, first) = post(app_with_services(previews), routes, PREVIEW, &fields).await;
    assert_eq!(status, StatusCode::OK, "{first}");
    assert!(first.contains("the newest 10,000 returns of the last 90 days"), "{first}");
    let rest = ["after", "figures", "compared"].map(|name| hidden(&first, name));
    let [after, figures, compared] = rest.each_ref().map(String::as_str);
    assert_eq!(after, "6");
    let of = |text| {
        [
            ("version", "2"),
            ("policy", text),
            ("preview", "rest"),
            ("after", after),
            ("figures", figures),
            ("compared", compared),
        ]
    };
    let (_, _, last) = post(app_with_services(previews), routes, PREVIEW, &of(TWO_RULES)).await;
    assert!(last.contains("all 14,000 returns of the last 90 days"), "{last}");
    assert!(!last.contains("Look at older returns too"), "{last}");
    // Another draft starts again.
    let other = of("{ \"rules\": [] }");
    let (_, _, other) = post(app_with_services(previews), routes, PREVIEW, &other).await;
    assert!(other.contains("the newest 10,000 returns"), "{other}");
}

#[actix_web::test]
async fn a_preview_of_an_order_shows_its_units() {
    let preview = async |order: &str| {
        let fields =
            [("version", "2"), ("policy", TWO_RULES), ("preview", "order"), ("order", order)];
        post(app_with_services(previews), routes, PREVIEW, &fields).await
    };
    let (status, _, page) = preview("1001").await;
    assert_eq!(status, StatusCode::OK);
    // The day ends at midnight in the merchant's zone.
    for part in ["line-1", "can be returned until 1 December 2026", "no (rule a)"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    for (order, error) in [("7", "There is no such order."), ("", "Type the number of an order.")] {
        let (status, _, page) = preview(order).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(page.contains(error), "{page}");
    }
}

async fn fail() -> HttpResponse {
    HttpResponse::ServiceUnavailable().finish()
}

#[actix_web::test]
async fn a_preview_without_its_service_keeps_the_draft() {
    let away = |app: &mut ServiceConfig| {
        app.route("/v1/policies/preview", web::post().to(fail));
    };
    let fields = [("version", "2"), ("policy", TWO_RULES), ("preview", "history")];
    let (status, _, page) = post(app_with_services(away), routes, PREVIEW, &fields).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    for part in ["There is no preview now", "<strong>b</strong>"] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn settings_that_an_older_auth_does_not_send_have_their_defaults() {
    let merchant =
        |json: Value| Merchant { json: json.clone(), ..serde_json::from_value(json).unwrap() };
    let bare =
        json!({ "identifier": "acme", "name": "Acme", "created_at": "2026-11-16T08:00:00Z" });
    assert_eq!(settings_of(&merchant(bare.clone())).unwrap(), Settings::new("Acme"));
    let mut own = bare;
    own["currency"] = json!("EUR");
    own["return_window_days"] = json!(45);
    let settings = settings_of(&merchant(own)).unwrap();
    assert_eq!((settings.currency.as_str(), settings.return_window_days), ("EUR", 45));
}
