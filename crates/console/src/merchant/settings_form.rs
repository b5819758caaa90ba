//! The settings of a merchant as a form.

use pages::{
    api::ErrorBody,
    form::{Field, Fields},
};
use serde::Deserialize;
use serde_json::{Number, Value, json};

use super::policy_form::{Policy, PolicyForm, number};
use crate::error::{error_below, sentence};

/// The settings as auth describes them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) time_zone: String,
    pub(super) currency: String,
    pub(super) managed_receiving: bool,
    pub(super) return_window_days: u32,
    pub(super) final_sale_tags: Vec<String>,
    pub(super) express_max_weight: Option<f64>,
    pub(super) concept: Option<String>,
    pub(super) returns: Policy,
    pub(super) strict_amounts: bool,
    pub(super) strict_refund_dates: bool,
    pub(super) support_contact: Option<Contact>,
    pub(super) base_url: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Contact {
    pub(super) email: String,
    pub(super) name: Option<String>,
    pub(super) phone: Option<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct SettingsForm {
    pub(super) name: Field,
    pub(super) time_zone: Field,
    pub(super) currency: Field,
    pub(super) return_window_days: Field,
    /// One tag a line.
    pub(super) final_sale_tags: Field,
    pub(super) express_max_weight: Field,
    pub(super) concept: Field,
    pub(super) base_url: Field,
    pub(super) contact_email: Field,
    pub(super) contact_name: Field,
    pub(super) contact_phone: Field,
    pub(super) managed_receiving: bool,
    pub(super) strict_amounts: bool,
    pub(super) strict_refund_dates: bool,
    pub(super) policy: PolicyForm,
    /// The reason why the whole form was rejected.
    pub(super) message: Option<String>,
}

impl SettingsForm {
    /// The form with the present settings.
    pub(super) fn of(settings: &Settings) -> Self {
        let optional = |text: &Option<String>| Field::new(text.clone().unwrap_or_default());
        let contact = settings.support_contact.clone().unwrap_or_default();
        Self {
            name: Field::new(settings.name.as_str()),
            time_zone: Field::new(settings.time_zone.as_str()),
            currency: Field::new(settings.currency.as_str()),
            return_window_days: Field::new(settings.return_window_days.to_string()),
            final_sale_tags: Field::new(settings.final_sale_tags.join("\n")),
            express_max_weight: Field::new(
                settings.express_max_weight.map(|weight| weight.to_string()).unwrap_or_default(),
            ),
            concept: optional(&settings.concept),
            base_url: optional(&settings.base_url),
            contact_email: Field::new(contact.email),
            contact_name: optional(&contact.name),
            contact_phone: optional(&contact.phone),
            managed_receiving: settings.managed_receiving,
            strict_amounts: settings.strict_amounts,
            strict_refund_dates: settings.strict_refund_dates,
            policy: PolicyForm::of(&settings.returns, &settings.currency),
            message: None,
        }
    }

    /// The form as it was sent.
    pub(super) fn read(fields: &Fields) -> Self {
        let field = |name| Field::new(fields.text(name));
        Self {
            name: field("name"),
            time_zone: field("time_zone"),
            currency: Field::new(fields.text("currency").to_uppercase()),
            return_window_days: field("return_window_days"),
            final_sale_tags: field("final_sale_tags"),
            express_max_weight: field("express_max_weight"),
            concept: field("concept"),
            base_url: field("base_url"),
            contact_email: field("contact_email"),
            contact_name: field("contact_name"),
            contact_phone: field("contact_phone"),
            managed_receiving: fields.is_checked("managed_receiving"),
            strict_amounts: fields.is_checked("strict_amounts"),
            strict_refund_dates: fields.is_checked("strict_refund_dates"),
            policy: PolicyForm::read(fields),
            message: None,
        }
    }

    /// The request. A text that is no number gets an error here, and is sent as it is: auth rejects it together
    /// with the faults of other fields.
    pub(super) fn body(&mut self) -> Value {
        let days =
            number(&mut self.return_window_days, "Must be a whole number of days.", |text| {
                text.parse::<u32>().ok().map(Value::from)
            });
        let weight = match self.express_max_weight.value.as_str() {
            "" => Value::Null,
            _ => number(&mut self.express_max_weight, "Must be a number.", |text| {
                text.parse().ok().and_then(Number::from_f64).map(Value::from)
            }),
        };
        let policy = self.policy.body(&self.currency.value);
        let tags: Vec<_> = self
            .final_sale_tags
            .value
            .lines()
            .map(str::trim)
            .filter(|tag| !tag.is_empty())
            .collect();
        json!({
            "name": self.name.value,
            "time_zone": self.time_zone.value,
            "currency": self.currency.value,
            "managed_receiving": self.managed_receiving,
            "return_window_days": days,
            "final_sale_tags": tags,
            "express_max_weight": weight,
            "concept": optional(&self.concept),
            "returns": policy,
            "strict_amounts": self.strict_amounts,
            "strict_refund_dates": self.strict_refund_dates,
            "support_contact": self.contact(),
            "base_url": optional(&self.base_url),
        })
    }

    fn contact(&self) -> Option<Value> {
        let fields = [&self.contact_email, &self.contact_name, &self.contact_phone];
        fields.iter().any(|field| !field.value.is_empty()).then(|| {
            json!({
                "email": self.contact_email.value,
                "name": optional(&self.contact_name),
                "phone": optional(&self.contact_phone),
            })
        })
    }

    /// Puts the errors of auth beside the fields.
    pub(super) fn reject(&mut self, body: &ErrorBody) {
        let fields = [
            (&mut self.name, "$.name"),
            (&mut self.time_zone, "$.time_zone"),
            (&mut self.currency, "$.currency"),
            (&mut self.return_window_days, "$.return_window_days"),
            (&mut self.express_max_weight, "$.express_max_weight"),
            (&mut self.concept, "$.concept"),
            (&mut self.base_url, "$.base_url"),
            (&mut self.contact_email, "$.support_contact.email"),
            (&mut self.contact_name, "$.support_contact.name"),
            (&mut self.contact_phone, "$.support_contact.phone"),
        ];
        for (field, path) in fields {
            if let Some(text) = body.field(path) {
                field.reject(sentence(&text));
            }
        }
        self.final_sale_tags.error = error_below(body, "$.final_sale_tags");
        self.policy.reject(body);
        self.message = Some(sentence(&body.message));
    }
}

pub(super) fn optional(field: &Field) -> Option<&str> {
    Some(field.value.as_str()).filter(|text| !text.is_empty())
}
