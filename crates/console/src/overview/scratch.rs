use actix_web::{App as WebApp, HttpRequest, HttpResponse, HttpServer, cookie::Cookie, test, web};
use pages::api::{Api, ServiceUrls};
use serde_json::{Value, json};

use crate::App;

const ID: &str = "01980a4c-7c1e-7000-8000-00000000000";

fn delivery(n: u32, state: &str) -> Value {
    let waiting = (state == "pending").then(|| json!({"reason": "next_attempt", "detail": "the next attempt is at 2026"}));
    json!({"id": format!("{ID}{n}"), "merchant": "acme", "kind": "rma", "event": "rma.created", "ordering_key": "rma:R-1001",
        "sequence": n, "state": state, "created_at": "2026-11-16T08:00:00Z", "next_attempt_at": (state == "pending").then_some("2026-11-16T10:02:10Z"),
        "waiting": waiting, "attempt_count": (state == "pending").then_some(3), "last_outcome": "rejected", "last_status": 503,
        "last_error": "e", "last_attempt_at": "2026-11-16T08:00:10Z"})
}

fn replay(n: u32, state: &str) -> Value {
    json!({"id": format!("{ID}{n}"), "requested_by": "ops@example.com", "state": state, "filter": {"merchant": "acme", "state": "dead", "status": 503, "to": "2026-11-16T09:00:00Z"},
        "force": false, "per_second": 50, "matched": 1204, "replayed": 300, "skipped": 4, "failed": 1, "created_at": "2026-11-16T09:00:00Z",
        "finished_at": (state == "finished").then_some("2026-11-16T09:01:00Z")})
}

async fn fake(request: HttpRequest, body: web::Bytes) -> HttpResponse {
    let path = request.path().to_owned();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (service, path) = path[1..].split_once('/').unwrap();
    let json = |value: Value| HttpResponse::Ok().json(value);
    let parts: Vec<&str> = path.split('/').collect();
    match (service, parts.as_slice()) {
        (_, ["v1", "sessions", "token"]) => {
            let role = body["session"].as_str().unwrap();
            let merchant = role.starts_with("merchant").then_some("acme");
            json(json!({"access_token": "t", "person": {"email": "a@example.com", "name": "A", "role": role, "merchant": merchant}}))
        }
        ("exchange", ["readyz"]) => HttpResponse::ServiceUnavailable().json(json!({"ready": false, "parts": {"broker": "connection refused", "database": "ok"}, "started_at": "2026-11-16T08:00:00Z"})),
        (_, ["readyz"]) => json(json!({"ready": true, "parts": {"database": "ok"}, "started_at": "2026-11-14T08:00:00Z"})),
        ("exchange", ["v1", "backlog"]) => json(json!({"service": service, "outbox": {"unpublished": 2, "oldest_age_seconds": 90}, "broker": "unavailable", "queues": []})),
        (_, ["v1", "backlog"]) => json(json!({"service": service, "outbox": {"unpublished": 0, "oldest_age_seconds": null}, "broker": "available", "queues": [{"queue": "notify.rma", "depth": 3, "consumers": 1, "dead_letters": 12}]})),
        (_, ["v1", "reports", "hourly"]) => {
            let hours: Vec<_> = (0..24).map(|n| json!({"period_start_at": format!("2026-11-16T{n:02}:00:00Z"), "attempts": 100 + n, "delivered": 90 + n, "failed": 10, "p50_ms": 1, "p95_ms": 2,
                "durations": if n == 5 { json!([]) } else { json!([{"from_ms": 91, "to_ms": 128, "attempts": 90 + n}, {"from_ms": 1024, "to_ms": 1448, "attempts": 10}]) }})).collect();
            json(json!({"hours": hours}))
        }
        ("warehouse-notifier", ["v1", "endpoints"]) => HttpResponse::ServiceUnavailable().finish(),
        (_, ["v1", "endpoints"]) => json(json!({"endpoints": [
            {"merchant": "acme", "kind": "rma", "state": "failing", "reason": "the endpoint responded with 503", "since": "2026-11-16T08:00:00Z", "remedy": null, "waiting": 12, "oldest_due_at": "2026-11-16T08:00:00Z", "in_flight": 1, "window": 4, "recent": {"from": "2026-11-16T08:00:00Z", "attempts": 10, "success_rate": 0.25, "p95_ms": 1204}, "last_success": {"at": "2026-11-16T07:00:00Z", "status": 200}, "last_failure": null},
            {"merchant": "zeta", "kind": "outbound-asn", "state": "ok", "waiting": 0, "in_flight": 0, "window": 8, "recent": null, "last_success": null}],
            "retry_delays_seconds": [10, 40, 160, 640, 2560]})),
        ("rma-engine", ["v1", "replays"]) if request.method() == "POST" && body["dry_run"] == true => json(json!({"matches": 1204, "by_merchant": [{"merchant": "acme", "matches": 1190}, {"merchant": "zeta", "matches": 14}], "by_kind": [{"kind": "rma", "matches": 1204}],
            "samples": [{"id": format!("{ID}1"), "merchant": "acme", "kind": "rma", "event": "rma.created", "ordering_key": "rma:R-1001", "last_outcome": "rejected", "last_status": 503, "created_at": "2026-11-16T08:00:00Z"}], "estimated_seconds": 61})),
        ("rma-engine", ["v1", "replays"]) if request.method() == "POST" => HttpResponse::Conflict().json(json!({"message": "1300 deliveries match now, not as many as expected", "matches": 1300})),
        (_, ["v1", "replays"]) if request.method() == "POST" => json(json!({"matches": 0, "by_merchant": [], "by_kind": [], "samples": [], "estimated_seconds": 0})),
        ("rma-engine", ["v1", "replays"]) => json(json!({"replays": [replay(3, "running"), replay(2, "finished")]})),
        (_, ["v1", "replays"]) => json(json!({"replays": []})),
        (_, ["v1", "replays", _]) => json(replay(3, "running")),
        ("rma-engine", ["v1", "deliveries"]) => json(json!({"deliveries": [delivery(3, "dead"), delivery(2, "pending"), delivery(1, "delivered")], "next": "x"})),
        ("exchange", ["v1", "deliveries"]) => HttpResponse::ServiceUnavailable().finish(),
        (_, ["v1", "deliveries"]) => json(json!({"deliveries": []})),
        (_, ["v1", "deliveries", _, "replay"]) => HttpResponse::Conflict().json(json!({"message": "delivery 3 is superseded by a newer message"})),
        (_, ["v1", "deliveries", id]) => {
            let mut it = delivery(id[id.len() - 1..].parse().unwrap_or(1), if id.ends_with('3') { "dead" } else { "pending" });
            it["body"] = json!(r#"{"rma_identifier":"R-1001","items":[{"order_identifier":"<script>alert(1)</script>"}],"note":"it's"}"#);
            it["max_attempts"] = json!(6);
            let attempt = |n: i32| json!({"replay_number": 0, "number": n, "started_at": format!("2026-11-16T08:00:0{n}Z"), "latency_ms": 212, "outcome": "rejected", "status": 503, "detail": "503 Service Unavailable", "response_body": "<h1>down</h1>",
                "request_headers": [{"name": "authorization", "value": "********"}, {"name": "content-type", "value": "application/json"}, {"name": "webhook-id", "value": "x"}], "response_headers": [{"name": "server", "value": "nginx"}]});
            it["attempts"] = json!([attempt(1), attempt(2), attempt(3)]);
            json(it)
        }
        ("auth", ["v1", "merchants", "acme"]) => json(json!({"identifier": "acme", "name": "Acme Outdoor", "base_url": "https://acme.test", "endpoints": {"rma": {"url": "https://acme.test/hooks?********"}}, "created_at": "2026-11-16T08:00:00Z"})),
        ("auth", ["v1", "clients"]) => json(json!({"clients": [{"client_id": "x", "last_used_at": "2026-11-16T08:00:00Z"}]})),
        (_, ["v1", "orders", "summary"]) => json(json!({"merchant": "acme", "count": 0, "created_at": null, "rejections": [{"rejected_at": "2026-11-16T08:00:00Z", "order_identifier": "1001", "errors": [{"field": "$.orders[0].currency", "code": "missing_field"}]}]})),
        (_, ["v1", "returns"]) => json(json!({"returns": []})),
        ("rma-engine", ["openapi.json"]) => json(json!({"webhooks": {"rma": {"post": {"description": "Backhaul sends this. The default path is `/rmas`.", "parameters": [{"name": "webhook-id", "in": "header", "description": "The id"}], "requestBody": {"content": {"application/json": {"example": {"b": 1, "a": [1, 2]}}}}, "responses": {"2XX": {"description": "The message is delivered"}, "default": {"description": "The attempt failed"}}}}}})),
        (_, ["openapi.json"]) => json(json!({"webhooks": {}})),
        _ => HttpResponse::NotFound().json(json!({"message": "no"})),
    }
}

#[actix_web::test]
async fn scratch() {
    let server = HttpServer::new(|| WebApp::new().default_service(web::to(fake))).workers(1).bind(("127.0.0.1", 0)).unwrap();
    let base = format!("http://{}", server.addrs()[0]);
    let server = server.run();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    let url = |name: &str| format!("{base}/{name}/").parse().unwrap();
    let urls = ServiceUrls { auth: url("auth"), orders: url("order-intake"), returns: url("rma-engine"), exchange: url("exchange"), warehouse: url("warehouse-notifier") };
    let now = "2026-11-16T10:00:00Z".parse().unwrap();
    let app = web::Data::new(App { api: Api::new(urls).unwrap(), clock: platform::Clock::from_fn(move || now) });
    let service = test::init_service(WebApp::new().app_data(app).configure(crate::routes::configure)).await;
    std::fs::create_dir_all("/tmp/console-b").unwrap();
    let get = |path: &str| test::TestRequest::get().uri(path);
    let post = |path: &str, form: &str| test::TestRequest::post().uri(path).insert_header(("content-type", "application/x-www-form-urlencoded")).set_payload(form.to_owned());
    let id3 = format!("{ID}3");
    let id2 = format!("{ID}2");
    let cases: Vec<(&str, &str, test::TestRequest)> = vec![
        ("overview", "operator", get("/")),
        ("home", "merchant-admin", get("/")),
        ("events", "merchant-admin", get("/events")),
        ("deliveries", "operator", get("/deliveries?state=dead&status=503&from=2026-11-16T08:00")),
        ("deliveries_bad", "operator", get("/deliveries?status=5xx&from=x")),
        ("deliveries_foreign", "merchant-admin", get("/deliveries?merchant=zeta")),
        ("delivery_dead", "operator", get(&format!("/deliveries/rma-engine/{id3}"))),
        ("delivery_pending", "merchant-viewer", get(&format!("/deliveries/rma-engine/{id2}"))),
        ("delivery_conflict", "operator", post(&format!("/deliveries/rma-engine/{id3}/replay"), "force=true")),
        ("replays", "operator", get("/replays")),
        ("replay_new_empty", "operator", get("/replays/new")),
        ("replay_new", "operator", get("/replays/new?merchant=acme&status=503")),
        ("replay_new_pending", "operator", get("/replays/new?merchant=acme&state=pending")),
        ("replay_new_wrong", "operator", post("/replays/new", "merchant=acme&state=dead&per_second=50&expected=rma-engine:1204&typed=12")),
        ("replay_new_conflict", "operator", post("/replays/new", "merchant=acme&state=dead&per_second=50&expected=rma-engine:1204&typed=1,204")),
        ("replay", "operator", get(&format!("/replays/rma-engine/{id3}?also=exchange:{id2}"))),
        ("replay_stop", "operator", get(&format!("/replays/rma-engine/{id3}/stop"))),
        ("replay_denied", "merchant-viewer", get("/replays/new")),
    ];
    for (name, role, request) in cases {
        let request = request.cookie(Cookie::new("__Host-session", role)).peer_addr("127.0.0.1:1".parse().unwrap());
        let started = std::time::Instant::now();
        let response = test::call_service(&service, request.to_request()).await;
        let status = response.status();
        let body = test::read_body(response).await;
        println!("{name}: {status} {} bytes {:?}", body.len(), started.elapsed());
        std::fs::write(format!("/tmp/console-b/{name}.html"), body).unwrap();
    }
    let session = crate::person::SignedIn { person: serde_json::from_value(json!({"email": "a", "name": "b", "role": "operator", "merchant": null})).unwrap(), api: Api::new(ServiceUrls { auth: url("auth"), orders: url("order-intake"), returns: url("rma-engine"), exchange: url("exchange"), warehouse: url("warehouse-notifier") }).unwrap().caller("127.0.0.1".parse().unwrap(), None), notice: None };
    let one = session.api.get::<Value>(pages::api::Service::Auth, "x", &[]);
    println!("size of get {}", std::mem::size_of_val(&one));
    drop(one);
    handle.stop(true).await;
}
