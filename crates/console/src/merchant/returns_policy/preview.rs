//! Previews of a draft: its decisions about one order, or about the returns of the last 90 days.
//!
//! A response is about a limited number of returns. A page makes a few requests, and goes on with the figures that it
//! has if the person wants more.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use domain::{json::Digest, merchant::Settings};
use pages::{
    api::{ApiError, Caller, Service},
    form::Fields,
    path,
    text::{count, grouped, money},
};
use reqwest::Method;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::draft::Draft;
use crate::{
    markup::{link, text, text_or_dash},
    merchant::version::Version,
    table::Table,
};

/// Requests for a page. Each takes about two seconds at most.
const MAX_REQUESTS: usize = 5;
const DEADLINE: Duration = Duration::from_secs(5);
/// Changed returns that a page shows.
const MAX_SHOWN: usize = 50;

/// A preview as the page shows it.
pub(super) struct Preview {
    pub(super) sentences: Vec<String>,
    pub(super) table: Table,
    /// The place to go on from, if there are more returns.
    pub(super) rest: Option<Rest>,
}

/// The figures so far, and the place of the next return.
pub(super) struct Rest {
    pub(super) after: String,
    pub(super) figures: String,
    /// The draft and the version of the merchant to which the figures belong.
    pub(super) compared: String,
}

/// The sums of the decisions about returns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Figures {
    returns: u64,
    changed: u64,
    current: Decisions,
    draft: Decisions,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Decisions {
    refused: u64,
    reviewed: u64,
    return_shipping_cost_cents: BTreeMap<String, i64>,
}

/// The decisions about returns so far.
#[derive(Debug, Default)]
struct History {
    figures: Figures,
    changes: Vec<ChangedReturn>,
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
struct HistoryResponse {
    #[serde(flatten)]
    figures: Figures,
    #[serde(default)]
    changes: Vec<ChangedReturn>,
    #[serde(default)]
    next: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ChangedReturn {
    rma_identifier: String,
    current: Decision,
    draft: Decision,
}

#[derive(Debug, Deserialize)]
struct Decision {
    #[serde(default)]
    ineligible: Option<Refusal>,
    #[serde(default)]
    return_shipping_cost_cents: i64,
    #[serde(default)]
    cost_rule: Option<String>,
    #[serde(default)]
    review_rule: Option<String>,
    #[serde(default)]
    return_to: Option<ReturnTo>,
}

/// The warehouse to which units go.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct ReturnTo {
    warehouse: String,
    rule: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Refusal {
    detail: String,
    #[serde(default)]
    rule: Option<String>,
}

#[derive(Debug, Deserialize)]
struct OrderResponse {
    current: OrderUnits,
    draft: OrderUnits,
}

#[derive(Debug, Deserialize)]
struct OrderUnits {
    units: Vec<Unit>,
}

#[derive(Debug, Deserialize)]
struct Unit {
    order_line_item_identifier: String,
    unit: u32,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    ineligible: Option<Refusal>,
    returnable_until: DateTime<Utc>,
    #[serde(default)]
    choices: Vec<Choices>,
}

/// The choices of a shopper with some reasons.
#[derive(Debug, Deserialize)]
struct Choices {
    #[serde(default)]
    options: Vec<ChoiceOption>,
}

#[derive(Debug, Deserialize)]
struct ChoiceOption {
    #[serde(default)]
    ineligible: Option<Refusal>,
    #[serde(default)]
    return_to: Option<ReturnTo>,
}

/// Previews the draft about one order.
pub(super) async fn of_order(
    api: &Caller,
    merchant: &str,
    draft: &Draft,
    settings: &Settings,
    order: &str,
) -> Result<Preview, ApiError> {
    let body = json!({ "policy": draft.policy(), "order_identifier": order });
    let OrderResponse { current, draft } = request(api, merchant, &body).await?;
    let units: Vec<_> = current.units.iter().zip(&draft.units).collect();
    let sentence = match units.is_empty() {
        true => format!("The order {order} has no units."),
        false => format!(
            "The units of the order {order}, as of today. A rule can still exclude a reason, a method or a result."
        ),
    };
    let table = Table::of("Units of the order", &units)
        .head("Line", |(unit, _)| text(&unit.order_line_item_identifier))
        .cell("Unit", |(unit, _)| text(unit.unit))
        .cell("Title", |(unit, _)| text_or_dash(unit.title.as_ref()))
        .cell("With the saved rules", |(unit, _)| text(unit.in_words(settings)))
        .cell("With the draft", |(_, unit)| text(unit.in_words(settings)))
        .table();
    Ok(Preview { sentences: vec![sentence], table, rest: None })
}

/// Previews the draft about the returns of the last 90 days, or goes on with the figures that the form has. They
/// belong to a version of the merchant.
pub(super) async fn of_history(
    api: &Caller,
    merchant: &str,
    draft: &Draft,
    version: &Version,
    form: &Fields,
) -> Result<Preview, ApiError> {
    let compared = fingerprint(&version.to_string(), draft);
    let mut history = History::of_form(form, &compared).unwrap_or_default();
    for _ in 0..MAX_REQUESTS {
        let mut body = json!({ "policy": draft.policy() });
        if let (Some(next), Value::Object(body)) = (&history.next, &mut body) {
            body.insert("after".to_owned(), next.as_str().into());
        }
        match request(api, merchant, &body).await {
            Ok(response) => history.add(response),
            // The figures so far are worth showing. The person can go on later.
            Err(_) if history.figures.returns > 0 => break,
            Err(error) => return Err(error),
        }
        if history.next.is_none() {
            break;
        }
    }
    Ok(history.into_preview(merchant, compared))
}

async fn request<T: DeserializeOwned>(
    api: &Caller,
    merchant: &str,
    body: &Value,
) -> Result<T, ApiError> {
    let api = api.clone().with_deadline(DEADLINE);
    let path = "v1/policies/preview";
    api.send_json(Service::RmaEngine, Method::POST, Some(merchant), path, body).await
}

/// A text that differs for another draft, and for another version of the merchant.
fn fingerprint(version: &str, draft: &Draft) -> String {
    let digest = Digest::of_value(&json!([version, draft.policy()]));
    digest.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl History {
    /// The figures of a form, if they belong to what is compared now.
    fn of_form(form: &Fields, compared: &str) -> Option<Self> {
        let is_rest = form.text("preview") == "rest" && form.text("compared") == compared;
        let figures = serde_json::from_str(form.text("figures")).ok().filter(|_| is_rest)?;
        Some(Self { figures, changes: Vec::new(), next: Some(form.text("after").to_owned()) })
    }

    fn add(&mut self, response: HistoryResponse) {
        let HistoryResponse { figures, changes, next } = response;
        self.figures.returns = self.figures.returns.saturating_add(figures.returns);
        self.figures.changed = self.figures.changed.saturating_add(figures.changed);
        self.figures.current.add(figures.current);
        self.figures.draft.add(figures.draft);
        self.changes.extend(changes);
        self.changes.truncate(MAX_SHOWN);
        self.next = next;
    }

    fn into_preview(self, merchant: &str, compared: String) -> Preview {
        let sentences = self.figures.sentences(self.next.is_some());
        let figures = serde_json::to_string(&self.figures).unwrap_or_default();
        let rest = self.next.map(|after| Rest { after, figures, compared });
        let table = Table::of("Returns that the draft decides differently", &self.changes)
            .wrapped_head("Return", |it| {
                let url = path!("merchants", merchant, "returns", it.rma_identifier);
                link(format!("/{url}"), &it.rma_identifier)
            })
            .cell("With the saved rules", |it| text(it.current.in_words()))
            .cell("With the draft", |it| text(it.draft.in_words()))
            .table();
        Preview { sentences, table, rest }
    }
}

impl Decisions {
    fn add(&mut self, other: Self) {
        self.refused = self.refused.saturating_add(other.refused);
        self.reviewed = self.reviewed.saturating_add(other.reviewed);
        for (currency, cents) in other.return_shipping_cost_cents {
            let sum = self.return_shipping_cost_cents.entry(currency).or_default();
            *sum = sum.saturating_add(cents);
        }
    }

    fn cost(&self, currency: &str) -> i64 {
        self.return_shipping_cost_cents.get(currency).copied().unwrap_or_default()
    }
}

impl Figures {
    fn sentences(&self, has_more: bool) -> Vec<String> {
        if self.returns == 0 {
            return vec!["There were no returns in the last 90 days.".to_owned()];
        }
        let returns = count(self.returns, "return", "returns");
        let [now, draft] = [&self.current, &self.draft];
        let extent = if has_more { "the newest" } else { "all" };
        let mut sentences = vec![
            format!("Compared: {extent} {returns} of the last 90 days."),
            format!("The draft decides {} differently.", grouped(self.changed)),
            format!(
                "Refused: {} with the draft, {} with the saved rules.",
                grouped(draft.refused),
                grouped(now.refused)
            ),
            format!(
                "Sent to review: {} with the draft, {} with the saved rules.",
                grouped(draft.reviewed),
                grouped(now.reviewed),
            ),
        ];
        let [current, draft] =
            [&self.current, &self.draft].map(|it| it.return_shipping_cost_cents.keys());
        let currencies: BTreeSet<_> = current.chain(draft).collect();
        sentences.extend(currencies.into_iter().map(|currency| {
            let [now, draft] =
                [&self.current, &self.draft].map(|it| money(it.cost(currency), currency));
            format!("Return shipping in all: {draft} with the draft, {now} with the saved rules.")
        }));
        sentences
    }
}

impl Unit {
    fn in_words(&self, settings: &Settings) -> String {
        if let Some(refusal) = &self.ineligible {
            return refusal.in_words();
        }
        let last = (self.returnable_until - TimeDelta::seconds(1)).with_timezone(&settings.zone());
        let until = format!("can be returned until {}", last.format("%-d %B %Y"));
        let warehouses = self.warehouses().into_iter().map(ReturnTo::in_words);
        [until].into_iter().chain(warehouses).collect::<Vec<_>>().join("; ")
    }

    /// The warehouses to which the unit goes, by the choices that are possible.
    fn warehouses(&self) -> BTreeSet<&ReturnTo> {
        let options = self.choices.iter().flat_map(|choices| &choices.options);
        let possible = options.filter(|option| option.ineligible.is_none());
        possible.filter_map(|option| option.return_to.as_ref()).collect()
    }
}

impl Decision {
    fn in_words(&self) -> String {
        if let Some(refusal) = &self.ineligible {
            return refusal.in_words();
        }
        let cost =
            format!("return shipping costs {} cents", grouped(self.return_shipping_cost_cents));
        let cost = with_rule(&cost, self.cost_rule.as_deref());
        let review = self.review_rule.as_deref();
        let review = review.map(|rule| with_rule("waits for a review", Some(rule)));
        let warehouse = self.return_to.as_ref().map(ReturnTo::in_words);
        [Some(cost), review, warehouse].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

impl ReturnTo {
    fn in_words(&self) -> String {
        with_rule(&format!("goes to the warehouse {}", self.warehouse), Some(self.rule.as_str()))
    }
}

impl Refusal {
    fn in_words(&self) -> String {
        with_rule(&self.detail, self.rule.as_deref())
    }
}

/// A text with the rule that causes it.
fn with_rule(text: &str, rule: Option<&str>) -> String {
    match rule {
        Some(rule) => format!("{text} (rule {rule})"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
