//! Tests of the managers of a merchant: which people they see and change.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    app::{TestApp, text},
    person::invalid_fields,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_manages_only_its_own_people() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    app.create_merchant("rival").await;
    let admin = app.person("admin@acme.example", "merchant-admin", Some("acme")).await;
    let rival = app.person("admin@rival.example", "merchant-admin", Some("rival")).await;
    let operator = app.person("ada@example.com", "operator", None).await;
    let token = app.session_token(&admin.session).await;
    let call = async |method: Method, path: &str, body: Option<Value>| {
        let (status, body) = app.call_as(&token, method, path, body).await;
        (status, body["message"].as_str().unwrap_or_default().to_owned())
    };
    // Another person and one who does not exist get the same words.
    for foreign in [&rival.email, &operator.email] {
        for (method, path, body) in [
            (Method::GET, "/v1/people/EMAIL", None),
            (Method::PATCH, "/v1/people/EMAIL", Some(json!({"name": "x"}))),
            (Method::POST, "/v1/people/EMAIL/disable", None),
            (Method::POST, "/v1/people/EMAIL/enable", None),
            (Method::POST, "/v1/people/EMAIL/invitation", None),
            (Method::GET, "/v1/sessions?person=EMAIL", None),
            (Method::DELETE, "/v1/sessions?person=EMAIL", None),
        ] {
            let (status, message) =
                call(method.clone(), &path.replace("EMAIL", foreign), body.clone()).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
            let missing = call(method, &path.replace("EMAIL", "nobody@acme.example"), body).await;
            assert_eq!(missing, (status, message.replace(foreign.as_str(), "nobody@acme.example")));
        }
    }
    assert!(app.is_signed_in(&rival.session).await && app.is_signed_in(&operator.session).await);

    let invite = |role: &str, merchant: &str| {
        Some(json!({"email": "new@acme.example", "role": role, "merchant": merchant}))
    };
    for merchant in ["rival", "nobody"] {
        let invited = call(Method::POST, "/v1/people", invite("merchant-viewer", merchant)).await;
        assert_eq!(invited, (StatusCode::NOT_FOUND, format!("there is no merchant {merchant}")));
        let path = format!("/v1/people?merchant={merchant}");
        assert_eq!(call(Method::GET, &path, None).await, invited);
    }
    for role in ["operator", "support"] {
        let body = json!({"email": "new@acme.example", "role": role});
        let (status, response) = app.call_as(&token, Method::POST, "/v1/people", Some(body)).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(invalid_fields(&response), ["$.role"]);
        let path = "/v1/people/admin@acme.example";
        let (status, _) = call(Method::PATCH, path, Some(json!({"role": role}))).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let own = json!({"email": "new@acme.example", "role": "merchant-viewer"});
    assert_eq!(call(Method::POST, "/v1/people", Some(own.clone())).await.0, StatusCode::CREATED);
    let again = call(Method::POST, "/v1/people", Some(own)).await;
    assert_eq!(again, (StatusCode::CONFLICT, "person new@acme.example already exists".to_owned()));
    let (_, page) = app.call_as(&token, Method::GET, "/v1/people", None).await;
    let people = page["people"].as_array().unwrap();
    let emails: Vec<_> = people.iter().map(|person| person["email"].as_str().unwrap()).collect();
    assert_eq!(emails, ["admin@acme.example", "new@acme.example"]);
    assert!(people.iter().all(|person| person["merchant"] == "acme"));
    let (_, list) = app.call(Method::GET, "/v1/sessions?person=admin@rival.example", None).await;
    let path = format!("/v1/sessions/{}", text(&list["sessions"][0], "id"));
    assert_eq!(call(Method::DELETE, &path, None).await.0, StatusCode::NOT_FOUND);
    assert!(app.is_signed_in(&rival.session).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_refusal_of_an_address_of_a_person_elsewhere_does_not_tell_so() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    app.create_merchant("rival").await;
    let admin = app.person("admin@acme.example", "merchant-admin", Some("acme")).await;
    let rival = app.person("admin@rival.example", "merchant-admin", Some("rival")).await;
    let operator = app.person("ada@example.com", "operator", None).await;
    let token = app.session_token(&admin.session).await;
    for foreign in [&rival.email, &operator.email] {
        let body = json!({"email": foreign, "role": "merchant-viewer"});
        let (status, response) = app.call_as(&token, Method::POST, "/v1/people", Some(body)).await;
        assert_eq!(status, StatusCode::CONFLICT);
        let neutral = format!("{foreign} cannot be invited to this merchant: ask an operator");
        assert_eq!(response["message"], neutral);
        let records = app.audit_records().await;
        let record = records.iter().find(|it| it["action"] == "person.invitation_refused").unwrap();
        let expected = (json!(admin.email), json!(format!("person/{foreign}")));
        assert_eq!((&record["actor"], &record["subject"]), (&expected.0, &expected.1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_and_support_cannot_see_people() {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    let viewer = app.person("viewer@acme.example", "merchant-viewer", Some("acme")).await;
    let support = app.person("support@example.com", "support", None).await;
    for person in [viewer, support] {
        let token = app.session_token(&person.session).await;
        for path in ["/v1/people", "/v1/people/x@y.z", "/v1/sessions?person=x@y.z"] {
            let (status, _) = app.call_as(&token, Method::GET, path, None).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
        }
        let (status, list) = app.call_as(&token, Method::GET, "/v1/sessions", None).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(list["sessions"][0]["person"], json!(person.email));
    }
}
