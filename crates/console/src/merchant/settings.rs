//! The settings of a merchant: a form for operators, facts for others.

use actix_web::{get, http::StatusCode, post, web};
use askama::Template;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
    text::{count, money},
};
use reqwest::Method;
use serde_json::Value;

use super::{
    Frame, Merchant, Settings, Tab, page_of,
    settings_form::SettingsForm,
    version::{Version, is_outdated},
};
use crate::{
    Notice, Page, PageResult, Posted, SignedIn,
    changes::{self, Change},
    error::sentence,
    html, html_with, rejected,
};

#[derive(Template)]
#[template(path = "merchant_settings.html")]
struct SettingsPage {
    page: Page,
    merchant: Frame,
    form: SettingsForm,
    facts: Vec<(&'static str, String)>,
    version: Version,
    /// The values that differ, if another person changed the merchant in the meantime.
    changes: Vec<Change>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_settings).service(change_settings);
}

#[get("/merchants/{merchant}")]
async fn show_settings(signed_in: SignedIn, merchant: web::Path<String>) -> PageResult {
    let found = Merchant::load(&signed_in, signed_in.merchant(&merchant)?).await?;
    html(&settings_page(&signed_in, &found, None))
}

/// The page; `form` is a rejected form, if there is one.
fn settings_page(
    signed_in: &SignedIn,
    merchant: &Merchant,
    form: Option<SettingsForm>,
) -> SettingsPage {
    SettingsPage {
        page: page_of(signed_in, merchant),
        merchant: Frame::new(&signed_in.person, merchant, Tab::Settings),
        form: form.unwrap_or_else(|| SettingsForm::of(&merchant.settings)),
        facts: facts(&merchant.settings),
        version: Version::of(merchant),
        changes: Vec::new(),
    }
}

#[post("/merchants/{merchant}")]
async fn change_settings(posted: Posted<Fields>, merchant: web::Path<String>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let id = signed_in.merchant(&merchant)?;
    let version = Version::read(&form);
    let mut form = SettingsForm::read(&form);
    let body = form.body();
    let api = version.api(&signed_in);
    let path = path!("v1", "merchants", id);
    let changed: Result<Value, _> =
        api.send_json(Service::Auth, Method::PATCH, None, &path, &body).await;
    match changed {
        Ok(_) => {
            let url = format!("/{}", path!("merchants", id));
            return Ok(Notice::SettingsSaved.redirect(&url));
        }
        Err(error) if is_outdated(&error) => {
            form.inputs.message = Some(changes::message("merchant"));
            let found = Merchant::load(&signed_in, id).await?;
            // A form with an invalid field cannot be compared.
            let typed = serde_json::from_value::<Settings>(body).ok();
            let compare = |typed| changes::between(facts(&found.settings), facts(&typed));
            let changes = typed.map(compare).unwrap_or_default();
            let shown = settings_page(&signed_in, &found, Some(form));
            return html_with(StatusCode::CONFLICT, &SettingsPage { changes, ..shown });
        }
        Err(ApiError::Invalid(body)) => form.reject(&body),
        Err(ApiError::Conflict(body)) => form.inputs.message = Some(sentence(&body.message)),
        Err(error) => return Err(error.into()),
    }
    let found = Merchant::load(&signed_in, id).await?;
    let shown = settings_page(&signed_in, &found, Some(form));
    rejected(&SettingsPage { version, ..shown })
}

/// The settings in words, for people who cannot change them.
fn facts(settings: &Settings) -> Vec<(&'static str, String)> {
    let contact = settings.support_contact.as_ref().map(|contact| contact.email.clone());
    let tags = Some(settings.final_sale_tags.join(", ")).filter(|tags| !tags.is_empty());
    let mut facts = vec![
        ("Name", settings.name.clone()),
        ("Time zone", settings.time_zone.clone()),
        ("Currency", settings.currency.clone()),
        ("Contact for undeliverable messages", or_not_set(contact)),
        ("Base URL of endpoints", or_not_set(settings.base_url.clone())),
        ("Return window", count(settings.return_window_days, "day", "days")),
        ("Tags that forbid a return", or_not_set(tags)),
    ];
    facts.extend(policy_facts(settings));
    facts.push(("Concept of exchange items", or_not_set(settings.concept.clone())));
    let switches = [
        (
            "Receiving",
            settings.managed_receiving,
            ["Backhaul receives returned units", "the merchant receives returned units"],
        ),
        (
            "Orders whose sums do not add up",
            settings.strict_amounts,
            ["rejected", "stored with a warning"],
        ),
        ("New refunds dated in the past", settings.strict_refund_dates, ["rejected", "stored"]),
    ];
    facts.extend(
        switches.map(|(name, is_on, [on, off])| (name, if is_on { on } else { off }.to_owned())),
    );
    facts
}

/// The return policy in words.
fn policy_facts(settings: &Settings) -> [(&'static str, String); 8] {
    let policy = &settings.returns;
    let currency = &settings.currency;
    let reasons: Vec<_> = policy.reasons.iter().map(|reason| reason.label.as_str()).collect();
    let method = |it: &super::policy_form::Method| {
        format!("{} for {}", it.method, money(it.shipping_cost_cents, currency))
    };
    let methods: Vec<_> = policy.methods.iter().map(method).collect();
    let weight = settings.express_max_weight.map(|weight| weight.to_string());
    let parcel = settings.parcel_max_weight.map(|weight| weight.to_string());
    let days = |days: Option<u32>| days.map(|days| count(days, "day", "days"));
    let send = days(policy.send_within_days);
    let exchange = days(policy.exchange_deadline_days);
    let exchange_shipping =
        if policy.free_exchange_shipping { "free" } else { "at the cost of the method" };
    let card = policy.gift_card.as_ref().map(|card| {
        let bonus = money(card.bonus_credit_amount_cents, currency);
        format!("{} with a bonus of {bonus}", card.sku)
    });
    [
        ("Reasons", reasons.join(", ")),
        ("Methods", methods.join(", ")),
        ("Time to send a return", or_not_set(send)),
        ("Time to return an exchanged unit", or_not_set(exchange)),
        ("Heaviest unit for express-returns", or_not_set(weight)),
        ("Heaviest parcel", or_not_set(parcel)),
        ("Shipping if every unit is exchanged", exchange_shipping.to_owned()),
        ("Gift card", card.unwrap_or_else(|| "not offered".to_owned())),
    ]
}

fn or_not_set(text: Option<String>) -> String {
    text.unwrap_or_else(|| "not set".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_facts_in_words() {
        let settings: Settings = serde_json::from_value(json!({
            "name": "Acme", "time_zone": "UTC", "currency": "EUR", "return_window_days": 30,
            "returns": {
                "methods": [{ "method": "mail-back", "shipping_cost_cents": 595 }],
                "reasons": [{ "code": "A", "label": "Too small" }], "send_within_days": 21,
            },
        }))
        .unwrap();
        let facts = facts(&settings);
        for fact in [
            ("Methods", "mail-back for 5.95 EUR"),
            ("Return window", "30 days"),
            ("Time to send a return", "21 days"),
            ("Base URL of endpoints", "not set"),
            ("Gift card", "not offered"),
        ] {
            assert!(facts.contains(&(fact.0, fact.1.to_owned())), "{fact:?} in {facts:?}");
        }
    }

    #[test]
    fn the_form_sends_what_it_shows() {
        let settings: Settings = serde_json::from_value(json!({
            "name": "Acme", "time_zone": "UTC", "currency": "EUR", "return_window_days": 30,
            "final_sale_tags": ["a", "b"], "express_max_weight": 2.5, "parcel_max_weight": 20.0,
            "returns": { "send_within_days": 21, "exchange_deadline_days": 60 },
            "support_contact": { "email": "a@acme.example", "name": null, "phone": null },
        }))
        .unwrap();
        let body = SettingsForm::of(&settings).body();
        assert_eq!(serde_json::from_value::<Settings>(body).unwrap(), settings);
    }

    #[test]
    fn a_text_that_is_no_number_is_reported_with_the_other_faults() {
        let fields = [("return_window_days", "soon"), ("express_max_weight", "NaN")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut form = SettingsForm::read(&fields.into_iter().collect());
        let body = form.body();
        assert_eq!(
            (&body["return_window_days"], &body["express_max_weight"]),
            (&json!("soon"), &json!("NaN"))
        );
        let text = r#"{"message": "2 fields are not valid", "errors": [
            {"field": "$.time_zone", "code": "invalid", "detail": "is not known"},
            {"field": "$.return_window_days", "code": "invalid_type"}]}"#;
        form.reject(&serde_json::from_str(text).unwrap());
        assert_eq!(form.inputs.error("time_zone"), Some("Is not known."));
        let days = form.inputs.error("return_window_days");
        assert_eq!(days, Some("Must be a whole number of days."));
        assert!(form.inputs.error("express_max_weight").is_some());
    }
}
