//! The pages of one merchant: settings, returns policy, appearance, mails, endpoints, clients, people and audit log.
//!
//! Staff come here from the list of merchants. A merchant's person reaches the same pages of the own
//! merchant, also under `/merchant`.

mod appearance;
mod appearance_form;
mod audit;
mod client_form;
mod clients;
mod color_fields;
mod endpoint_actions;
mod endpoint_form;
mod endpoint_notices;
mod endpoints;
mod label_table;
mod mails;
mod people;
mod policy_form;
mod returns_policy;
mod sample;
mod set_endpoint;
mod settings;
mod settings_form;
mod version;
mod warehouses;

use std::collections::BTreeMap;

use actix_web::{HttpRequest, HttpResponse, get, web};
use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, Service},
    path,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{Page, PageError, PageResult, Section, SignedIn, notice::redirect, person::Person};

pub(crate) use settings_form::Settings;

use appearance_form::Appearance;

/// A merchant as auth describes it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Merchant {
    pub(crate) identifier: String,
    /// Grows with every change. A form sends it back, so that it overwrites no newer change.
    #[serde(default)]
    version: i64,
    #[serde(flatten)]
    pub(crate) settings: Settings,
    #[serde(default)]
    appearance: Appearance,
    #[serde(default)]
    pub(crate) endpoints: BTreeMap<String, EndpointView>,
    pub(crate) created_at: DateTime<Utc>,
    /// The merchant as auth sent it, for forms.
    #[serde(skip)]
    json: Value,
}

/// The query of a list: the `next` of the page before.
#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: String,
}

/// An endpoint as auth describes it. Secrets are placeholders.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EndpointView {
    url: Option<String>,
    path: Option<String>,
    certificate_expires_at: Option<DateTime<Utc>>,
    pub(crate) paused: bool,
    signing_secrets: Vec<SigningSecretView>,
}

#[derive(Debug, Clone, Deserialize)]
struct SigningSecretView {
    expires_at: Option<DateTime<Utc>>,
}

impl EndpointView {
    /// The end of the previous signing secret, after a rotation.
    fn old_secret_ends_at(&self) -> Option<DateTime<Utc>> {
        self.signing_secrets.iter().filter_map(|secret| secret.expires_at).max()
    }
}

impl Merchant {
    pub(crate) async fn load(signed_in: &SignedIn, id: &str) -> Result<Self, ApiError> {
        let json: Value =
            signed_in.api.get(Service::Auth, &path!("v1", "merchants", id), &[]).await?;
        match Self::deserialize(&json) {
            Ok(merchant) => Ok(Self { json, ..merchant }),
            Err(error) => {
                tracing::error!(%error, "auth sent a merchant that cannot be read");
                Err(ApiError::Unavailable { service: Service::Auth })
            }
        }
    }

    /// An endpoint as auth sent it; null if it is not set.
    fn endpoint_json(&self, name: &str) -> &Value {
        let endpoints = self.json.get("endpoints");
        endpoints.and_then(|endpoints| endpoints.get(name)).unwrap_or(&Value::Null)
    }
}

/// A tab of a merchant's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tab {
    Settings,
    Policy,
    Appearance,
    Mails,
    Endpoints,
    Warehouses,
    Clients,
    People,
    Audit,
}

/// The head of a merchant's pages: title and tabs.
struct Frame {
    id: String,
    name: String,
    /// URL, name and whether it is the current tab.
    tabs: Vec<(String, &'static str, bool)>,
}

impl Frame {
    fn new(person: &Person, merchant: &Merchant, current: Tab) -> Self {
        let id = merchant.identifier.clone();
        let tab =
            |tab: Tab, path: &str, name| (format!("/merchants/{id}{path}"), name, tab == current);
        let mut tabs =
            vec![tab(Tab::Settings, "", "Settings"), tab(Tab::Policy, "/policy", "Returns policy")];
        if person.may_manage() {
            tabs.push(tab(Tab::Appearance, "/appearance", "Appearance"));
            tabs.push(tab(Tab::Mails, "/mails", "Mails"));
        }
        tabs.push(tab(Tab::Endpoints, "/endpoints", "Endpoints"));
        tabs.push(tab(Tab::Warehouses, "/warehouses", "Warehouses"));
        tabs.push(tab(Tab::Clients, "/clients", "Clients"));
        if person.may_manage() {
            tabs.push(tab(Tab::People, "/people", "People"));
        }
        tabs.push((format!("/deliveries?merchant={id}"), "Deliveries", false));
        tabs.push(tab(Tab::Audit, "/audit", "Audit"));
        Self { id, name: merchant.settings.name.clone(), tabs }
    }

    /// The URL of a page of this merchant.
    fn url(&self, path: &str) -> String {
        format!("/merchants/{}{path}", self.id)
    }

    /// The URL of an entry of a list.
    fn entry_url(&self, list: &str, entry: &str) -> String {
        format!("/{}", path!("merchants", self.id, list, entry))
    }
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_own)
        .service(show_own_page)
        .configure(settings::routes)
        .configure(returns_policy::routes)
        .configure(appearance::routes)
        .configure(mails::routes)
        .configure(endpoints::routes)
        .configure(set_endpoint::routes)
        .configure(endpoint_actions::routes)
        .configure(sample::routes)
        .configure(clients::routes)
        .configure(client_form::routes)
        .configure(people::routes)
        .configure(warehouses::routes)
        .configure(audit::routes);
}

fn page(signed_in: &SignedIn) -> Page {
    signed_in.page(Section::Merchants)
}

/// A page of a merchant, with times in its zone.
fn page_of(signed_in: &SignedIn, merchant: &Merchant) -> Page {
    page(signed_in).in_zone(&merchant.settings.time_zone)
}

/// Rejects a person who may not change the merchant, before a form is filled in for nothing.
fn require_manage(signed_in: &SignedIn) -> Result<(), PageError> {
    if signed_in.person.may_manage() {
        Ok(())
    } else {
        Err(PageError::Denied("your role can only read this merchant".to_owned()))
    }
}

/// Leads a merchant's person to the own merchant.
#[get("/merchant")]
async fn show_own(signed_in: SignedIn) -> HttpResponse {
    own_page(&signed_in, "", "")
}

#[get("/merchant/{page:.*}")]
async fn show_own_page(
    request: HttpRequest,
    signed_in: SignedIn,
    path: web::Path<String>,
) -> PageResult {
    // The path goes into a URL, so it may only have the characters of our own pages.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
    if !path.chars().all(is_plain) {
        return Err(PageError::NotFound);
    }
    Ok(own_page(&signed_in, &format!("/{path}"), request.query_string()))
}

fn own_page(signed_in: &SignedIn, path: &str, query: &str) -> HttpResponse {
    match &signed_in.person.merchant {
        Some(own) if query.is_empty() => redirect(&format!("/merchants/{own}{path}")),
        Some(own) => redirect(&format!("/merchants/{own}{path}?{query}")),
        None => redirect("/merchants"),
    }
}
