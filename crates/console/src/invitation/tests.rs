use super::*;

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
    let page = InvitationPage { page, token, invitation, expires, code: None, form };
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
    assert!(over(ApiError::Unavailable { service: Service::Auth }).is_err());
}
