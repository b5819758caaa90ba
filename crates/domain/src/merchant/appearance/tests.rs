use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::{Appearance, Color, Colors, Language, LookupKey};
use crate::json::{Document, ValidationError, object};
use crate::merchant::guard::{Guard, Transport};
use crate::merchant::{Settings, SettingsChange, read_new_merchant};
use crate::warehouse::Warehouses;

/// Changes the appearance as `PATCH /v1/merchants/{merchant}` does.
fn patch(settings: &mut Settings, appearance: &Value) -> Result<(), ValidationError> {
    patch_settings(settings, json!({ "appearance": appearance }))
}

fn patch_settings(settings: &mut Settings, change: Value) -> Result<(), ValidationError> {
    let read = object(|document| SettingsChange::read(document, &Guard::default()));
    Document::from(change).read(read)?.apply(settings, &Warehouses::new())
}

#[track_caller]
fn check_rejected(appearance: &Value, errors: &Expect) {
    let invalid = patch(&mut Settings::new("Acme"), appearance).unwrap_err();
    let lines: Vec<_> = invalid.errors.iter().map(ToString::to_string).collect();
    errors.assert_eq(&lines.join("\n"));
}

fn color(text: &str) -> Color {
    text.parse().unwrap()
}

#[test]
fn contrast_equals_the_values_of_wcag() {
    for (text, background, expected) in [
        ("#000", "#fff", 21.0),
        ("#fff", "#fff", 1.0),
        ("#767676", "#fff", 4.54),
        ("#777", "#fff", 4.48),
        ("#f00", "#fff", 4.00),
        ("#00f", "#fff", 8.59),
        ("#0f0", "#fff", 1.37),
        ("#0000ff", "#ffff00", 8.00),
        ("#00aa55", "#ffffff", 3.05),
    ] {
        let contrast = color(text).contrast(color(background));
        assert!((contrast - expected).abs() < 0.005, "{text} on {background}: {contrast}");
        let reversed = color(background).contrast(color(text));
        assert!((contrast - reversed).abs() < f64::EPSILON);
    }
}

#[test]
fn a_color_has_three_or_six_hexadecimal_digits() {
    for (text, shown) in [("#0a5", "#00aa55"), ("#0B6e4F", "#0b6e4f"), ("#fff", "#ffffff")] {
        assert_eq!(color(text).to_string(), shown);
    }
    for bad in ["", "#", "0a5", "#0a", "#0a5f", "#0b6e4ff", "#ggg", "red", "#ää5", "#+12", " #fff"]
    {
        assert!(bad.parse::<Color>().is_err(), "{bad}");
    }
}

#[test]
fn the_default_colors_have_enough_contrast() {
    assert_eq!(Colors::default().low_contrasts().count(), 0);
}

#[test]
fn text_that_is_hard_to_read_is_rejected() {
    check_rejected(
        &json!({ "colors": { "primary": "#0a5", "text": "#777" } }),
        &expect![[r#"
            $.appearance.colors.text_on_primary: invalid (#ffffff has a contrast of 3.05:1 to primary #00aa55: at least 4.5:1 is needed)
            $.appearance.colors.text: invalid (#777777 has a contrast of 4.47:1 to background #ffffff: at least 4.5:1 is needed)"#]],
    );
    let mut settings = Settings::new("Acme");
    patch(&mut settings, &json!({ "colors": { "text": "#767676" } })).unwrap();
    // The stored text color counts, although the change does not name it.
    assert!(patch(&mut settings, &json!({ "colors": { "background": "#eee" } })).is_err());
}

#[test]
fn a_new_merchant_with_unreadable_text_is_rejected() {
    let body = json!({ "identifier": "acme", "name": "Acme",
        "appearance": { "colors": { "text": "#777" } } });
    let read = object(|document| read_new_merchant(document, &Guard::default()));
    let invalid = Document::from(body).read(read).unwrap_err();
    let fields: Vec<_> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["$.appearance.colors.text"]);
}

#[test]
fn every_field_is_read() {
    let mut settings = Settings::new("Acme Outdoor Inc.");
    let given = json!({
        "name": "Acme", "logo_url": "https://cdn.acme.example/logo.svg",
        "colors": { "primary": "#0b6e4f", "text_on_primary": "#ffffff", "background": "#fffdf7",
            "text": "#111111" },
        "languages": ["de", "en"],
        "reason_labels": { "TOO_SMALL": { "de": "Zu klein", "en": "Too small" } },
        "policy_url": "https://acme.example/returns#how", "contact_url": "https://acme.example/contact",
        "contact_email": "help@acme.example", "image_hosts": ["cdn.acme.example", "localhost:8443"],
        "host_names": ["returns.acme.example"], "lookup_keys": ["zip_code"], "withdrawal": true,
    });
    patch(&mut settings, &given).unwrap();
    assert_eq!(serde_json::to_value(&settings.appearance).unwrap(), given);
    assert_eq!(serde_json::from_value::<Appearance>(given).unwrap(), settings.appearance);
    assert_eq!(settings.portal_name(), "Acme");
}

#[test]
fn an_absent_field_stays_and_null_restores_the_default() {
    let mut settings = Settings::new("Acme");
    let given = json!({ "name": "Shop", "languages": ["fr"], "lookup_keys": ["email"],
        "colors": { "primary": "#0b6e4f", "text": "#000" }, "withdrawal": true });
    patch(&mut settings, &given).unwrap();
    patch(&mut settings, &json!({ "colors": { "primary": null }, "languages": null })).unwrap();
    let Appearance { colors, languages, lookup_keys, withdrawal, .. } = settings.appearance.clone();
    assert_eq!((colors.primary, colors.text), (Colors::default().primary, color("#000")));
    assert_eq!(
        (languages, lookup_keys, withdrawal),
        (vec![Language::En], vec![LookupKey::Email], true)
    );
    patch(&mut settings, &json!({ "name": null })).unwrap();
    assert_eq!(settings.portal_name(), "Acme");
    patch(&mut settings, &Value::Null).unwrap();
    assert_eq!(settings.appearance, Appearance::default());
}

#[test]
fn every_invalid_field_is_reported() {
    check_rejected(
        &json!({ "name": "", "logo_url": "javascript://x/%0aalert(1)", "colour": 1,
            "colors": { "primary": "red", "accent": "#fff" }, "languages": ["en", "it", "en"],
            "reason_labels": { "": { "en": "x" }, "TOO_SMALL": { "it": "x" },
                "WRONG_ITEM": { "en": "" } },
            "policy_url": "http://acme.example", "contact_email": "help", "lookup_keys": [],
            "image_hosts": ["cdn.acme.example/x"], "host_names": ["acme", "Returns.acme.example",
            "returns.acme.example"], "withdrawal": "yes" }),
        &expect![[r#"
            $.appearance.colour: invalid (unknown field: known are name, logo_url, colors, languages, reason_labels, policy_url, contact_url, contact_email, image_hosts, host_names, lookup_keys, withdrawal)
            $.appearance.name: invalid (must have 1 to 200 characters)
            $.appearance.logo_url: invalid (must be an http or https URL without credentials or fragment)
            $.appearance.colors.accent: invalid (unknown field: known are primary, text_on_primary, background, text)
            $.appearance.colors.primary: invalid (must be a colour with 3 or 6 hexadecimal digits, like #0b6e4f)
            $.appearance.languages[1]: invalid (must be one of en, de, fr, es)
            $.appearance.languages[2]: invalid (is listed twice)
            $.appearance.reason_labels['']: invalid (the code must have 1 to 100 characters)
            $.appearance.reason_labels.TOO_SMALL.it: invalid (unknown language: known are en, de, fr, es)
            $.appearance.reason_labels.WRONG_ITEM.en: invalid (must have 1 to 100 characters)
            $.appearance.policy_url: invalid (must be an https URL)
            $.appearance.contact_email: invalid (must be an e-mail address)
            $.appearance.image_hosts[0]: invalid (must be a host, like cdn.acme.example, with a port if it needs one)
            $.appearance.host_names[0]: invalid (must be a host name, like returns.acme.example)
            $.appearance.host_names[2]: invalid (is listed twice)
            $.appearance.lookup_keys: invalid (must have 1 to 2 elements)
            $.appearance.withdrawal: invalid_type (expected a boolean, found a string)"#]],
    );
}

#[test]
fn a_host_name_has_a_dot_and_no_port() {
    let accepts =
        |key: &str, host: &str| patch(&mut Settings::new("Acme"), &json!({ key: [host] })).is_ok();
    for (host, is_name, is_host) in [
        ("returns.acme.example", true, true),
        ("xn--bcher-kva.example", true, true),
        ("RETURNS.acme.example", true, true),
        ("localhost", false, true),
        ("10.0.0.1", false, true),
        ("cdn.acme.example:8443", false, true),
        ("cdn.acme.example:0", false, false),
        ("cdn.acme.example:+1", false, false),
        ("cdn.acme.example:", false, false),
        ("cdn.acme.example:70000", false, false),
        ("acme.example.", false, false),
        ("-a.example", false, false),
        ("a..example", false, false),
        ("*.acme.example", false, false),
        ("bücher.example", false, false),
        ("a.example; script-src *", false, false),
        ("https://acme.example", false, false),
        ("[::1]", false, false),
    ] {
        assert_eq!(accepts("host_names", host), is_name, "{host} as a host name");
        assert_eq!(accepts("image_hosts", host), is_host, "{host} as a host of pictures");
    }
}

#[test]
fn http_links_need_a_service_that_allows_http() {
    let body = json!({ "appearance": { "logo_url": "http://localhost:8090/logo.svg" } });
    let guard = Guard { transport: Transport::HttpAllowed, allowed_networks: Vec::new() };
    for (guard, is_accepted) in [(Guard::default(), false), (guard, true)] {
        let read = object(|document| SettingsChange::read(document, &guard));
        assert_eq!(Document::from(&body).read(read).is_ok(), is_accepted);
    }
}

#[test]
fn labels_belong_to_reasons_that_exist() {
    check_rejected(
        &json!({ "reason_labels": { "TOO_BLUE": { "en": "Too blue" } } }),
        &expect![
            "$.appearance.reason_labels: invalid (returns.reasons has no reason with the code TOO_BLUE)"
        ],
    );
    let mut settings = Settings::new("Acme");
    let reasons =
        json!([{ "code": "TOO_BLUE", "label": "Too blue" }, { "code": "OLD", "label": "Old" }]);
    let labels = json!({ "TOO_BLUE": { "de": "Zu blau" }, "OLD": { "de": "Alt" } });
    let both =
        json!({ "returns": { "reasons": reasons }, "appearance": { "reason_labels": labels } });
    patch_settings(&mut settings, both).unwrap();
    // A reason takes its labels with it.
    let reasons = json!([{ "code": "TOO_BLUE", "label": "Too blue" }]);
    patch_settings(&mut settings, json!({ "returns": { "reasons": reasons } })).unwrap();
    let codes: Vec<_> = settings.appearance.reason_labels.keys().collect();
    assert_eq!(codes, ["TOO_BLUE"]);
}

#[test]
fn stored_settings_without_an_appearance_have_the_default_one() {
    let mut stored = serde_json::to_value(Settings::new("Acme")).unwrap();
    stored.as_object_mut().unwrap().remove("appearance");
    let settings: Settings = serde_json::from_value(stored).unwrap();
    assert_eq!(settings, Settings::new("Acme"));
}

#[test]
fn texts_that_pages_show_have_no_control_or_bidirectional_characters() {
    for c in ['\n', '\u{7}', '\u{7f}', '\u{9b}', '\u{200e}', '\u{202e}', '\u{2069}'] {
        let text = format!("Acme{c}");
        let labels = json!({ "TOO_SMALL": { "en": text } });
        let appearance = json!({ "name": text, "reason_labels": labels });
        let invalid = patch(&mut Settings::new("Acme"), &appearance).unwrap_err();
        let fields: Vec<_> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
        let label = "$.appearance.reason_labels.TOO_SMALL.en";
        assert_eq!(fields, ["$.appearance.name", label], "{c:?}");
    }
}

#[test]
fn names_and_labels_of_a_merchant_have_no_such_characters_either() {
    let merchant = json!({
        "identifier": "acme", "name": "A\u{1b}[2J", "returns": { "reasons": [{ "code": "A", "label": "a\n" }] },
        "support_contact": { "email": "a@b.example", "name": "\u{202e}Jo", "phone": "1\u{7}" },
    });
    let fields = |invalid: ValidationError| {
        invalid.errors.iter().map(|error| error.field.to_string()).collect::<Vec<_>>()
    };
    let read = object(|document| read_new_merchant(document, &Guard::default()));
    let invalid = Document::from(merchant).read(read).unwrap_err();
    let label = "$.returns.reasons[0].label";
    let names = ["$.name", label, "$.support_contact.name", "$.support_contact.phone"];
    assert_eq!(fields(invalid), names);
    let invalid = patch_settings(&mut Settings::new("Acme"), json!({ "name": "A\u{202e}B" }));
    assert_eq!(fields(invalid.unwrap_err()), ["$.name"]);
}
