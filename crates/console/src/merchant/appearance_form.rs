//! The appearance of a portal as a form.

use std::collections::BTreeMap;

use pages::{
    api::ErrorBody,
    form::{Field, Fields},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    color_fields::ColorFields,
    label_table::{LANGUAGES, LabelTable},
    policy_form::Reason,
    settings_form::optional,
};
use crate::error::{error_below, sentence};

/// The appearance as auth describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
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
    [("email", "E-mail address of the order"), ("zip_code", "Postcode of the delivery address")];

/// A check box of a list.
#[derive(Debug, Clone)]
pub(super) struct Choice {
    pub(super) value: &'static str,
    pub(super) label: &'static str,
    pub(super) is_chosen: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct AppearanceForm {
    pub(super) name: Field,
    pub(super) logo_url: Field,
    pub(super) colors: ColorFields,
    pub(super) default_language: Field,
    pub(super) languages: Vec<Choice>,
    pub(super) labels: LabelTable,
    pub(super) policy_url: Field,
    pub(super) contact_url: Field,
    pub(super) contact_email: Field,
    /// One host a line.
    pub(super) image_hosts: Field,
    /// One host name a line.
    pub(super) host_names: Field,
    pub(super) lookup_keys: Vec<Choice>,
    pub(super) lookup_keys_error: Option<String>,
    pub(super) withdrawal: bool,
    /// The reason why the whole form was rejected.
    pub(super) message: Option<String>,
}

impl AppearanceForm {
    /// The form with the present appearance.
    pub(super) fn of(appearance: &Appearance, reasons: &[Reason]) -> Self {
        let optional = |text: &Option<String>| Field::new(text.clone().unwrap_or_default());
        let color = |key: &str| appearance.colors.get(key).cloned().unwrap_or_default();
        let has = |list: &[String], value: &str| list.iter().any(|entry| entry == value);
        let default_language = appearance.languages.first().map_or("en", String::as_str);
        Self {
            name: optional(&appearance.name),
            logo_url: optional(&appearance.logo_url),
            colors: ColorFields::new(color),
            default_language: Field::new(default_language),
            languages: choices(&LANGUAGES, |language| has(&appearance.languages, language)),
            labels: LabelTable::of(&appearance.reason_labels, reasons),
            policy_url: optional(&appearance.policy_url),
            contact_url: optional(&appearance.contact_url),
            contact_email: optional(&appearance.contact_email),
            image_hosts: Field::new(appearance.image_hosts.join("\n")),
            host_names: Field::new(appearance.host_names.join("\n")),
            lookup_keys: choices(&LOOKUP_KEYS, |key| has(&appearance.lookup_keys, key)),
            lookup_keys_error: None,
            withdrawal: appearance.withdrawal,
            message: None,
        }
    }

    /// The form as it was sent.
    pub(super) fn read(fields: &Fields, reasons: &[Reason]) -> Self {
        let field = |name| Field::new(fields.text(name));
        let is_chosen = |list: &str, value: &str| fields.is_checked(&format!("{list}_{value}"));
        Self {
            name: field("name"),
            logo_url: field("logo_url"),
            colors: ColorFields::new(|key| fields.text(key).to_owned()),
            default_language: field("default_language"),
            languages: choices(&LANGUAGES, |language| is_chosen("language", language)),
            labels: LabelTable::read(fields, reasons),
            policy_url: field("policy_url"),
            contact_url: field("contact_url"),
            contact_email: field("contact_email"),
            image_hosts: field("image_hosts"),
            host_names: field("host_names"),
            lookup_keys: choices(&LOOKUP_KEYS, |key| is_chosen("lookup", key)),
            lookup_keys_error: None,
            withdrawal: fields.is_checked("withdrawal"),
            message: None,
        }
    }

    /// The request. An empty field restores its default.
    pub(super) fn body(&self) -> Value {
        let default_language = self.default_language.value.as_str();
        let others = chosen(&self.languages).filter(|language| *language != default_language);
        let languages: Vec<_> = [default_language].into_iter().chain(others).collect();
        json!({ "appearance": {
            "name": optional(&self.name),
            "logo_url": optional(&self.logo_url),
            "colors": self.colors.body(),
            "languages": languages,
            "reason_labels": self.labels.body(),
            "policy_url": optional(&self.policy_url),
            "contact_url": optional(&self.contact_url),
            "contact_email": optional(&self.contact_email),
            "image_hosts": lines(&self.image_hosts),
            "host_names": lines(&self.host_names),
            "lookup_keys": chosen(&self.lookup_keys).collect::<Vec<_>>(),
            "withdrawal": self.withdrawal,
        } })
    }

    /// The values with their names.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let list = |choices: &[Choice]| {
            let chosen = choices.iter().filter(|choice| choice.is_chosen);
            chosen.map(|choice| choice.label).collect::<Vec<_>>().join(", ")
        };
        let mut facts = vec![
            ("Name that shoppers see", self.name.value.clone()),
            ("URL of the logo", self.logo_url.value.clone()),
        ];
        facts.extend(self.colors.0.iter().map(|color| (color.label, color.field.value.clone())));
        facts.extend([
            ("Default language", self.default_language.value.clone()),
            ("Languages", list(&self.languages)),
            ("Labels of return reasons", self.labels.text()),
            ("Return policy", self.policy_url.value.clone()),
            ("Contact page", self.contact_url.value.clone()),
            ("E-mail address for shoppers", self.contact_email.value.clone()),
            ("Facts to find an order", list(&self.lookup_keys)),
            ("Withdrawal", if self.withdrawal { "yes" } else { "no" }.to_owned()),
            ("Host names of the portal", lines(&self.host_names).join(", ")),
            ("Hosts of product pictures", lines(&self.image_hosts).join(", ")),
        ]);
        facts
    }

    /// Puts the errors of auth beside the fields.
    pub(super) fn reject(&mut self, body: &ErrorBody) {
        let fields = [
            (&mut self.name, "name"),
            (&mut self.logo_url, "logo_url"),
            (&mut self.policy_url, "policy_url"),
            (&mut self.contact_url, "contact_url"),
            (&mut self.contact_email, "contact_email"),
            (&mut self.default_language, "languages"),
            (&mut self.image_hosts, "image_hosts"),
            (&mut self.host_names, "host_names"),
        ];
        for (field, key) in fields {
            field.error = error_below(body, &format!("$.appearance.{key}"));
        }
        self.colors.reject(body);
        self.lookup_keys_error = error_below(body, "$.appearance.lookup_keys");
        self.labels.reject(body);
        self.message = Some(sentence(&body.message));
    }

    /// Puts the error of a host name that another merchant has beside the host names.
    pub(super) fn reject_host_names(&mut self, body: &ErrorBody) {
        self.host_names.reject(sentence(&body.message));
        self.message = Some("Some fields are not valid. Nothing was changed.".to_owned());
    }

    /// The name in the preview.
    pub(super) fn shown_name<'a>(&'a self, merchant: &'a str) -> &'a str {
        optional(&self.name).unwrap_or(merchant)
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

fn lines(field: &Field) -> Vec<&str> {
    field.value.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests;
