//! A browser, and a stand-in for rma-engine.

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
use platform::Clock;
use serde_json::{Value, json};

use super::{App, Shown, sealer};
use crate::{access, merchant::Portals, routes};

/// The merchant's settings, the units of every order, and the requests for returns.
#[derive(Default)]
pub(super) struct Engine {
    pub(super) methods: Vec<(&'static str, i64)>,
    units: Vec<Value>,
    /// The lines that cannot be returned any more.
    pub(super) refused: Vec<&'static str>,
    returns: Vec<Value>,
    /// The idempotency keys of the returns.
    keys: Vec<String>,
    /// Whether the shop has canceled the returns.
    pub(super) is_canceled: bool,
}

pub(super) type Shared = web::Data<Mutex<Engine>>;

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

/// A browser. Its tabs share the cookie.
pub(super) struct Browser {
    pub(super) engine: Shared,
    pub(super) app: web::Data<App>,
    pub(super) cookie: Option<Cookie<'static>>,
}

impl Browser {
    pub(super) async fn start(methods: &[(&'static str, i64)], units: &[Value]) -> Self {
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

    pub(super) async fn send(&mut self, request: TestRequest) -> Shown {
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

    pub(super) async fn get(&mut self, path: &str) -> Shown {
        self.send(TestRequest::get().uri(path)).await
    }

    /// The first step, which leads to the page that asks for the confirmation.
    pub(super) async fn begin(&mut self, name: &str, order: &str) -> String {
        let fields = [("name", name), ("order", order), ("email", "a@b.test")];
        let form = TestRequest::post().uri("/acme/withdraw").set_form(fields);
        let (status, location, page) = self.send(form).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
        let (status, _, page) = self.get(&location).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page
    }

    /// Sends the form of a page, with some fields changed.
    pub(super) async fn confirm(&mut self, page: &str, changed: &[(&str, &str)]) -> Shown {
        let mut fields = fields(page);
        fields.retain(|(name, _)| changed.iter().all(|(other, _)| name != other));
        fields.extend(changed.iter().map(|(name, it)| ((*name).to_owned(), (*it).to_owned())));
        self.send(TestRequest::post().uri("/acme/withdraw/confirm").set_form(fields)).await
    }

    pub(super) fn returns(&self) -> Vec<Value> {
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
