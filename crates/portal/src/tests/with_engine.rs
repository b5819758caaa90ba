//! Pages of a shopper with one browser, while a stand-in for rma-engine responds.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use actix_web::{
    HttpRequest, HttpResponse, HttpServer,
    cookie::Cookie,
    http::StatusCode,
    rt,
    test::{TestRequest, call_service, init_service, read_body},
    web,
};
use pages::api::Service;
use serde_json::{Value, json};

use super::{App, Shown, assert_contains, sealer};
use crate::{
    access, cookie::tests::proof, draft::ReturnDraft, merchant::Portals, order::tests::unit, routes,
};
use platform::Clock;

/// The merchant's settings, the units of every order, and the requests for returns.
#[derive(Default)]
struct Engine {
    methods: Vec<(&'static str, i64)>,
    units: Vec<Value>,
    /// The lines that cannot be returned any more.
    refused: Vec<&'static str>,
    returns: Vec<Value>,
    /// The idempotency keys of the returns.
    keys: Vec<String>,
    /// Whether the shop has canceled the returns.
    is_canceled: bool,
    /// The returns whose labels were requested again.
    renewed: Vec<String>,
}

type Shared = web::Data<Mutex<Engine>>;

impl Engine {
    fn portal(&self) -> Value {
        let methods = self.methods.iter();
        let methods =
            methods.map(|(it, cents)| json!({ "method": it, "shipping_cost_cents": cents }));
        json!({
            "merchant": "acme", "version": 1, "name": "Acme", "currency": "EUR", "withdrawal": true,
            "lookup_keys": ["email"], "contact_email": "help@acme.test",
            "methods": methods.collect::<Vec<_>>(),
            "reasons": [{ "code": "SMALL", "label": "Too small" }],
        })
    }

    fn cost(&self, method: &Value) -> i64 {
        let found = self.methods.iter().find(|(name, _)| method == name);
        found.map(|(_, cents)| *cents).unwrap_or_default()
    }

    /// The quote of a request. Its token is the cost.
    fn quote(&self, request: &Value) -> Value {
        let cost = self.cost(&request["return_method"]);
        let is_refused = |unit: &Value| {
            self.refused.iter().any(|line| unit["order_line_item_identifier"] == *line)
        };
        let mut units: Vec<_> = request["units"].as_array().unwrap().clone();
        let possible = !units.iter().any(is_refused);
        for unit in units.iter_mut().filter(|unit| is_refused(unit)) {
            unit["ineligible"] = json!({ "code": "already_returned" });
        }
        json!({
            "quote": cost.to_string(), "possible": possible, "return_method": request["return_method"],
            "return_shipping_cost_cents": cost, "currency": "EUR",
            "shopper_refund_amount_cents": 4995 * units.len(), "units": units,
        })
    }

    fn create(&mut self, key: &str, body: Value) -> HttpResponse {
        if let Some(place) = self.keys.iter().position(|known| known == key) {
            return HttpResponse::Created()
                .json(json!({ "rma_identifier": format!("RMA-{place}") }));
        }
        let quote = self.quote(&body);
        if quote["quote"] != body["quote"] {
            let quoted: i64 = body["quote"].as_str().unwrap().parse().unwrap();
            let current = &quote["return_shipping_cost_cents"];
            let field = "return_shipping_cost_cents";
            let change = json!({ "field": field, "quoted": quoted, "current": current });
            return HttpResponse::Conflict()
                .json(json!({ "message": "m", "changes": [change], "quote": quote }));
        }
        self.keys.push(key.to_owned());
        self.returns.push(body);
        let rma = format!("RMA-{}", self.keys.len() - 1);
        HttpResponse::Created().json(json!({ "rma_identifier": rma }))
    }
}

async fn portal(engine: Shared) -> HttpResponse {
    HttpResponse::Ok().json(engine.lock().unwrap().portal())
}

async fn look_up(body: web::Json<Value>) -> HttpResponse {
    HttpResponse::Ok().json(json!({
        "proof": "p", "order_identifier": body["order_identifier"],
        "expires_at": "2026-11-16T09:30:00Z",
    }))
}

async fn returnable(engine: Shared, order: web::Path<String>) -> HttpResponse {
    let units = engine.lock().unwrap().units.clone();
    HttpResponse::Ok()
        .json(json!({ "order_identifier": *order, "currency": "EUR", "units": units }))
}

async fn quote(engine: Shared, body: web::Json<Value>) -> HttpResponse {
    HttpResponse::Ok().json(engine.lock().unwrap().quote(&body))
}

async fn create(engine: Shared, request: HttpRequest, body: web::Json<Value>) -> HttpResponse {
    let key = request.headers().get("idempotency-key").unwrap().to_str().unwrap();
    engine.lock().unwrap().create(key, body.into_inner())
}

async fn show(engine: Shared, rma: web::Path<String>) -> HttpResponse {
    let status = if engine.lock().unwrap().is_canceled { "CANCELED" } else { "CREATED" };
    HttpResponse::Ok().json(json!({
        "rma_identifier": *rma, "status": status, "created_at": "2026-11-16T08:30:00Z",
        "return_method": "mail-back", "return_shipping_cost_cents": 500, "currency": "EUR",
        "is_cancelable": false, "units": [],
    }))
}

async fn document(request: HttpRequest) -> HttpResponse {
    assert!(request.headers().contains_key("x-shopper-proof"));
    HttpResponse::Ok()
        .content_type("application/pdf")
        .insert_header(("content-disposition", "attachment; filename=\"RMA-0-1.pdf\""))
        .body("%PDF-1.7")
}

async fn renew(engine: Shared, rma: web::Path<String>) -> HttpResponse {
    engine.lock().unwrap().renewed.push(rma.into_inner());
    HttpResponse::Ok().json(json!({}))
}

/// A browser. Its tabs share the cookie.
struct Browser {
    engine: Shared,
    app: web::Data<App>,
    cookie: Option<Cookie<'static>>,
}

impl Browser {
    async fn start(methods: &[(&'static str, i64)], units: &[Value]) -> Self {
        let engine =
            Engine { methods: methods.to_vec(), units: units.to_vec(), ..Engine::default() };
        let engine = web::Data::from(Arc::new(Mutex::new(engine)));
        let shared = engine.clone();
        let server = HttpServer::new(move || {
            actix_web::App::new()
                .app_data(shared.clone())
                .route("/v1/portals/acme", web::get().to(portal))
                .route("/v1/lookups", web::post().to(look_up))
                .route("/v1/orders/{order}/returnable", web::get().to(returnable))
                .route("/v1/returns/quote", web::post().to(quote))
                .route("/v1/returns", web::post().to(create))
                .route("/v1/returns/{rma}", web::get().to(show))
                .route("/v1/returns/{rma}/labels", web::post().to(renew))
                .route("/v1/label_requests/{id}/document", web::get().to(document))
        });
        let server = server.workers(1).bind(("127.0.0.1", 0)).unwrap();
        let url = format!("http://{}", server.addrs()[0]).parse().unwrap();
        rt::spawn(server.run());
        let app = App {
            access: access::tests::with_services(BTreeMap::from([(Service::RmaEngine, url)])).await,
            portals: Portals::new(),
            sealer: sealer(),
            public_url: "https://portal.test".parse().unwrap(),
            pseudo_languages: false,
            clock: Clock::from_fn(|| "2026-11-16T09:00:00Z".parse().unwrap()),
        };
        Self { engine, app: web::Data::new(app), cookie: None }
    }

    async fn send(&mut self, request: TestRequest) -> Shown {
        let mut request = request.insert_header(("accept-language", "en"));
        if let Some(cookie) = &self.cookie {
            request = request.cookie(cookie.clone());
        }
        let pages = actix_web::App::new().app_data(self.app.clone()).configure(routes::configure);
        let response = call_service(&init_service(pages).await, request.to_request()).await;
        if let Some(cookie) = response.response().cookies().next() {
            self.cookie = Some(cookie.into_owned());
        }
        let location = response.headers().get("location");
        let location = location.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        let status = response.status();
        let body = read_body(response).await;
        (status, location, String::from_utf8(body.to_vec()).unwrap())
    }

    async fn get(&mut self, path: &str) -> Shown {
        self.send(TestRequest::get().uri(path)).await
    }

    /// The first step, which leads to the page that asks for the confirmation.
    async fn begin(&mut self, name: &str, order: &str) -> String {
        let fields = [("name", name), ("order", order), ("email", "a@b.test")];
        let form = TestRequest::post().uri("/acme/withdraw").set_form(fields);
        let (status, location, page) = self.send(form).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
        let (status, _, page) = self.get(&location).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page
    }

    /// Sends the form of a page, with some fields changed.
    async fn confirm(&mut self, page: &str, changed: &[(&str, &str)]) -> Shown {
        let mut fields = fields(page);
        fields.retain(|(name, _)| changed.iter().all(|(other, _)| name != other));
        fields.extend(changed.iter().map(|(name, it)| ((*name).to_owned(), (*it).to_owned())));
        self.send(TestRequest::post().uri("/acme/withdraw/confirm").set_form(fields)).await
    }

    fn returns(&self) -> Vec<Value> {
        self.engine.lock().unwrap().returns.clone()
    }
}

/// The fields of the form that confirms, as a browser sends them.
fn fields(page: &str) -> Vec<(String, String)> {
    let form = page.split("action=\"/acme/withdraw/confirm").nth(1);
    let form = form.unwrap_or_else(|| panic!("no form in {page}")).split("</form>").next().unwrap();
    let inputs = form.split("<input ").skip(1).map(|rest| rest.split('>').next().unwrap());
    let value = |input: &str, name: &str| {
        let found = format!(" {input}").split(&format!(" {name}=\"")).nth(1).map(str::to_owned);
        found.map(|rest| rest.split('"').next().unwrap().to_owned()).unwrap_or_default()
    };
    let is_sent = |input: &&str| {
        let is_box = ["radio", "checkbox"].contains(&value(input, "type").as_str());
        !is_box || input.contains(" checked")
    };
    inputs.filter(is_sent).map(|input| (value(input, "name"), value(input, "value"))).collect()
}

const METHODS: [(&str, i64); 2] = [("mail-back", 500), ("express-returns", 700)];

#[actix_web::test]
async fn two_tabs_withdraw_for_the_persons_that_they_show() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1)]).await;
    let ada = browser.begin("Ada", "W-1").await;
    let bob = browser.begin("Bob", "W-2").await;
    assert_contains(&ada, &["<dd>Ada</dd>", "<dd>W-1</dd>"]);
    // Neither page of the first order shows the person of the second one.
    for path in ["/acme/withdraw/confirm?order=W-1", "/acme/withdraw?order=W-1"] {
        let (_, _, page) = browser.get(path).await;
        assert!(!page.contains("Bob"), "{page}");
    }
    for (page, name, order) in [(ada, "Ada", "W-1"), (bob, "Bob", "W-2")] {
        let (status, _, shown) = browser.confirm(&page, &[]).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{shown}");
        let sent = browser.returns().pop().unwrap();
        assert_eq!(sent["withdrawal"], json!({ "name": name, "email": "a@b.test" }));
        assert_eq!(sent["units"][0]["order_identifier"], order);
    }
}

#[actix_web::test]
async fn a_shopper_with_a_proof_gets_the_label() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1)]).await;
    let path = "/acme/returns/RMA-0/labels/01980a4c-7c1e-7000-8000-000000000001";
    assert_ne!(browser.get(path).await.0, StatusCode::OK);
    browser.begin("Ada", "W-1").await;
    let (status, _, file) = browser.get(path).await;
    assert_eq!((status, file.as_str()), (StatusCode::OK, "%PDF-1.7"));
    let (status, ..) = browser.get("/acme/returns/RMA-0/labels/1").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let request = TestRequest::post().uri("/acme/returns/RMA-0/labels");
    let (status, location, _) = browser.send(request).await;
    assert_eq!((status, location.as_str()), (StatusCode::SEE_OTHER, "/acme/returns/RMA-0"));
    assert_eq!(browser.engine.lock().unwrap().renewed, ["RMA-0"]);
}

#[actix_web::test]
async fn a_withdrawal_costs_what_its_page_showed() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1)]).await;
    let page = browser.begin("Ada", "W-1").await;
    assert_contains(&page, &["-€5.00", "€44.95"]);
    browser.engine.lock().unwrap().methods[0].1 = 4900;
    let (status, _, page) = browser.confirm(&page, &[]).await;
    assert_eq!((status, browser.returns().len()), (StatusCode::CONFLICT, 0));
    assert_contains(&page, &["Return shipping was €5.00 and is now €49.00.", "-€49.00", "€0.95"]);
    let (status, ..) = browser.confirm(&page, &[]).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(browser.returns()[0]["quote"], "4900");
}

#[actix_web::test]
async fn amounts_are_shown_before_another_choice_counts() {
    let units = [unit("1", 1), unit("1", 2), unit("2", 1)];
    let mut browser = Browser::start(&METHODS, &units).await;
    let page = browser.begin("Ada", "W-1").await;
    let changed = [("method", "express-returns"), ("count.W-1~1", "1")];
    let (status, _, page) = browser.confirm(&page, &changed).await;
    assert_eq!((status, browser.returns().len()), (StatusCode::OK, 0));
    assert_contains(&page, &["Nothing was sent yet.", "-€7.00", "€92.90", "<dd>Ada</dd>"]);
    let (status, ..) = browser.confirm(&page, &[]).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    let sent = browser.returns().remove(0);
    assert_eq!(sent["return_method"], "express-returns");
    assert_eq!(sent["units"].as_array().unwrap().len(), 2);
}

#[actix_web::test]
async fn a_method_has_to_fit_only_the_units_that_are_chosen() {
    let mut tent = unit("2", 1);
    tent["title"] = json!("Tent");
    tent["unavailable_methods"] =
        json!([{ "method": "express-returns", "code": "too_heavy_for_express" }]);
    let mut browser = Browser::start(&[("express-returns", 0)], &[unit("1", 1), tent]).await;
    let page = browser.begin("Ada", "W-1").await;
    assert_contains(&page, &["Not possible for Tent: ", "cannot be sent back together"]);
    let note = page.split("cannot be sent back together").nth(1).unwrap();
    assert_contains(note.split("</div>").next().unwrap(), &["mailto:help@acme.test"]);
    assert!(!page.contains("Confirm withdrawal"), "{page}");
    let (status, _, page) = browser.confirm(&page, &[("count.W-1~2", ""), ("update", "1")]).await;
    assert_eq!(status, StatusCode::OK);
    assert_contains(&page, &["Confirm withdrawal", "€49.95"]);
    let (status, ..) = browser.confirm(&page, &[]).await;
    assert_eq!((status, browser.returns().len()), (StatusCode::SEE_OTHER, 1));
}

#[actix_web::test]
async fn a_wrong_number_of_units_is_an_error_at_its_field() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1), unit("1", 2)]).await;
    let page = browser.begin("Ada", "W-1").await;
    for wrong in ["1.5", "abc", "-1", "3"] {
        let (status, _, page) = browser.confirm(&page, &[("count.W-1~1", wrong)]).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{page}");
        assert_contains(&page, &["href=\"#count-1\"", "Enter a number from 0 to 2."]);
        assert_contains(&page, &[&format!("value=\"{wrong}\"")]);
    }
    let (status, _, page) = browser.confirm(&page, &[("count.W-1~1", "0")]).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_contains(&page, &["Choose at least one item."]);
    assert_eq!(browser.returns().len(), 0);
}

#[actix_web::test]
async fn a_form_that_is_sent_twice_is_one_withdrawal() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1)]).await;
    let page = browser.begin("Ada", "W-1").await;
    for _ in 0..2 {
        let (status, location, _) = browser.confirm(&page, &[]).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        assert_eq!(location, "/acme/returns/RMA-0/withdrawal");
    }
    assert_eq!(browser.returns().len(), 1);
}

#[actix_web::test]
async fn back_after_the_confirmation_says_that_the_withdrawal_was_received() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1), unit("1", 2)]).await;
    let page = browser.begin("Ada", "W-1").await;
    browser.confirm(&page, &[]).await;
    let (status, _, page) = browser.get("/acme/withdraw/confirm?order=W-1").await;
    assert_eq!(status, StatusCode::OK);
    assert_contains(&page, &["We have received your withdrawal", "/acme/returns/RMA-0/withdrawal"]);
    assert!(!page.contains("Ada"), "{page}");
    // A shopper who begins once more can withdraw from other items.
    let page = browser.begin("Ada", "W-1").await;
    assert_contains(&page, &["Confirm withdrawal"]);
    let (_, location, _) = browser.get("/acme/withdraw/confirm?order=W-2").await;
    assert_eq!(location, "/acme/withdraw?order=W-2");
}

#[actix_web::test]
async fn items_of_a_return_that_the_shop_canceled_can_be_returned_again() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1)]).await;
    browser.begin("Ada", "W-1").await;
    let query = "i=W-1~1~1~SMALL~refund&method=mail-back";
    let mut shopper = super::shopper();
    shopper.add(proof("W-1", "2026-11-16T09:30:00Z"));
    shopper.remember(ReturnDraft::parse(query).unwrap().digest(), "RMA-7");
    browser.cookie = Some(shopper.cookie(&browser.app.sealer).unwrap());
    let path = format!("/acme/check?{query}");
    let (_, _, page) = browser.get(&path).await;
    assert_contains(&page, &["You confirmed this: RMA-7"]);
    browser.engine.lock().unwrap().is_canceled = true;
    let (status, _, page) = browser.get(&path).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert_contains(&page, &["Confirm the return"]);
}

#[actix_web::test]
async fn a_check_page_offers_no_amounts_and_no_other_items_that_do_not_exist() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1), unit("2", 1)]).await;
    browser.begin("Ada", "W-1").await;
    let check = "/acme/check?i=W-1~1~1~SMALL~refund&i=W-1~2~1~SMALL~refund&method=mail-back";
    let offers = ["Return the other items", "You get back", "Confirm the return"];
    for (refused, expected) in [
        (vec![], [false, true, true]),
        (vec!["1"], [true, false, false]),
        (vec!["1", "2"], [false, false, false]),
    ] {
        browser.engine.lock().unwrap().refused.clone_from(&refused);
        let (status, _, page) = browser.get(check).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        assert_eq!(offers.map(|text| page.contains(text)), expected, "{refused:?}: {page}");
        assert_eq!(page.contains("Refund: "), refused.is_empty(), "{page}");
    }
}

#[actix_web::test]
async fn a_comment_reaches_the_shop_with_its_units() {
    let mut browser = Browser::start(&METHODS, &[unit("1", 1), unit("1", 2)]).await;
    browser.begin("Ada", "W-1").await;
    let path = "/acme/check?i=W-1~1~2~SMALL~refund&method=mail-back";
    let (_, _, page) = browser.get(path).await;
    let hidden = |name: &str| {
        let rest = page.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap().to_owned();
        rest.split('"').next().unwrap().to_owned()
    };
    let [request, quote, key] = ["request", "quote", "key"].map(hidden);
    let form = |comment: &str| {
        let fields =
            [("request", &*request), ("quote", &*quote), ("key", &*key), ("comment-0", comment)];
        TestRequest::post().uri(path).set_form(fields)
    };
    let long = format!("<b>{}", "x".repeat(1_000));
    let (status, _, shown) = browser.send(form(&long)).await;
    assert_eq!((status, browser.returns().len()), (StatusCode::UNPROCESSABLE_ENTITY, 0), "{shown}");
    assert_contains(
        &shown,
        &["href=\"#comment-0\"", "Write at most 1000 characters.", "&#60;b&#62;xxx"],
    );
    let (status, location, _) = browser.send(form("Too tight\r\nat the neck")).await;
    assert_eq!((status, location.as_str()), (StatusCode::SEE_OTHER, "/acme/returns/RMA-0?new=1"));
    let sent = browser.returns().remove(0);
    for unit in sent["units"].as_array().unwrap() {
        assert_eq!(unit["comment"], "Too tight\nat the neck");
    }
}
