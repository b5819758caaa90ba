use actix_web::{HttpResponse, http::StatusCode};

use super::*;
use crate::fixtures;

#[test]
fn errors_of_auth_are_beside_their_fields() {
    let text = r#"{"message": "m", "errors": [
        {"field": "$.password", "code": "invalid", "detail": "is too common"},
        {"field": "$.password_again", "code": "invalid", "detail": "must be the same password"},
        {"field": "$.totp_code", "code": "missing_field"}]}"#;
    let errors = AcceptErrors::of(&serde_json::from_str(text).unwrap());
    assert_eq!(errors.password.error.as_deref(), Some("Is too common."));
    assert_eq!(errors.password_again.error.as_deref(), Some("Must be the same password."));
    assert_eq!(errors.code.error.as_deref(), Some("Is required."));
    let text = r#"{"message": "m", "errors": [{"field": "$.totp_setup", "code": "invalid"}]}"#;
    let errors = AcceptErrors::of(&serde_json::from_str(text).unwrap());
    assert!(errors.code.error.unwrap().contains("Scan it again") && errors.password.is_valid());
}

#[test]
fn the_form_sends_the_secret_of_its_own_qr_code_back() {
    let invitation: Invitation = serde_json::from_value(json!({
        "email": "ada@acme.example", "name": "Ada", "role": "operator",
        "expires_at": "2026-11-20T08:00:00Z",
        "totp": { "required": true, "secret": "GEZDGNBV", "uri": "otpauth://x", "setup": "k.s" },
    }))
    .unwrap();
    let expires = Moment::new(invitation.expires_at, invitation.expires_at);
    let page = Bare::new();
    let token = "t".to_owned();
    let form = AcceptErrors::default();
    let key = FormKey::random();
    let page = InvitationPage { page, token, invitation, expires, code: None, form, key };
    let text = page.render().unwrap();
    assert!(text.contains(r#"<input type="hidden" name="totp_setup" value="k.s">"#), "{text}");
    assert!(text.contains("GEZD GNBV"), "{text}");
}

#[test]
fn a_link_without_a_use_says_why() {
    let text = |error| over(error).unwrap().render().unwrap();
    assert!(text(ApiError::NotFound).contains("This link does not work any more"));
    let off = text(ApiError::Denied(ErrorBody::default()));
    assert!(off.contains("You do not need this link"), "{off}");
    let accepted = text(ApiError::Conflict(ErrorBody::default()));
    assert!(accepted.contains("The invitation was already accepted"), "{accepted}");
    assert!(over(ApiError::Unavailable { service: Service::Auth }).is_err());
}

/// An auth that names a recovery code after the idempotency key.
fn auth(app: &mut web::ServiceConfig) {
    let respond = async |request: HttpRequest| {
        let person = json!({
            "email": "ada@acme.example", "name": "Ada", "role": "support", "merchant": null,
        });
        HttpResponse::Created().json(json!({
            "session": "s", "person": person, "recovery_codes": [fixtures::key_of(&request)],
        }))
    };
    app.route("/v1/invitations/accept", web::post().to(respond));
}

#[actix_web::test]
async fn a_form_that_accepts_an_invitation_is_one_request() {
    let key = "7d9f5a35-6f4e-4c3b-9a55-2f3f0f5b9c11";
    let fields =
        [("key", key), ("token", "t"), ("password", "battery"), ("password_again", "battery")];
    let app = fixtures::app_with_services(auth);
    let (status, _, page) = fixtures::post(app, routes, "/invitation", &fields).await;
    assert!(status == StatusCode::OK && page.contains(key), "{page}");
    let app = fixtures::app_with_services(auth);
    let (status, ..) = fixtures::post(app, routes, "/invitation", &fields[1..]).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}
