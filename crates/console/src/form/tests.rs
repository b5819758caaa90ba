use super::*;

const INPUTS: &[Input] = &[
    Input::text("name", "Name").required(),
    Input::new("currency", "Currency", "currency", Kind::Capitals),
    Input::new("days", "Days", "days", Kind::Whole("Must be whole.")).required(),
    Input::new("weight", "Weight", "weight", Kind::Number("Must be a number.")),
    Input::new("tags", "Tags", "tags", Kind::Lines),
    Input::new("strict", "Strict", "strict", Kind::Check),
    Input::text("email", "E-mail address").at("contact.email"),
    Input::new("password", "Password", "login.password", Kind::Secret).of("basic"),
];

fn stored() -> Value {
    json!({
        "name": "Acme", "currency": "EUR", "days": 30, "weight": 2.5, "tags": ["a", "b"],
        "strict": true, "contact": { "email": null }, "login": { "password": "********" },
    })
}

fn read(pairs: &[(&str, &str)]) -> Form {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Form::read(INPUTS, &pairs.collect())
}

#[test]
fn a_form_sends_what_it_shows() {
    let mut form = Form::of(INPUTS, &stored());
    assert_eq!((form.value("days"), form.value("weight")), ("30", "2.5"));
    assert_eq!(form.value("password"), "", "secrets are not shown");
    let mut expected = stored();
    expected.as_object_mut().unwrap().remove("login");
    let mut body = form.body();
    assert_eq!(Value::from(body.clone()), expected);
    null_if_empty(body.get_mut("contact"));
    assert_eq!(body["contact"], Value::Null);
}

#[test]
fn only_the_inputs_of_the_choice_are_sent() {
    let mut form = read(&[("name", "A"), ("days", "1"), ("password", "p")]);
    assert_eq!(form.body_of("basic")["login"], json!({ "password": "p" }));
    assert_eq!(form.body_of("none").get("login"), None);
}

#[test]
fn a_text_that_is_no_number_is_reported_with_the_other_faults() {
    let mut form = read(&[("days", "many"), ("weight", "2,5"), ("currency", "eur"), ("name", "A")]);
    assert_eq!(form.value("currency"), "EUR");
    let body = form.body();
    assert_eq!((&body["days"], &body["weight"]), (&json!("many"), &json!(2.5)));
    let text = r#"{"message": "2 fields are not valid", "errors": [
        {"field": "$.name", "code": "invalid", "detail": "is too short"},
        {"field": "$.days", "code": "invalid_type"}]}"#;
    form.reject_all(&serde_json::from_str(text).unwrap());
    assert_eq!(form.error("days"), Some("Must be whole."));
    assert_eq!((form.error("weight"), form.error("name")), (None, Some("Is too short.")));
    assert!(form.show(&["days"]).contains(r#"aria-invalid="true""#));
}

#[test]
fn errors_of_a_service_are_beside_their_inputs() {
    let mut form = read(&[]);
    let text = r#"{"message": "the request is invalid", "errors": [
        {"field": "$.contact.email", "code": "missing_field"},
        {"field": "$.tags[1]", "code": "invalid", "detail": "is too long"}]}"#;
    form.reject_all(&serde_json::from_str(text).unwrap());
    assert_eq!(form.error("email"), Some("Is required."));
    assert_eq!(form.error("tags"), Some("Is too long."));
    assert_eq!((form.error("name"), form.is_valid()), (None, false));
    assert_eq!(form.message.as_deref(), Some("The request is invalid."));
}
