use super::*;

fn form(password: &str, again: &str, code: &str) -> AcceptForm {
    let [token, password, password_again, code, totp_setup] =
        ["t", password, again, code, "s"].map(str::to_owned);
    AcceptForm { token, password, password_again, code, totp_setup }
}

#[test]
fn both_passwords_must_be_equal_and_operators_need_a_code() {
    assert!(form("long enough", "long enough", "").check(false).is_ok());
    let errors = form("long enough", "other", "").check(true).err().unwrap();
    assert!(errors.password.is_valid());
    assert!(!errors.password_again.is_valid());
    assert!(!errors.code.is_valid());
}

#[test]
fn all_errors_are_reported_at_once() {
    let errors = form("short", "other", "12 34").check(false).err().unwrap();
    for field in [&errors.password, &errors.password_again, &errors.code] {
        assert!(!field.is_valid());
    }
    assert!(form("long enough", "long enough", "123 456").check(true).is_ok());
}

#[test]
fn errors_of_auth_are_beside_their_fields() {
    let text = r#"{"message": "m", "errors": [
        {"field": "$.password", "code": "invalid", "detail": "is too common"}]}"#;
    let errors = AcceptErrors::of(&serde_json::from_str(text).unwrap());
    assert_eq!(errors.password.error.as_deref(), Some("Is too common."));
    assert!(errors.code.is_valid());
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
    let (page, token, form) = (Bare::new(), "t".to_owned(), AcceptErrors::default());
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
