//! The returns policy of a merchant: its rules as sentences, an editor, previews and versions.
//!
//! A draft is a text in the page. Buttons that change or preview it save nothing, so that they need no JavaScript.

mod comparison;
mod draft;
mod examples;
mod preview;
mod sentences;
mod versions;

use actix_web::{get, http::StatusCode, post, web};
use askama::Template;
use domain::merchant::{Policy, Rule, Settings};
use pages::{
    api::{ApiError, ErrorBody, Service},
    form::{Field, Fields},
    path,
    text::count,
};
use reqwest::Method;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::{
    Frame, Merchant, Tab, page_of,
    version::{Version, is_outdated},
};
use crate::{
    Notice, Page, PageError, PageResult, Posted, SignedIn, changes, error::sentence, html,
    html_with, rejected,
};

use comparison::{Difference, differences};
use draft::{Draft, Edit, id_of};
use examples::{EXAMPLES, Example};
use preview::Preview;

/// A rule as a sentence.
struct ShownRule {
    id: String,
    sentence: String,
    /// The reason why the rule never decides anything.
    warning: Option<String>,
}

/// A fault of a draft.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    /// The place in the text, like `rules[0].then.window`.
    path: String,
    /// The id of the rule with the fault.
    rule: Option<String>,
    text: String,
}

#[derive(Template)]
#[template(path = "merchant_policy.html")]
struct PolicyPage {
    page: Page,
    merchant: Frame,
    version: Version,
    rules: Vec<ShownRule>,
    /// The merchant's other settings as the last sentence.
    otherwise: String,
    /// The lists of shoppers with their lengths.
    lists: Vec<(String, String)>,
    examples: &'static [Example],
    /// Whether the rules are those of a draft that is not saved.
    is_draft: bool,
    draft: Field,
    order: Field,
    faults: Vec<Fault>,
    message: Option<String>,
    /// The rules that differ, if another person changed the merchant in the meantime.
    differences: Vec<Difference>,
    preview: Option<Preview>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_policy)
        .service(save_policy)
        .service(edit_draft)
        .service(preview_draft)
        .configure(versions::routes);
}

/// Rejects a person who may not change the rules, before the text is read for nothing.
fn require_operator(signed_in: &SignedIn) -> Result<(), PageError> {
    if signed_in.person.is_operator() {
        Ok(())
    } else {
        Err(PageError::Denied("only an operator can save a returns policy".to_owned()))
    }
}

/// The rules of a merchant as auth sent them.
fn stored_rules(merchant: &Merchant) -> &[Value] {
    let rules = merchant.json.pointer("/policy/rules").and_then(Value::as_array);
    rules.map_or(&[], Vec::as_slice)
}

/// The lists of shoppers of a merchant as auth sent them.
fn stored_lists(merchant: &Merchant) -> Map<String, Value> {
    let lists = merchant.json.pointer("/policy/shoppers").and_then(Value::as_object);
    lists.cloned().unwrap_or_default()
}

/// The settings that the sentences need. An auth of another version may lack some, which then have their defaults.
fn settings_of(merchant: &Merchant) -> Result<Settings, PageError> {
    const NEEDED: [&str; 6] = [
        "time_zone",
        "currency",
        "return_window_days",
        "final_sale_tags",
        "express_max_weight",
        "returns",
    ];
    let unreadable = |error: serde_json::Error| {
        tracing::error!(%error, "auth sent settings that cannot be read");
        PageError::Internal
    };
    let mut settings =
        serde_json::to_value(Settings::new(merchant.settings.name.as_str())).map_err(unreadable)?;
    for name in NEEDED {
        if let (Some(value), Value::Object(settings)) = (merchant.json.get(name), &mut settings) {
            settings.insert(name.to_owned(), value.clone());
        }
    }
    serde_json::from_value(settings).map_err(unreadable)
}

/// The rules as sentences, with the warnings about them.
fn shown_rules(rules: &[Value], settings: &Settings) -> Vec<ShownRule> {
    let read: Result<Vec<_>, _> = rules.iter().map(Rule::deserialize).collect();
    let policy = read.map(|rules| Policy { rules, ..Policy::default() });
    // A draft with faults has no warnings yet.
    let warnings = policy.map(|policy| policy.warnings(&settings.currency)).unwrap_or_default();
    let show = |rule: &Value| {
        let id = id_of(rule).unwrap_or_default();
        let warning = warnings.iter().find(|warning| warning.rule == id);
        ShownRule {
            id: id.to_owned(),
            sentence: comparison::sentence(rule, settings),
            warning: warning.map(|warning| sentence(&warning.detail)),
        }
    };
    rules.iter().map(show).collect()
}

/// The page with the stored rules.
fn policy_page(signed_in: &SignedIn, merchant: &Merchant) -> Result<PolicyPage, PageError> {
    let settings = settings_of(merchant)?;
    let rules = stored_rules(merchant);
    let length = |(name, list): (String, Value)| {
        let shoppers = list.as_array().map_or(0, Vec::len);
        (name, count(shoppers, "shopper", "shoppers"))
    };
    Ok(PolicyPage {
        page: page_of(signed_in, merchant),
        merchant: Frame::new(&signed_in.person, merchant, Tab::Policy),
        version: Version::of(merchant),
        rules: shown_rules(rules, &settings),
        otherwise: sentences::of_settings(&settings),
        lists: stored_lists(merchant).into_iter().map(length).collect(),
        examples: EXAMPLES,
        is_draft: false,
        draft: Field::new(Draft::of(rules).text()),
        order: Field::default(),
        faults: Vec::new(),
        message: None,
        differences: Vec::new(),
        preview: None,
    })
}

#[get("/merchants/{merchant}/policy")]
async fn show_policy(signed_in: SignedIn, merchant: web::Path<String>) -> PageResult {
    let found = Merchant::load(&signed_in, signed_in.merchant(&merchant)?).await?;
    html(&policy_page(&signed_in, &found)?)
}

/// A form that was sent: the merchant, the page with the typed values, and the draft if it can be read.
struct Sent {
    found: Merchant,
    settings: Settings,
    page: PolicyPage,
    draft: Option<Draft>,
}

impl Sent {
    async fn load(signed_in: &SignedIn, merchant: &str, form: &Fields) -> Result<Self, PageError> {
        let found = Merchant::load(signed_in, merchant).await?;
        let page = policy_page(signed_in, &found)?;
        let settings = settings_of(&found)?;
        let text = form.text("policy");
        let version = Version::read(form);
        let order = Field::new(form.text("order"));
        let page = PolicyPage { version, order, draft: Field::new(text), ..page };
        let mut sent = Self { found, settings, page, draft: None };
        match Draft::read(text, stored_rules(&sent.found)) {
            Ok(draft) => sent.show(draft),
            Err(error) => sent.page.draft.reject(sentence(&error)),
        }
        Ok(sent)
    }

    /// Shows the rules of a draft as sentences.
    fn show(&mut self, draft: Draft) {
        self.page.rules = shown_rules(draft.rules(), &self.settings);
        self.page.is_draft = draft.rules() != stored_rules(&self.found);
        self.draft = Some(draft);
    }

    /// The page of a draft that a service refused.
    fn refused(mut self, body: &ErrorBody) -> PageResult {
        if let Some(error) = body.field("$.order_identifier") {
            self.page.order.reject(sentence(&error));
        }
        let rules = self.draft.as_ref().map_or(&[][..], Draft::rules);
        self.page.faults = faults(body, rules);
        if !self.page.faults.is_empty() {
            let faults = count(self.page.faults.len(), "fault", "faults");
            self.page.draft.reject(format!("The text has {faults}."));
        }
        self.page.message = Some(sentence(&body.message));
        rejected(&self.page)
    }
}

/// The faults of a draft, with their places in the text.
fn faults(body: &ErrorBody, rules: &[Value]) -> Vec<Fault> {
    let errors = body.errors.iter().filter_map(|error| {
        let path = error.field.strip_prefix("$.policy")?.trim_start_matches('.');
        let index = path.strip_prefix("rules[").and_then(|rest| rest.split(']').next());
        let rule = index.and_then(|index| rules.get(index.parse::<usize>().ok()?));
        Some(Fault {
            path: if path.is_empty() { "policy" } else { path }.to_owned(),
            rule: rule.and_then(id_of).map(str::to_owned),
            text: sentence(&body.field(&error.field).unwrap_or_default()),
        })
    });
    errors.collect()
}

#[post("/merchants/{merchant}/policy")]
async fn save_policy(posted: Posted<Fields>, merchant: web::Path<String>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let id = signed_in.merchant(&merchant)?;
    require_operator(&signed_in)?;
    let sent = Sent::load(&signed_in, id, &form).await?;
    let Some(draft) = &sent.draft else { return rejected(&sent.page) };
    let body = json!({ "policy": draft.policy() });
    let api = Version::read(&form).api(&signed_in);
    let url = path!("v1", "merchants", id);
    let changed: Result<Value, _> =
        api.send_json(Service::Auth, Method::PATCH, None, &url, &body).await;
    match changed {
        Ok(_) => {
            let url = format!("/{}", path!("merchants", id, "policy"));
            Ok(Notice::PolicySaved.redirect(&url))
        }
        Err(error) if is_outdated(&error) => outdated(&signed_in, id, &form).await,
        Err(ApiError::Invalid(body) | ApiError::Conflict(body)) => sent.refused(&body),
        Err(error) => Err(error.into()),
    }
}

/// Shows the rules that are stored now beside those of the draft. Saving again replaces them.
async fn outdated(signed_in: &SignedIn, merchant: &str, form: &Fields) -> PageResult {
    let Sent { found, settings, page, draft } = Sent::load(signed_in, merchant, form).await?;
    let typed = draft.as_ref().map_or(&[][..], Draft::rules);
    let differences = differences(stored_rules(&found), typed, &settings);
    let message = Some(changes::message("merchant"));
    let version = Version::of(&found);
    html_with(StatusCode::CONFLICT, &PolicyPage { version, differences, message, ..page })
}

/// Moves or removes a rule of the draft, or adds an example to it. Saves nothing.
#[post("/merchants/{merchant}/policy/edit")]
async fn edit_draft(posted: Posted<Fields>, merchant: web::Path<String>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let mut sent = Sent::load(&signed_in, signed_in.merchant(&merchant)?, &form).await?;
    let Some(mut draft) = sent.draft.take() else { return rejected(&sent.page) };
    let edit = Edit::read(form.text("edit")).ok_or(PageError::BadForm)?;
    draft.edit(&edit, &stored_lists(&sent.found));
    sent.page.draft = Field::new(draft.text());
    sent.show(draft);
    html(&sent.page)
}

/// Shows what the draft would decide. Saves nothing.
#[post("/merchants/{merchant}/policy/preview")]
async fn preview_draft(posted: Posted<Fields>, merchant: web::Path<String>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let id = signed_in.merchant(&merchant)?;
    let mut sent = Sent::load(&signed_in, id, &form).await?;
    let Some(draft) = &sent.draft else { return rejected(&sent.page) };
    let order = form.text("order");
    let is_of_order = form.text("preview") == "order";
    if is_of_order && order.is_empty() {
        sent.page.order.reject("Type the number of an order.");
        return rejected(&sent.page);
    }
    let previewed = if is_of_order {
        preview::of_order(&signed_in.api, id, draft, &sent.settings, order).await
    } else {
        let version = Version::of(&sent.found);
        preview::of_history(&signed_in.api, id, draft, &version, &form).await
    };
    let (status, message) = match previewed {
        Ok(preview) => {
            sent.page.preview = Some(preview);
            return html(&sent.page);
        }
        Err(ApiError::Invalid(body)) => return sent.refused(&body),
        Err(ApiError::NotFound) if is_of_order => {
            sent.page.order.reject("There is no such order.");
            return rejected(&sent.page);
        }
        Err(ApiError::TooManyRequests { .. }) => (
            StatusCode::TOO_MANY_REQUESTS,
            "Another preview of this merchant is in progress. Try again in a moment.".to_owned(),
        ),
        Err(ApiError::Unavailable { service }) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("There is no preview now, because the service {service} does not respond."),
        ),
        Err(error) => return Err(error.into()),
    };
    html_with(status, &PolicyPage { message: Some(message), ..sent.page })
}

#[cfg(test)]
mod tests;
