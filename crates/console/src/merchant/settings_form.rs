//! The settings of a merchant as a form.

use pages::{api::ErrorBody, form::Fields};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::policy_form::{Policy, PolicyForm};
use crate::form::{Form, Input, Kind, null_if_empty};

/// The settings as auth describes them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) time_zone: String,
    pub(super) currency: String,
    pub(super) managed_receiving: bool,
    pub(super) return_window_days: u32,
    pub(super) final_sale_tags: Vec<String>,
    pub(super) express_max_weight: Option<f64>,
    pub(super) parcel_max_weight: Option<f64>,
    pub(super) concept: Option<String>,
    pub(super) returns: Policy,
    pub(super) strict_amounts: bool,
    pub(super) strict_refund_dates: bool,
    pub(super) support_contact: Option<Contact>,
    pub(super) base_url: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Contact {
    pub(super) email: String,
    pub(super) name: Option<String>,
    pub(super) phone: Option<String>,
}

/// The inputs of the form.
const INPUTS: &[Input] = &[
    Input::text("name", "Name").required(),
    Input::text("time_zone", "Time zone")
        .hint("For days and return windows, for example Europe/Berlin.")
        .required(),
    Input::new("currency", "Currency", "currency", Kind::Capitals)
        .hint("Of shipping costs and bonus. Orders in another currency have neither.")
        .required(),
    Input::text("base_url", "Base URL of endpoints")
        .kind("url")
        .hint("Endpoints without their own URL are below this one. Can be empty."),
    Input::text("contact_email", "E-mail address")
        .at("support_contact.email")
        .kind("email")
        .hint("Leave all three empty for no contact.")
        .sent_empty(),
    Input::text("contact_name", "Name of the contact").at("support_contact.name"),
    Input::text("contact_phone", "Telephone").at("support_contact.phone").kind("tel"),
    Input::new("return_window_days", "Return window in days", "return_window_days", WHOLE_DAYS)
        .hint("Days after shipping within which units can be returned.")
        .required(),
    Input::new(
        "send_within_days",
        "Days to send a return",
        "returns.send_within_days",
        WHOLE_DAYS,
    )
    .hint(
        "Days after the request within which the shopper hands over the parcel. A return that no carrier \
         has scanned by then expires, and its units can be returned again. A change applies to open \
         returns too.",
    ),
    Input::new(
        "exchange_deadline_days",
        "Days to return an exchanged unit",
        "returns.exchange_deadline_days",
        WHOLE_DAYS,
    )
    .hint(
        "Days after the exchange order was accepted. An exchanged unit that no carrier has scanned by then \
         is reported, so that the merchant can charge for it. A change applies to open returns too.",
    ),
    Input::new("final_sale_tags", "Tags that forbid a return", "final_sale_tags", Kind::Lines)
        .hint(
            "One tag a line, in addition to the built-in tags FinalSale, gift-card and Thirdparty.",
        ),
    Input::check("managed_receiving", "Backhaul receives returned units for the merchant"),
    Input::new(
        "express_max_weight",
        "Heaviest unit for express-returns",
        "express_max_weight",
        NUMBER,
    )
    .hint("In the unit of the lines’ weight. Empty: any weight."),
    Input::new("parcel_max_weight", "Heaviest parcel", "parcel_max_weight", NUMBER).hint(
        "In the unit of the lines’ weight. A heavier return gets a label for each of several parcels. Empty: one \
         parcel. Only with a label provider.",
    ),
    Input::text("concept", "Concept of exchange items")
        .hint("For items whose line and order name none. Can be empty."),
    Input::check("strict_amounts", "Reject orders whose sums do not add up")
        .hint("Otherwise they are stored with a warning."),
    Input::check("strict_refund_dates", "Reject new refunds dated in the past"),
];

const WHOLE_DAYS: Kind = Kind::Whole("Must be a whole number of days.");
const NUMBER: Kind = Kind::Number("Must be a number.");

#[derive(Debug, Clone)]
pub(super) struct SettingsForm {
    pub(super) inputs: Form,
    pub(super) policy: PolicyForm,
}

impl SettingsForm {
    /// The form with the present settings.
    pub(super) fn of(settings: &Settings) -> Self {
        let stored = serde_json::to_value(settings).unwrap_or_default();
        let policy = PolicyForm::of(&settings.returns, &settings.currency);
        Self { inputs: Form::of(INPUTS, &stored), policy }
    }

    /// The form as it was sent.
    pub(super) fn read(fields: &Fields) -> Self {
        Self { inputs: Form::read(INPUTS, fields), policy: PolicyForm::read(fields) }
    }

    /// The request. Texts that are no numbers get errors here, and are sent as they are.
    pub(super) fn body(&mut self) -> Value {
        let mut body = self.inputs.body();
        null_if_empty(body.get_mut("support_contact"));
        let mut policy = self.policy.body(self.inputs.value("currency"));
        if let (Some(policy), Some(Value::Object(days))) =
            (policy.as_object_mut(), body.remove("returns"))
        {
            policy.extend(days.into_iter().filter(|(_, days)| !days.is_null()));
        }
        body.insert("returns".to_owned(), policy);
        body.into()
    }

    /// Puts the errors of auth beside the fields.
    pub(super) fn reject(&mut self, body: &ErrorBody) {
        self.inputs.reject_all(body);
        self.policy.reject(body);
    }
}
