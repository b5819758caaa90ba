//! The list of merchants, for staff, and the form for a new one.

mod health;
mod new;

use actix_web::{HttpResponse, get, web};
use askama::Template;
use futures_util::future::join;
use pages::{
    api::{ApiError, Service},
    text::{Moment, count},
};
use serde::Deserialize;
use url::form_urlencoded;

use self::health::HealthOfAll;
use crate::{
    App,
    error::PageError,
    merchant::Merchant,
    notice::redirect,
    page::{Page, Section, html},
    person::SignedIn,
};

/// The number of merchants on a page.
const PAGE: usize = 50;
/// A search reads at most this number of pages of 200 merchants; the next page goes on from there.
const MAX_SEARCHED_PAGES: usize = 5;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct MerchantFilter {
    q: String,
    after: String,
}

impl MerchantFilter {
    fn matches(&self, merchant: &Merchant) -> bool {
        let wanted = self.q.trim().to_lowercase();
        merchant.identifier.contains(&wanted)
            || merchant.settings.name.to_lowercase().contains(&wanted)
    }

    /// The query of the page behind `last`.
    fn next(&self, last: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if !self.q.is_empty() {
            query.append_pair("q", &self.q);
        }
        query.append_pair("after", last);
        query.finish()
    }
}

#[derive(Deserialize)]
struct MerchantPage {
    merchants: Vec<Merchant>,
    next: Option<String>,
}

struct MerchantRow {
    merchant: Merchant,
    created: Moment,
    endpoints: String,
    /// Tone and text.
    health: (&'static str, String),
}

#[derive(Template)]
#[template(path = "merchants.html")]
struct MerchantsPage {
    page: Page,
    filter: MerchantFilter,
    merchants: Vec<MerchantRow>,
    /// The query of the next page.
    next: Option<String>,
    unavailable: Vec<Service>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_merchants).configure(new::routes);
}

#[get("/merchants")]
async fn list_merchants(
    app: web::Data<App>,
    signed_in: SignedIn,
    filter: web::Query<MerchantFilter>,
) -> Result<HttpResponse, PageError> {
    if !signed_in.person.is_staff() {
        return Ok(redirect("/merchant"));
    }
    let filter = filter.into_inner();
    let page = Page::new(&app, &signed_in, Section::Merchants);
    let (found, health) = join(find(&signed_in, &filter), HealthOfAll::load(&signed_in)).await;
    let ((merchants, last), health) = (found?, health?);
    let row = |merchant: Merchant| {
        let number = u64::try_from(merchant.endpoints.len()).unwrap_or(u64::MAX);
        MerchantRow {
            created: page.moment(merchant.created_at),
            endpoints: count(number, "endpoint", "endpoints"),
            health: health.of(&merchant),
            merchant,
        }
    };
    let merchants: Vec<_> = merchants.into_iter().map(row).collect();
    let next = last.map(|last| filter.next(&last));
    let unavailable = health.unavailable;
    html(&MerchantsPage { page, filter, merchants, next, unavailable })
}

/// The merchants of this page, and the last one that was read if there may be more.
async fn find(
    signed_in: &SignedIn,
    filter: &MerchantFilter,
) -> Result<(Vec<Merchant>, Option<String>), ApiError> {
    let mut found = Vec::new();
    let mut after = filter.after.clone();
    let limit = if filter.q.trim().is_empty() { PAGE } else { 200 }.to_string();
    for _ in 0..MAX_SEARCHED_PAGES {
        let query = [("after", after.as_str()), ("limit", limit.as_str())];
        let page: MerchantPage = signed_in.api.get(Service::Auth, "v1/merchants", &query).await?;
        found.extend(page.merchants.into_iter().filter(|merchant| filter.matches(merchant)));
        if found.len() > PAGE {
            found.truncate(PAGE);
            let last = found.last().map(|merchant| merchant.identifier.clone());
            return Ok((found, last));
        }
        match page.next {
            None => return Ok((found, None)),
            Some(next) => after = next,
        }
        if found.len() == PAGE {
            break;
        }
    }
    Ok((found, Some(after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merchant(identifier: &str, name: &str) -> Merchant {
        let json = serde_json::json!({
            "identifier": identifier, "name": name, "created_at": "2026-11-16T08:00:00Z",
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_search_finds_identifiers_and_names() {
        let filter = MerchantFilter { q: " OUTdoor".to_owned(), after: String::new() };
        assert!(filter.matches(&merchant("acme", "Acme Outdoor")));
        assert!(filter.matches(&merchant("outdoor-1", "Zeta")));
        assert!(!filter.matches(&merchant("zeta", "Zeta")));
        assert_eq!(filter.next("acme"), "q=+OUTdoor&after=acme");
    }
}
