//! The options of a merchant's shoppers as a part of the settings form: reasons, methods, gift card.

use domain::currency::minor_digits;
use pages::{
    api::ErrorBody,
    form::{Field, Fields},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{error_below, sentence};

/// The options as auth describes them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Policy {
    pub(super) reasons: Vec<Reason>,
    pub(super) methods: Vec<Method>,
    pub(super) free_exchange_shipping: bool,
    pub(super) gift_card: Option<GiftCard>,
    // Both are absent in auth of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) send_within_days: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exchange_deadline_days: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reason {
    pub(super) code: String,
    pub(super) label: String,
    #[serde(default)]
    pub(super) offers_exchange: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Method {
    pub(super) method: String,
    #[serde(default)]
    pub(super) shipping_cost_cents: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GiftCard {
    pub(super) sku: String,
    #[serde(default)]
    pub(super) bonus_credit_amount_cents: i64,
}

/// The methods with one sentence each.
pub(super) const METHODS: [(&str, &str); 3] = [
    ("mail-back", "The shopper mails a parcel with a label."),
    ("express-returns", "The shopper drops the unit off without a box, or a carrier collects it."),
    ("customer-keep", "The shopper keeps the unit."),
];
/// Empty rows for new reasons.
const NEW_REASONS: usize = 3;
const MAX_REASONS: usize = 100;

#[derive(Debug, Clone, Default)]
pub(super) struct ReasonRow {
    pub(super) code: Field,
    pub(super) label: Field,
    pub(super) offers_exchange: bool,
    /// The place in the list that shoppers see.
    pub(super) position: String,
}

#[derive(Debug, Clone)]
pub(super) struct MethodRow {
    pub(super) method: &'static str,
    pub(super) about: &'static str,
    pub(super) is_offered: bool,
    pub(super) cost: Field,
}

#[derive(Debug, Clone, Default)]
pub(super) struct PolicyForm {
    pub(super) reasons: Vec<ReasonRow>,
    pub(super) methods: Vec<MethodRow>,
    pub(super) free_exchange_shipping: bool,
    pub(super) gift_card_sku: Field,
    pub(super) gift_card_bonus: Field,
    pub(super) reasons_error: Option<String>,
    pub(super) methods_error: Option<String>,
}

impl PolicyForm {
    pub(super) fn of(policy: &Policy, currency: &str) -> Self {
        let reasons = policy.reasons.iter().map(|reason| ReasonRow {
            code: Field::new(reason.code.as_str()),
            label: Field::new(reason.label.as_str()),
            offers_exchange: reason.offers_exchange,
            position: String::new(),
        });
        let method = |(method, about): (&'static str, &'static str)| {
            let offer = policy.methods.iter().find(|offer| offer.method == method);
            let cost = offer.map_or(0, |offer| offer.shipping_cost_cents);
            let cost = Field::new(amount_text(cost, currency));
            MethodRow { method, about, is_offered: offer.is_some(), cost }
        };
        let bonus = |card: &GiftCard| amount_text(card.bonus_credit_amount_cents, currency);
        let card = policy.gift_card.as_ref();
        let mut form = Self {
            reasons: reasons.collect(),
            methods: METHODS.map(method).to_vec(),
            free_exchange_shipping: policy.free_exchange_shipping,
            gift_card_sku: Field::new(card.map(|card| card.sku.clone()).unwrap_or_default()),
            gift_card_bonus: Field::new(card.map(bonus).unwrap_or_default()),
            ..Self::default()
        };
        form.number_reasons();
        form
    }

    pub(super) fn read(fields: &Fields) -> Self {
        let reason = |index: usize| {
            let name = |part: &str| format!("reason_{index}_{part}");
            fields.has(&name("code")).then(|| ReasonRow {
                code: Field::new(fields.text(&name("code"))),
                label: Field::new(fields.text(&name("label"))),
                offers_exchange: fields.is_checked(&name("exchange")),
                position: fields.text(&name("position")).to_owned(),
            })
        };
        let mut reasons: Vec<_> = (1..=MAX_REASONS + NEW_REASONS).map_while(reason).collect();
        reasons.retain(|row| !row.code.value.is_empty() || !row.label.value.is_empty());
        // Rows with the same position stay in their order.
        reasons.sort_by_key(|row| row.position.parse::<u32>().unwrap_or(u32::MAX));
        let method = |(method, about): (&'static str, &'static str)| MethodRow {
            method,
            about,
            is_offered: fields.is_checked(&format!("method_{method}")),
            cost: Field::new(fields.text(&format!("cost_{method}"))),
        };
        let mut form = Self {
            reasons,
            methods: METHODS.map(method).to_vec(),
            free_exchange_shipping: fields.is_checked("free_exchange_shipping"),
            gift_card_sku: Field::new(fields.text("gift_card_sku")),
            gift_card_bonus: Field::new(fields.text("gift_card_bonus")),
            ..Self::default()
        };
        form.number_reasons();
        form
    }

    /// Numbers the rows and adds empty ones.
    fn number_reasons(&mut self) {
        let rows = self.reasons.len();
        self.reasons.resize_with(rows + NEW_REASONS, ReasonRow::default);
        for (index, row) in self.reasons.iter_mut().enumerate() {
            row.position = (index + 1).to_string();
        }
    }

    /// The request. A text that is no amount gets an error beside its field, and is sent as it is.
    pub(super) fn body(&mut self, currency: &str) -> Value {
        let methods: Vec<_> = self
            .methods
            .iter_mut()
            .filter(|row| row.is_offered)
            .map(|row| {
                let cents = amount(&mut row.cost, currency);
                json!({ "method": row.method, "shipping_cost_cents": cents })
            })
            .collect();
        let has_card =
            !self.gift_card_sku.value.is_empty() || !self.gift_card_bonus.value.is_empty();
        let card = has_card.then(|| {
            let cents = amount(&mut self.gift_card_bonus, currency);
            json!({ "sku": self.gift_card_sku.value, "bonus_credit_amount_cents": cents })
        });
        let reasons: Vec<_> = self
            .reasons
            .iter()
            .filter(|row| !row.code.value.is_empty() || !row.label.value.is_empty())
            .map(|row| {
                let code = &row.code.value;
                let label = &row.label.value;
                json!({ "code": code, "label": label, "offers_exchange": row.offers_exchange })
            })
            .collect();
        json!({
            "reasons": reasons,
            "methods": methods,
            "free_exchange_shipping": self.free_exchange_shipping,
            "gift_card": card,
        })
    }

    /// Puts the errors of auth beside the fields.
    pub(super) fn reject(&mut self, body: &ErrorBody) {
        let error = |path: &str| body.field(path).map(|text| sentence(&text));
        for (index, row) in self.reasons.iter_mut().enumerate() {
            row.code.error = error(&format!("$.returns.reasons[{index}].code"));
            row.label.error = error(&format!("$.returns.reasons[{index}].label"));
        }
        let offered = self.methods.iter_mut().filter(|row| row.is_offered).enumerate();
        for (index, row) in offered {
            if let Some(error) = error_below(body, &format!("$.returns.methods[{index}]")) {
                row.cost.reject(error);
            }
        }
        self.reasons_error = error("$.returns.reasons");
        // A rule names a method, a reason or a result that these settings no longer offer.
        let of_rules = || error_below(body, "$.policy.rules");
        let of_rules = || of_rules().map(|error| format!("A rule of the policy: {error}"));
        self.methods_error = error("$.returns.methods").or_else(of_rules);
        self.gift_card_sku.error = error("$.returns.gift_card.sku");
        if let Some(error) = error("$.returns.gift_card.bonus_credit_amount_cents") {
            self.gift_card_bonus.reject(error);
        }
    }
}

/// The number of a field, or its text with an error beside the field.
fn number(field: &mut Field, error: &str, parse: impl FnOnce(&str) -> Option<Value>) -> Value {
    parse(&field.value.replace(',', ".")).unwrap_or_else(|| {
        field.reject(error);
        field.value.as_str().into()
    })
}

/// Reads an amount like `5.95`. An empty field is zero.
fn amount(field: &mut Field, currency: &str) -> Value {
    number(field, "Must be an amount, like 5.95.", |text| {
        parse_amount(text, minor_digits(currency)).map(Value::from)
    })
}

fn parse_amount(text: &str, digits: u32) -> Option<i64> {
    let text = text.trim().replace(',', ".");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let digits = usize::try_from(digits).ok()?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(rest) || rest.len() > digits {
        return None;
    }
    format!("0{whole}{rest:0<digits$}").parse().ok()
}

/// An amount as the form shows it, without the currency.
fn amount_text(cents: i64, currency: &str) -> String {
    let digits = usize::try_from(minor_digits(currency)).unwrap_or(2);
    let text = format!("{cents:0width$}", width = digits + 1);
    let (whole, rest) = text.split_at(text.len().saturating_sub(digits));
    if rest.is_empty() { whole.to_owned() } else { format!("{whole}.{rest}") }
}

#[cfg(test)]
mod tests;
