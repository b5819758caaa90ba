//! Tests of the people who sign in with an OpenID provider.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{EMAIL, OidcApp, assert_refused};
use crate::{
    app::send,
    person::{PASSWORD, code_at},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_created_and_updated_at_each_sign_in() {
    let app = OidcApp::start().await;
    let (status, methods) = send(app.app.request(Method::GET, "/v1/sign_in_methods")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(methods, json!({"password": true, "oidc": {"name": "Example ID"}}));

    let (status, signed_in) = app.sign_in_with(|_| ()).await;
    assert_eq!(status, StatusCode::CREATED, "{signed_in}");
    let person = &signed_in["person"];
    assert_eq!((&person["email"], &person["name"]), (&json!(EMAIL), &json!("Ada")));
    assert_eq!((&person["role"], &person["state"]), (&json!("support"), &json!("active")));
    let session = signed_in["session"].as_str().unwrap();
    let token = app.app.session_token(session).await;
    let (status, _) = app.app.call_as(&token, Method::GET, "/v1/merchants/acme", None).await;
    assert_eq!(status, StatusCode::OK);

    // The first mapping decides. Another role ends the sessions of the person.
    let (status, signed_in) = app
        .sign_in_with(|claims| {
            claims["groups"] = json!(["staff", "shop"]);
            claims["email"] = json!("ADA@example.com");
            claims["name"] = json!("Ada Lovelace");
        })
        .await;
    assert_eq!(status, StatusCode::CREATED, "{signed_in}");
    let person = app.person().await;
    assert_eq!((&person["role"], &person["merchant"]), (&json!("merchant-admin"), &json!("acme")));
    assert_eq!(person["name"], "Ada Lovelace");
    assert!(!app.app.is_signed_in(session).await);

    // A group can come as a string; a missing name changes nothing.
    let (status, _) = app
        .sign_in_with(|claims| {
            claims["groups"] = json!("staff");
            claims.as_object_mut().unwrap().remove("name");
        })
        .await;
    assert_eq!(status, StatusCode::CREATED);
    let person = app.person().await;
    assert_eq!((&person["role"], &person["name"]), (&json!("support"), &json!("Ada Lovelace")));
    let audited = app.app.audited().await;
    let by_provider = audited.iter().filter(|(_, actor)| actor == "oidc");
    let actions: Vec<_> = by_provider.map(|(action, _)| action.as_str()).collect();
    let updated = ["session.ended", "person.updated"];
    assert_eq!(actions, [&["person.created"][..], &updated, &updated].concat());

    let disable = format!("/v1/people/{EMAIL}/disable");
    assert_eq!(app.app.call(Method::POST, &disable, None).await.0, StatusCode::OK);
    assert_refused(app.sign_in_with(|_| ()).await, "disabled");
    assert_eq!(app.person().await["state"], "disabled");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_without_a_mapped_group_is_denied() {
    let app = OidcApp::start().await;
    for groups in [json!(["visitors"]), json!([]), json!(null), json!(7)] {
        let (status, body) = app.sign_in_with(|claims| claims["groups"] = groups.clone()).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{groups}: {body}");
        assert_eq!(body["errors"][0]["field"], "$.groups", "{body}");
    }
    assert_eq!(app.person().await["message"], format!("there is no person {EMAIL}"));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_without_its_merchant_gives_no_role() {
    let app = OidcApp::start_with(&[("OIDC__ROLES", "staff=merchant-viewer:closed")]).await;
    let (status, body) = app.sign_in_with(|_| ()).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{body}");
    assert!(body["errors"][0]["detail"].as_str().unwrap().contains("merchant closed"), "{body}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invited_person_and_a_new_operator_sign_in_with_the_provider() {
    let app = OidcApp::start().await;
    let token = app.app.invite(EMAIL, "support", None).await;
    assert_eq!(app.sign_in_with(|_| ()).await.0, StatusCode::CREATED);
    let person = app.person().await;
    assert_eq!((&person["state"], &person["has_password"]), (&json!("active"), &json!(false)));
    let shown = app.app.post("/v1/invitations/show", json!({"token": token})).await;
    assert_eq!(shown.0, StatusCode::NOT_FOUND, "the invitation is not needed any more");

    let email = "joe@acme.example";
    app.app.person(email, "merchant-viewer", Some("acme")).await;
    let (_, person) = app.app.call(Method::GET, &format!("/v1/people/{email}"), None).await;
    assert_eq!(person["has_password"], true);
    assert_eq!(app.app.sign_in(email, PASSWORD, None).await.0, StatusCode::CREATED);
    let sign_in = async |groups: &str| {
        app.sign_in_with(|claims| {
            (claims["email"], claims["groups"]) = (json!(email), json!([groups]));
            claims["sub"] = json!("u-2");
        })
        .await
    };
    // An operator must not sign in with a password alone.
    let (status, signed_in) = sign_in("admins").await;
    assert_eq!((status, &signed_in["person"]["role"]), (StatusCode::CREATED, &json!("operator")));
    assert_eq!(app.app.sign_in(email, PASSWORD, None).await.0, StatusCode::UNAUTHORIZED);
    let (status, body) = sign_in("staff").await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_sign_in_with_the_provider_ends_earlier_credentials() {
    let app = OidcApp::start().await;
    let email = "boss@acme.example";
    for (group, subject) in [("admins", "u-10"), ("staff", "u-11"), ("shop", "u-12")] {
        let email = format!("{subject}.{email}");
        let joe = app.app.person_with_totp(&email, "merchant-viewer", Some("acme")).await;
        let sign_in = async || {
            app.sign_in_with(|claims| {
                (claims["email"], claims["groups"]) = (json!(email), json!([group]));
                claims["sub"] = json!(subject);
            })
            .await
        };
        let (status, signed_in) = sign_in().await;
        assert_eq!(status, StatusCode::CREATED, "{signed_in}");
        let person = &signed_in["person"];
        assert_eq!((&person["has_password"], &person["totp"]), (&json!(false), &json!(false)));
        assert!(!app.app.is_signed_in(&joe.session).await, "{group}");
        for code in [&code_at(&joe.secret, app.app.clock.now()), &joe.recovery_codes[0]] {
            let refused = app.app.sign_in(&email, PASSWORD, Some(code)).await.0;
            assert_eq!(refused, StatusCode::UNAUTHORIZED, "{group}");
        }
        let records = app.app.audit_records().await;
        let linked = records.iter().find(|record| record["action"] == "person.linked").unwrap();
        assert_eq!(linked["subject"], format!("person/{email}"));
        assert_eq!(linked["detail"], json!({"credentials_cleared": true}));
        // Later sign-ins end nothing.
        let session = signed_in["session"].as_str().unwrap();
        assert_eq!(sign_in().await.0, StatusCode::CREATED);
        assert!(app.app.is_signed_in(session).await, "{group}");
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_is_known_by_the_subject_and_not_by_the_address() {
    let app = OidcApp::start().await;
    assert_eq!(app.sign_in_with(|_| ()).await.0, StatusCode::CREATED);
    let renamed = app.sign_in_with(|claims| claims["email"] = json!("new@example.com")).await;
    assert_eq!(renamed.0, StatusCode::CREATED, "{}", renamed.1);
    assert_eq!(renamed.1["person"]["email"], EMAIL, "the address in Backhaul stays");
    // Another person got the address of a person who left.
    let other = app.sign_in_with(|claims| claims["sub"] = json!("u-2")).await;
    assert_refused(other, "another subject");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_lost_the_groups_is_disabled() {
    let app = OidcApp::start().await;
    let (_, signed_in) = app.sign_in_with(|_| ()).await;
    let session = signed_in["session"].as_str().unwrap();
    let without_group = async |subject: &str| {
        app.sign_in_with(|claims| {
            (claims["groups"], claims["sub"]) = (json!([]), json!(subject));
        })
        .await
        .0
    };
    assert_eq!(without_group("u-2").await, StatusCode::FORBIDDEN);
    assert!(app.app.is_signed_in(session).await, "another subject disables nobody");
    assert_eq!(without_group("u-1").await, StatusCode::FORBIDDEN);
    assert!(!app.app.is_signed_in(session).await);
    assert_eq!(app.person().await["state"], "disabled");
    let audited = app.app.audited().await;
    assert!(audited.contains(&("person.disabled".to_owned(), "oidc".to_owned())), "{audited:?}");
    app.stop().await;
}
