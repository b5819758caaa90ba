//! The frame of a page: the merchant's name and logo, the language switch, the steps and the links at
//! the end.
//!
//! A template has a field `page: Page` and extends `portal.html`, which has the blocks `title` and
//! `content`. It gets its texts from `page.t("find-title")`, `page.t1("find-intro", "shop", name)` and so on.

use std::{sync::Arc, sync::LazyLock};

use actix_web::{
    HttpRequest, HttpResponse,
    http::{StatusCode, header},
    web,
};
use askama::Template;
use chrono::{DateTime, NaiveDate, Utc};
use pages::{
    assets::{ASSETS, AssetUrls, asset_response},
    path, security,
};
use texts::{Language, TextValue, Texts};
use url::form_urlencoded;

use crate::{error::PageError, language::of_request, merchant::Portal, visit::Visit};

const STYLE: &str = include_str!("../assets/portal.css");
const SCRIPT: &str = include_str!("../assets/portal.js");

static STYLE_URL: LazyLock<String> = LazyLock::new(|| asset_url(STYLE, "portal.css"));
static SCRIPT_URL: LazyLock<String> = LazyLock::new(|| asset_url(SCRIPT, "portal.js"));

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Find,
    Choose,
    Resolution,
    Method,
    Check,
}

impl Step {
    const ALL: [Self; 5] = [Self::Find, Self::Choose, Self::Resolution, Self::Method, Self::Check];

    /// The id of its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Find => "step-find",
            Self::Choose => "step-choose",
            Self::Resolution => "step-resolution",
            Self::Method => "step-method",
            Self::Check => "step-check",
        }
    }
}

/// The context that every page has.
pub(crate) struct Page {
    pub(crate) assets: &'static AssetUrls,
    pub(crate) portal: Arc<Portal>,
    pub(crate) language: Language,
    /// The current step, on the pages of a return that is not confirmed yet.
    pub(crate) step: Option<Step>,
    /// Whether the shopper has found an order, and so can sign out.
    pub(crate) is_proven: bool,
    texts: &'static Texts,
    languages: Vec<Language>,
    visit: Option<Visit>,
}

impl Page {
    pub(crate) fn new(visit: &Visit, step: Option<Step>) -> Self {
        Self {
            assets: &ASSETS,
            portal: visit.portal.clone(),
            language: visit.language,
            step,
            is_proven: !visit.proofs().is_empty(),
            texts: Texts::of(visit.language),
            languages: visit.languages.clone(),
            visit: Some(visit.clone()),
        }
    }

    /// The page of an error that concerns no merchant.
    pub(crate) fn without_merchant(request: &HttpRequest) -> Self {
        let language = of_request(request, &Language::TRANSLATED, None);
        Self {
            assets: &ASSETS,
            portal: Arc::default(),
            language,
            step: None,
            is_proven: false,
            texts: Texts::of(language),
            languages: Vec::new(),
            visit: None,
        }
    }

    pub(crate) fn t(&self, id: &str) -> String {
        self.texts.t(id)
    }

    pub(crate) fn t1(&self, id: &str, name: &str, value: impl TextValue) -> String {
        self.texts.t1(id, name, value)
    }

    pub(crate) fn t2(
        &self,
        id: &str,
        name: &str,
        value: impl TextValue,
        name_2: &str,
        value_2: impl TextValue,
    ) -> String {
        self.texts.t2(id, name, value, name_2, value_2)
    }

    pub(crate) fn money(&self, minor_units: &i64, currency: &str) -> String {
        self.texts.money(minor_units, currency)
    }

    /// The difference in price of an exchange in words.
    pub(crate) fn price_difference(&self, cents: i64, currency: &str) -> String {
        let amount = self.money(&cents.saturating_abs(), currency);
        match cents {
            0 => self.t("check-same-price"),
            1.. => self.t1("check-more", "amount", amount),
            _ => self.t1("check-less", "amount", amount),
        }
    }

    /// The day of a time, in the merchant's time zone.
    pub(crate) fn date(&self, at: &DateTime<Utc>) -> String {
        self.texts.day(&self.portal.day(at))
    }

    pub(crate) fn day(&self, day: &NaiveDate) -> String {
        self.texts.day(day)
    }

    /// The path of a page of this merchant; see [`Visit::url`].
    pub(crate) fn url(&self, path: &str) -> String {
        self.visit.as_ref().map_or_else(|| "/".to_owned(), |visit| visit.url(path))
    }

    /// The link that writes to an address. Nothing in the address can add a parameter.
    pub(crate) fn mailto(&self, email: &str) -> String {
        let (name, host) = email.rsplit_once('@').unwrap_or((email, ""));
        format!("mailto:{}@{}", path!(name), path!(host))
    }

    pub(crate) fn style(&self) -> &'static str {
        &STYLE_URL
    }

    pub(crate) fn script(&self) -> &'static str {
        &SCRIPT_URL
    }

    /// The style sheet with the merchant's colours.
    pub(crate) fn theme(&self) -> Option<String> {
        let Portal { merchant, version, .. } = self.portal.as_ref();
        self.visit.as_ref().map(|_| format!("/theme/{}/{version}.css", path!(merchant)))
    }

    /// The steps with the ids of their names, and whether each is the current one or before it.
    pub(crate) fn steps(&self) -> Vec<(&'static str, bool, bool)> {
        let Some(current) = self.step else { return Vec::new() };
        let steps = Step::ALL.into_iter();
        steps.map(|step| (step.name(), step == current, step < current)).collect()
    }

    /// Whether this is the first page, which has the link to the withdrawal below its form.
    pub(crate) fn is_first(&self) -> bool {
        self.step == Some(Step::Find)
    }

    /// The number of the current step and of all steps.
    pub(crate) fn step_number(&self) -> (usize, usize) {
        let steps = self.steps();
        let before = steps.iter().filter(|(_, _, is_before)| *is_before).count();
        (before + 1, steps.len())
    }

    /// The other languages: code, name and the link that switches to it.
    pub(crate) fn other_languages(&self) -> Vec<(&'static str, String, String)> {
        let Some(visit) = &self.visit else { return Vec::new() };
        let others = self.languages.iter().filter(|language| **language != self.language);
        let link = |language: &Language| {
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("lang", language.code())
                .append_pair("next", &visit.target)
                .finish();
            let name = Texts::of(*language).t("language-name");
            (language.code(), name, format!("{}?{query}", visit.url("/language")))
        };
        others.map(link).collect()
    }
}

/// A template as a response. `page` is the template's own.
pub(crate) fn html(page: &Page, template: &impl Template) -> Result<HttpResponse, PageError> {
    html_with(StatusCode::OK, page, template)
}

/// The page of a rejected form, with the errors beside the fields.
pub(crate) fn rejected(page: &Page, template: &impl Template) -> Result<HttpResponse, PageError> {
    html_with(StatusCode::UNPROCESSABLE_ENTITY, page, template)
}

pub(crate) fn html_with(
    status: StatusCode,
    page: &Page,
    template: &impl Template,
) -> Result<HttpResponse, PageError> {
    let mut body = template.render()?;
    let is_rejected = [StatusCode::UNPROCESSABLE_ENTITY, StatusCode::CONFLICT].contains(&status);
    if is_rejected {
        // Screen readers read the title first.
        body = body.replacen("<title>", &format!("<title>{} ", page.t("title-error")), 1);
    }
    let hosts: Vec<_> = page.portal.image_hosts().collect();
    let policy = security::content_policy(hosts.iter().map(String::as_str));
    Ok(HttpResponse::build(status)
        .content_type("text/html; charset=utf-8")
        .insert_header((header::CONTENT_SECURITY_POLICY, policy))
        .insert_header((header::CONTENT_LANGUAGE, page.language.code()))
        .body(body))
}

/// Leads to another page.
pub(crate) fn redirect(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((header::LOCATION, path)).finish()
}

/// Serves the portal's own style sheet and script.
pub(crate) fn assets(app: &mut web::ServiceConfig) {
    app.route("/assets/{digest}/portal.css", web::get().to(show_style));
    app.route("/assets/{digest}/portal.js", web::get().to(show_script));
}

async fn show_script(request: HttpRequest) -> HttpResponse {
    asset_response(&request, &SCRIPT_URL, "text/javascript; charset=utf-8", SCRIPT.as_bytes())
}

async fn show_style(request: HttpRequest) -> HttpResponse {
    asset_response(&request, &STYLE_URL, "text/css; charset=utf-8", STYLE.as_bytes())
}

/// A style sheet that browsers keep for ever, if its URL names its version.
pub(crate) fn style_sheet(text: String, is_immutable: bool) -> HttpResponse {
    let caching = if is_immutable { "public, max-age=31536000, immutable" } else { "no-store" };
    HttpResponse::Ok()
        .content_type("text/css; charset=utf-8")
        .insert_header((header::CACHE_CONTROL, caching))
        .body(text)
}

/// The URL contains a digest of the text, so that browsers can keep it for ever.
fn asset_url(text: &str, name: &str) -> String {
    format!("/assets/{:016x}/{name}", digest(text))
}

/// A digest (FNV-1a) that is the same in every process.
pub(crate) fn digest(text: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    text.bytes()
        .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
