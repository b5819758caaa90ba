//! Pages while no service responds. `with_engine` has pages while rma-engine responds.

mod browser;
mod with_engine;

use actix_web::{
    http::{StatusCode, header},
    test::{TestRequest, call_service, init_service, read_body},
};
use domain::returns::Withdrawal;
use serde_json::json;

use super::*;
use crate::cookie::{
    Proof, Shopper,
    tests::{proof, sealer},
};

/// The status, the `Location` and the body of a response.
type Shown = (StatusCode, String, String);

/// A shopper who has found the order A-1 and begun a withdrawal.
fn shopper() -> Shopper {
    let mut shopper = Shopper::default().at("acme");
    shopper.add(proof("A-1", "2026-11-16T09:30:00Z"));
    shopper.begin_withdrawal("A-1", ada());
    shopper
}

fn ada() -> Withdrawal {
    let [name, email] = ["Ada Lovelace", "ada@b.test"].map(str::to_owned);
    Withdrawal { name, email }
}

async fn send(request: TestRequest) -> Shown {
    send_as(&shopper(), request).await
}

/// The portal while no service responds.
pub(crate) async fn app() -> App {
    App {
        access: access::tests::without_services().await,
        portals: merchant::tests::shown().await,
        sealer: sealer(),
        public_url: "https://portal.test".parse().unwrap(),
        pseudo_languages: false,
        clock: Clock::from_fn(|| "2026-11-16T09:00:00Z".parse().unwrap()),
    }
}

async fn send_as(shopper: &Shopper, request: TestRequest) -> Shown {
    let app = app().await;
    let cookie = shopper.cookie(&app.sealer).unwrap();
    let pages = actix_web::App::new().app_data(web::Data::new(app)).configure(routes::configure);
    let request = request.insert_header(("accept-language", "en")).cookie(cookie).to_request();
    let response = call_service(&init_service(pages).await, request).await;
    let location = response.headers().get(header::LOCATION);
    let location = location.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    let status = response.status();
    let body = read_body(response).await;
    (status, location, String::from_utf8(body.to_vec()).unwrap())
}

fn form(path: &str, fields: &[(&str, &str)]) -> TestRequest {
    TestRequest::post().uri(path).set_form(fields)
}

#[track_caller]
fn assert_contains(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[actix_web::test]
async fn a_look_up_keeps_the_typed_text() {
    let fields = [("order", "A-9"), ("by", "own"), ("key", "typed@b.test")];
    let (status, _, page) = send(form("/acme", &fields)).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_contains(&page, &["Please try again in a moment", "\"A-9\"", "typed@b.test"]);
}

#[actix_web::test]
async fn a_giftee_whose_proof_expired_is_asked_for_the_gift_code() {
    let mut giftee = Shopper::default().at("acme");
    giftee.add(Proof { is_gift: true, ..proof("G-1", "2026-11-16T08:00:00Z") });
    let (status, _, page) = send_as(&giftee, TestRequest::get().uri("/acme?again=1")).await;
    assert_eq!(status, StatusCode::OK);
    assert_contains(&page, &["value=\"gift\" checked", "value=\"G-1\""]);
}

#[actix_web::test]
async fn a_withdrawal_with_an_unknown_result_can_be_sent_again() {
    let key = "7d9f5a35-6f4e-4c3b-9a55-2f3f0f5b9c11";
    let mut request = check::tests::request("refund", None);
    request.withdrawal = Some(ada());
    let request = sealer().seal("return request at acme", &json!(request).to_string()).unwrap();
    let fields = [
        ("order", "A-1"),
        ("request", request.0.as_str()),
        ("quote", "token"),
        ("key", key),
        ("count.A-1~1", "2"),
        ("method", "mail-back"),
    ];
    let (status, _, page) = send(form("/acme/withdraw/confirm?order=A-1", &fields)).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_contains(&page, &["action=\"/acme/withdraw/confirm?order=A-1\""]);
    for (name, value) in fields {
        assert_contains(&page, &[&format!("name=\"{name}\" value=\"{value}\"")]);
    }
}

#[actix_web::test]
async fn a_cancellation_with_an_unknown_result_leads_to_the_page_that_asks() {
    let (status, location, _) = send(form("/acme/returns/RMA-1/cancel", &[])).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(location, "/acme/returns/RMA-1/cancel");
}

#[actix_web::test]
async fn the_style_sheets_of_a_merchants_host_need_no_service() {
    let at_host = |path: &str| {
        TestRequest::get().uri(path).insert_header((header::HOST, "returns.acme.test"))
    };
    let (status, _, page) = send(at_host("/")).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let style = page.split("href=\"").find(|part| part.starts_with("/assets/"));
    let style = style.unwrap_or_else(|| panic!("{page}"));
    let (status, ..) = send(at_host(style.split('"').next().unwrap())).await;
    assert_eq!(status, StatusCode::OK);
}

#[actix_web::test]
async fn a_page_that_no_header_can_name_is_not_followed() {
    for letter in ["\0", "\u{b}", "\u{1b}", "\u{7f}"] {
        let (status, location, _) =
            send(form("/sign-out", &[("next", &format!("/{letter}"))])).await;
        assert_eq!((status, location.as_str()), (StatusCode::SEE_OTHER, "/"));
        let next = format!("/acme/{letter}");
        let fields = [("lang", "de"), ("next", next.as_str())];
        let (status, location, _) = send(form("/acme/language", &fields)).await;
        assert_eq!((status, location.as_str()), (StatusCode::SEE_OTHER, "/acme"));
    }
}

#[actix_web::test]
async fn a_form_with_an_unknown_encoding_or_without_fields_is_rejected() {
    let encoded = form("/sign-out", &[]).insert_header((header::CONTENT_ENCODING, "br"));
    let (status, _, page) = send(encoded).await;
    assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_contains(&page, &["<h1>The form has an unknown encoding</h1>"]);
    let large = form("/sign-out", &[]).insert_header((header::CONTENT_LENGTH, "1000000000"));
    let (status, _, page) = send(large).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_contains(&page, &["<h1>The form is too large</h1>"]);
    let (status, _, page) = send(form("/acme/language", &[])).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_contains(&page, &["<h1>This page cannot be read</h1>"]);
}

#[actix_web::test]
async fn choices_that_were_confirmed_lead_to_their_return() {
    let mut shopper = shopper();
    let query = "i=A-1~10~1~SMALL~refund&method=mail-back";
    shopper.remember(draft::ReturnDraft::parse(query).unwrap().digest(), "RMA-7");
    let check = |query: &str| TestRequest::get().uri(&format!("/acme/check?{query}"));
    let (status, _, page) = send_as(&shopper, check(query)).await;
    assert_eq!(status, StatusCode::OK);
    assert_contains(&page, &["You confirmed this: RMA-7", "href=\"/acme/returns/RMA-7\""]);
    // The shopper asks for one more, or for another item.
    let one_more = format!("{query}&more=RMA-7");
    for other in [&one_more, "i=A-1~11~1~SMALL~refund&method=mail-back"] {
        let (status, ..) = send_as(&shopper, check(other)).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{other}");
    }
    // Back after one more leads to that return.
    shopper.remember(draft::ReturnDraft::parse(query).unwrap().digest(), "RMA-8");
    let (status, _, page) = send_as(&shopper, check(&one_more)).await;
    assert_eq!(status, StatusCode::OK);
    assert_contains(&page, &["You confirmed this: RMA-8"]);
}

#[actix_web::test]
async fn a_host_that_is_no_host_name_is_rejected() {
    for host in ["localhost:8080@returns.acme.test", "returns.acme.test#x", "returns.acme.test/.."]
    {
        let request = TestRequest::get().uri("/acme").insert_header((header::HOST, host));
        let (status, ..) = send(request).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{host}");
    }
}

#[actix_web::test]
async fn a_page_that_does_not_exist_has_the_shops_header_and_a_way_on() {
    let (status, _, page) = send(TestRequest::get().uri("/acme/nothing/here")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_contains(&page, &["class=\"brand\"", "href=\"/acme\"", "href=\"/acme/returns\""]);
}

#[actix_web::test]
async fn a_rejected_form_says_so_in_its_title_and_has_the_focus_on_the_reason() {
    let (status, _, page) = send(form("/acme", &[("order", ""), ("by", "own"), ("key", "")])).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_contains(&page, &["<title>Error: ", "tabindex=\"-1\" autofocus", "href=\"#order\""]);
    let (_, _, page) = send(TestRequest::get().uri("/acme")).await;
    assert!(!page.contains("<title>Error:") && !page.contains("autofocus"), "{page}");
}

#[actix_web::test]
async fn each_page_leads_once_to_the_withdrawal() {
    for path in ["/acme", "/acme/nothing/here"] {
        let (_, _, page) = send(TestRequest::get().uri(path)).await;
        assert_eq!(page.matches("href=\"/acme/withdraw\"").count(), 1, "{path}: {page}");
    }
}
