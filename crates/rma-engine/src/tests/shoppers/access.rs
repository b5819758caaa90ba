//! The scope `shopper` allows nothing without a valid proof of the order.

use chrono::TimeDelta;

use super::*;

/// Every operation of the service that needs a token, with sample values for its parameters.
fn operations() -> Vec<(Method, String)> {
    let document = json!(platform::openapi::<App>());
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if operation["security"].as_array().is_none_or(Vec::is_empty) {
                continue;
            }
            let method = method.to_uppercase().parse().unwrap();
            operations.push((method, with_parameters(path, operation)));
        }
    }
    operations
}

fn with_parameters(path: &str, operation: &Value) -> String {
    let mut path = path.to_owned();
    let mut query = Vec::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        let schema = &parameter["schema"];
        let value = match (schema["type"].as_str(), schema["format"].as_str()) {
            (_, Some("uuid")) => "00000000-0000-0000-0000-000000000000",
            (Some("integer"), _) => "1",
            _ => "acme",
        };
        match parameter["in"].as_str().unwrap() {
            "path" => path = path.replace(&format!("{{{name}}}"), value),
            "query" if parameter["required"] == true => query.push(format!("{name}={value}")),
            _ => {}
        }
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

#[tokio::test]
async fn without_a_proof_only_portals_and_look_ups_are_open() {
    let app = start_with_order().await;
    let open = ["/v1/portals/", "/v1/lookups"];
    let operations = operations();
    assert!(operations.len() > 25, "{operations:?}");
    for (method, path) in &operations {
        let path = &path.replace("acme", &app.service.own("acme"));
        let body = (method != Method::GET).then(|| json!({}));
        for proofs in ["", "nonsense"] {
            let (status, response) =
                send_from_portal(&app, (method.clone(), path), proofs, &[], body.as_ref()).await;
            let is_refused = [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND].contains(&status);
            let is_open = open.iter().any(|it| path.starts_with(it));
            assert_eq!(is_refused, !is_open, "{method} {path} {proofs:?}: {status} {response}");
        }
    }
}

#[tokio::test]
async fn other_tokens_cannot_look_up_orders() {
    let app = start_with_order().await;
    let body = json!({ "order_identifier": "A", "email": EMAIL });
    for (merchant, scope) in [(Some("acme"), "returns read orders"), (None, "carrier warehouse")] {
        let token = app.issuer.token(merchant, scope);
        let headers = [("x-service-id", "acme")];
        let (status, _) =
            app.send(Method::POST, "/v1/lookups", &token, &headers, Some(&body)).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{scope}");
        let (status, _) = app.send(Method::GET, "/v1/portals/acme", &token, &headers, None).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{scope}");
    }
}

#[tokio::test]
async fn a_proof_opens_its_order_at_its_merchant_while_it_is_valid() {
    let app = start_with_order().await;
    app.store("acme", &adas_order("B", 1)).await;
    app.store("rival", &adas_order("A", 1)).await;
    let own = proof(&app, "A", false);
    let now = Clock::system().now();
    let acme = app.service.own("acme").parse().unwrap();
    let expired = proof_keys(now - TimeDelta::minutes(31)).issue(&acme, "A", false).unwrap().0;
    let path = "/v1/orders/A/returnable";
    assert_eq!(get(&app, path, &own).await.0, StatusCode::OK);
    check_refusal(&get(&app, path, &proof(&app, "B", false)).await, "proof_required");
    check_refusal(&get(&app, path, &expired).await, "proof_expired");
    check_refusal(&get(&app, path, &format!("{own}, {expired}")).await, "proof_expired");
    check_refusal(&get(&app, path, &format!("{own}, nonsense")).await, "proof_required");
    let token = app.issuer.token_of("portal", None, "shopper");
    let headers = [("x-service-id", "rival"), ("x-shopper-proof", own.as_str())];
    check_refusal(&app.send(Method::GET, path, &token, &headers, None).await, "proof_required");

    // The same for requests with a body: each order needs its proof.
    let mut both = refund_of("A", &[1]);
    let of_b = choice("B", 1, &json!({ "resolution": "refund" }));
    both["units"].as_array_mut().unwrap().push(of_b);
    for path in ["/v1/returns", "/v1/returns/quote"] {
        check_refusal(&post(&app, path, &own, &both).await, "proof_required");
        check_refusal(&post(&app, path, &expired, &both).await, "proof_expired");
    }
    assert_eq!(app.number("SELECT count(*) AS n FROM returns WHERE merchant = 'acme'").await, 0);
}

#[tokio::test]
async fn returns_of_other_orders_do_not_exist_for_a_shopper() {
    let app = start_with_order().await;
    app.store("acme", &adas_order("B", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let (own, other) = (proof(&app, "A", false), proof(&app, "B", false));
    let missing = get(&app, "/v1/returns/RMA-0", &other).await.0;
    assert_eq!(missing, StatusCode::NOT_FOUND);
    for path in [format!("/v1/returns/{rma}"), format!("/v1/returns/{rma}/timeline")] {
        assert_eq!(get(&app, &path, &own).await.0, StatusCode::OK, "{path}");
        assert_eq!(get(&app, &path, &other).await.0, missing, "{path}");
    }
    let cancel = format!("/v1/returns/{rma}/cancel");
    assert_eq!(post(&app, &cancel, &other, &json!({})).await.0, missing);
    check_refusal(&get(&app, "/v1/returns?order_identifier=A", &other).await, "proof_required");
    let (status, page) = get(&app, "/v1/returns?order_identifier=A", &own).await;
    assert_eq!((status, &page["returns"][0]["rma_identifier"]), (StatusCode::OK, &json!(rma)));
    let named = "?order_identifier=A";
    let filters = ["email=ada@shop.example", "sku=BOOT-M", "work_list=done", "format=csv"];
    let queries = filters.map(|filter| format!("{named}&{filter}"));
    let others = ["", "?status=CREATED"].map(str::to_owned);
    for query in others.into_iter().chain(queries) {
        let (status, _) = get(&app, &format!("/v1/returns{query}"), &own).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn a_shopper_cannot_override_the_policy() {
    let app = start_with_order().await;
    let mut body = refund_of("A", &[1]);
    body["override"] = json!({ "by": "eve", "reason": "because" });
    for path in ["/v1/returns", "/v1/returns/quote"] {
        let (status, _) = post(&app, path, &proof(&app, "A", false), &body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
    }
}
