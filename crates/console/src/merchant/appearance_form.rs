//! The appearance of a portal as a form.

use std::collections::BTreeMap;

use pages::{api::ErrorBody, form::Fields};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    color_fields::ColorFields,
    label_table::{LANGUAGES, LabelTable},
    policy_form::Reason,
};
use crate::{
    error::{error_below, sentence},
    form::{Form, Input, Kind},
};

/// The appearance as auth describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Appearance {
    pub(super) name: Option<String>,
    pub(super) logo_url: Option<String>,
    pub(super) colors: BTreeMap<String, String>,
    pub(super) languages: Vec<String>,
    pub(super) reason_labels: BTreeMap<String, BTreeMap<String, String>>,
    pub(super) policy_url: Option<String>,
    pub(super) contact_url: Option<String>,
    pub(super) contact_email: Option<String>,
    pub(super) image_hosts: Vec<String>,
    pub(super) host_names: Vec<String>,
    pub(super) lookup_keys: Vec<String>,
    pub(super) withdrawal: bool,
}

/// The look-up keys with their labels.
const LOOKUP_KEYS: [(&str, &str); 2] =
    [("email", "E-mail address of the order"), ("zip_code", "Zip code of the delivery address")];

/// A check box of a list.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) label: &'static str,
    pub(super) is_chosen: bool,
}

/// The inputs of the form, except colours, lists and labels.
const INPUTS: &[Input] = &[
    Input::new("name", "Name that shoppers see", "appearance.name", Kind::Own),
    Input::text("logo_url", "URL of the logo")
        .at("appearance.logo_url")
        .kind("url")
        .hint("An https URL. Empty: no logo."),
    Input::new("default_language", "Default language", "appearance.languages", Kind::Own),
    Input::text("policy_url", "Return policy")
        .at("appearance.policy_url")
        .kind("url")
        .hint("The page with your return policy. Can be empty."),
    Input::text("contact_url", "Contact page")
        .at("appearance.contact_url")
        .kind("url")
        .hint("Can be empty."),
    Input::text("contact_email", "E-mail address for shoppers")
        .at("appearance.contact_email")
        .kind("email")
        .hint("Can be empty."),
    Input::check("withdrawal", "Withdrawal").at("appearance.withdrawal"),
    Input::new("host_names", "Host names of the portal", "appearance.host_names", Kind::Lines).hint(
        "One a line, like returns.acme.example. Each must lead to the portal, and no other merchant can use it.",
    ),
    Input::new("image_hosts", "Hosts of product pictures", "appearance.image_hosts", Kind::Lines)
        .hint("One a line, like cdn.acme.example. The portal shows no pictures of other hosts."),
];

#[derive(Debug, Clone)]
pub(super) struct AppearanceForm {
    pub(super) inputs: Form,
    pub(super) colors: ColorFields,
    pub(super) languages: Vec<Choice>,
    pub(super) labels: LabelTable,
    pub(super) lookup_keys: Vec<Choice>,
    pub(super) lookup_keys_error: Option<String>,
}

impl AppearanceForm {
    /// The form with the present appearance.
    pub(super) fn of(appearance: &Appearance, reasons: &[Reason]) -> Self {
        let color = |key: &str| appearance.colors.get(key).cloned().unwrap_or_default();
        let has = |list: &[String], value: &str| list.iter().any(|entry| entry == value);
        let inputs = Form::of(INPUTS, &json!({ "appearance": appearance }));
        let language = appearance.languages.first().map_or("en", String::as_str);
        Self {
            inputs: inputs.with("default_language", language),
            colors: ColorFields::new(color),
            languages: choices(&LANGUAGES, |language| has(&appearance.languages, language)),
            labels: LabelTable::of(&appearance.reason_labels, reasons),
            lookup_keys: choices(&LOOKUP_KEYS, |key| has(&appearance.lookup_keys, key)),
            lookup_keys_error: None,
        }
    }

    /// The form as it was sent.
    pub(super) fn read(fields: &Fields, reasons: &[Reason]) -> Self {
        let is_chosen = |list: &str, value: &str| fields.is_checked(&format!("{list}_{value}"));
        Self {
            inputs: Form::read(INPUTS, fields),
            colors: ColorFields::new(|key| fields.text(key).to_owned()),
            languages: choices(&LANGUAGES, |language| is_chosen("language", language)),
            labels: LabelTable::read(fields, reasons),
            lookup_keys: choices(&LOOKUP_KEYS, |key| is_chosen("lookup", key)),
            lookup_keys_error: None,
        }
    }

    /// The request. An empty field restores its default.
    pub(super) fn body(&mut self) -> Value {
        let mut body = self.inputs.body();
        let default_language = self.inputs.value("default_language");
        let others = chosen(&self.languages).filter(|language| *language != default_language);
        let languages: Vec<_> = [default_language].into_iter().chain(others).collect();
        let lists = json!({
            "colors": self.colors.body(),
            "languages": languages,
            "reason_labels": self.labels.body(),
            "lookup_keys": chosen(&self.lookup_keys).collect::<Vec<_>>(),
        });
        if let (Some(Value::Object(appearance)), Value::Object(lists)) =
            (body.get_mut("appearance"), lists)
        {
            appearance.extend(lists);
        }
        body.into()
    }

    /// The values with their names.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let list = |choices: &[Choice]| {
            let chosen = choices.iter().filter(|choice| choice.is_chosen);
            chosen.map(|choice| choice.label).collect::<Vec<_>>().join(", ")
        };
        let mut facts = self.inputs.facts();
        facts.extend(self.colors.0.iter().map(|color| (color.label, color.field.value.clone())));
        facts.extend([
            ("Languages", list(&self.languages)),
            ("Labels of return reasons", self.labels.text()),
            ("Facts to find an order", list(&self.lookup_keys)),
        ]);
        facts
    }

    /// Puts the errors of auth beside the fields.
    pub(super) fn reject(&mut self, body: &ErrorBody) {
        self.inputs.reject_all(body);
        self.colors.reject(body);
        self.lookup_keys_error = error_below(body, "$.appearance.lookup_keys");
        self.labels.reject(body);
    }

    /// Puts the error of a host name that another merchant has beside the host names.
    pub(super) fn reject_host_names(&mut self, body: &ErrorBody) {
        self.inputs.reject("host_names", sentence(&body.message));
        self.inputs.message = Some("Some fields are not valid. Nothing was changed.".to_owned());
    }

    /// The name in the preview.
    pub(super) fn shown_name<'a>(&'a self, merchant: &'a str) -> &'a str {
        Some(self.inputs.value("name")).filter(|name| !name.is_empty()).unwrap_or(merchant)
    }
}

fn choices(
    values: &[(&'static str, &'static str)],
    is_chosen: impl Fn(&str) -> bool,
) -> Vec<Choice> {
    let choice = |&(value, label)| Choice { value, label, is_chosen: is_chosen(value) };
    values.iter().map(choice).collect()
}

fn chosen(choices: &[Choice]) -> impl Iterator<Item = &str> {
    choices.iter().filter(|choice| choice.is_chosen).map(|choice| choice.value)
}

#[cfg(test)]
mod tests;
