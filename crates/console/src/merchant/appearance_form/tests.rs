use domain::{
    json::{Document, object},
    merchant::{Settings, SettingsChange, guard::Guard},
    warehouse::Warehouses,
};

use pages::form::Field;

use super::*;
use crate::{
    changes,
    merchant::{color_fields::ColorField, policy_form::Policy},
};

fn policy() -> Policy {
    serde_json::from_value(json!({ "reasons": [
        { "code": "TOO_SMALL", "label": "Too small" }, { "code": "OTHER", "label": "Another reason" },
    ] }))
    .unwrap()
}

fn appearance() -> Appearance {
    serde_json::from_value(json!({
        "name": "Acme", "logo_url": "https://cdn.acme.example/logo.svg",
        "colors": { "primary": "#0b6e4f", "text_on_primary": "#ffffff", "background": "#fffdf7",
            "text": "#111111" },
        "languages": ["de", "en"], "reason_labels": { "TOO_SMALL": { "de": "Zu klein" } },
        "policy_url": "https://acme.example/returns", "contact_url": null,
        "contact_email": "help@acme.example", "image_hosts": ["cdn.acme.example"],
        "host_names": ["returns.acme.example", "retoure.acme.example"],
        "lookup_keys": ["zip_code"], "withdrawal": true,
    }))
    .unwrap()
}

fn fields(pairs: &[(&str, &str)]) -> Fields {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_form_sends_what_it_shows() {
    let body = AppearanceForm::of(&appearance(), &policy().reasons).body();
    let sent: Appearance = serde_json::from_value(body["appearance"].clone()).unwrap();
    assert_eq!(sent, appearance());
}

#[test]
fn auth_accepts_the_request() {
    let body = AppearanceForm::of(&appearance(), &policy().reasons).body();
    let read = object(|document| SettingsChange::read(document, &Guard::default()));
    let change = Document::from(body).read(read).unwrap();
    let mut settings = Settings::new("Acme");
    change.apply(&mut settings, &Warehouses::new()).unwrap();
    let stored = serde_json::to_value(&settings.appearance).unwrap();
    assert_eq!(serde_json::from_value::<Appearance>(stored).unwrap(), appearance());
}

#[test]
fn the_facts_of_a_form_that_was_sent_are_those_that_it_shows() {
    let stored = AppearanceForm::of(&appearance(), &policy().reasons);
    let sent =
        fields(&[("name", "Acme Ltd"), ("label_1_code", "TOO_SMALL"), ("label_1_de", "Klein")]);
    let sent = AppearanceForm::read(&sent, &policy().reasons);
    let changes = changes::between(stored.facts(), sent.facts());
    let change = |name: &str| changes.iter().find(|change| change.name == name).unwrap();
    let name = change("Name that shoppers see");
    assert_eq!((name.stored.as_str(), name.typed.as_str()), ("Acme", "Acme Ltd"));
    let labels = change("Labels of return reasons");
    assert_eq!(labels.stored, "TOO_SMALL (de): Zu klein");
    assert_eq!(change("Withdrawal").typed, "no");
    assert!(changes::between(stored.facts(), stored.facts()).is_empty());
}

#[test]
fn the_default_language_comes_first() {
    let mut form = AppearanceForm::read(
        &fields(&[("default_language", "fr"), ("language_en", "true"), ("language_fr", "true")]),
        &[],
    );
    assert_eq!(form.body()["appearance"]["languages"], json!(["fr", "en"]));
}

#[test]
fn labels_stay_with_their_reason_when_the_reasons_change() {
    // The form was opened when OTHER was the first reason.
    let sent = fields(&[("label_1_code", "OTHER"), ("label_1_de", "Anderer Grund")]);
    let mut form = AppearanceForm::read(&sent, &policy().reasons);
    let labels = form.body()["appearance"]["reason_labels"].clone();
    assert_eq!(labels, json!({ "OTHER": { "de": "Anderer Grund" } }));
}

#[test]
fn errors_stand_beside_their_fields_and_typed_text_stays() {
    let error = |field: &str| json!({ "field": field, "code": "invalid", "detail": "is wrong" });
    let body: ErrorBody = serde_json::from_value(json!({ "message": "fields are not valid",
        "errors": [
            error("$.appearance.logo_url"), error("$.appearance.colors.text"),
            error("$.appearance.host_names[1]"), error("$.appearance.lookup_keys"),
            error("$.appearance.reason_labels.TOO_SMALL.de"),
        ] }))
    .unwrap();
    let sent = fields(&[
        ("logo_url", "ftp://x"),
        ("text", "#777"),
        ("label_1_code", "TOO_SMALL"),
        ("label_1_de", "Zu klein"),
    ]);
    let mut form = AppearanceForm::read(&sent, &policy().reasons);
    form.reject(&body);
    let wrong = Some("Is wrong.".to_owned());
    let logo = form.inputs.field("logo_url");
    assert_eq!(logo, Field { value: "ftp://x".to_owned(), error: wrong.clone() });
    let text = form.colors.0.iter().find(|color| color.key == "text").unwrap();
    assert_eq!(text.field, Field { value: "#777".to_owned(), error: wrong.clone() });
    assert_eq!((&form.inputs.field("host_names").error, &form.lookup_keys_error), (&wrong, &wrong));
    let label = &form.labels.rows[0].fields[1];
    assert_eq!((label.value.as_str(), &label.error), ("Zu klein", &wrong));
    assert_eq!(form.labels.error, None);
}

#[test]
fn an_error_of_all_labels_is_shown_above_the_table() {
    let body: ErrorBody = serde_json::from_value(json!({ "message": "1 field is not valid",
        "errors": [{ "field": "$.appearance.reason_labels", "code": "invalid", "detail": "no" }] }))
    .unwrap();
    let mut form = AppearanceForm::of(&appearance(), &policy().reasons);
    form.reject(&body);
    assert_eq!(form.labels.error.as_deref(), Some("No."));
}

#[test]
fn a_preview_shows_the_errors_that_saving_would_have() {
    let sent = fields(&[("primary", "green"), ("background", "#fff"), ("text", "#777")]);
    let mut form = AppearanceForm::read(&sent, &[]);
    form.colors.check();
    let errors: Vec<_> = form.colors.0.iter().map(|color| color.field.error.as_deref()).collect();
    assert_eq!(errors[0], Some("Must be a colour with 3 or 6 hexadecimal digits, like #0b6e4f."));
    assert!(errors[3].unwrap().starts_with("#777777 has a contrast of 4.47:1 to background"));
    assert_eq!((errors[1], errors[2]), (None, None));
    // The style sheet gets only valid colours.
    let url = form.colors.preview_url("acme");
    assert_eq!(
        url,
        "/merchants/acme/appearance/preview.css?primary=%231f2937&text_on_primary=%23ffffff\
         &background=%23ffffff&text=%23777777"
    );
}

#[test]
fn a_color_picker_has_six_digits() {
    let values = ["#0a5", "", "green"].map(|value| {
        ColorField { key: "", label: "", hint: "", field: Field::new(value) }.picker_value()
    });
    assert_eq!(values, ["#00aa55", "#000000", "#000000"]);
}
