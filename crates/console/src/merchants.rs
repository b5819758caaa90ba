//! The list of merchants, for staff, and the form for a new one.

mod health;
mod new;

use actix_web::{get, web};
use askama::Template;
use futures_util::future::join;
use pages::{
    api::Service,
    text::{Moment, count},
};
use serde::Deserialize;

use self::health::HealthOfAll;
use crate::{
    Page, PageError, PageResult, Section, SignedIn, html,
    listing::{PAGE, query_string},
    merchant::Merchant,
    notice::redirect,
};

/// The number of suggestions.
const OPTIONS: &str = "10";

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct MerchantFilter {
    q: String,
    after: String,
}

impl MerchantFilter {
    /// The parameters of the request to auth.
    fn request(&self) -> [(&'static str, &str); 3] {
        [("q", self.q.trim()), ("after", &self.after), ("limit", PAGE)]
    }

    /// The query of the page behind `last`.
    fn next(&self, last: &str) -> String {
        query_string(&[("q", self.q.trim()), ("after", last)])
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
    app.service(list_merchants).service(list_options).configure(new::routes);
}

#[get("/merchants")]
async fn list_merchants(signed_in: SignedIn, filter: web::Query<MerchantFilter>) -> PageResult {
    if !signed_in.person.is_staff() {
        return Ok(redirect("/merchant"));
    }
    let filter = filter.into_inner();
    let page = signed_in.page(Section::Merchants);
    let request = filter.request();
    let (found, health) = join(
        signed_in.api.get::<MerchantPage>(Service::Auth, "v1/merchants", &request),
        HealthOfAll::load(&signed_in),
    )
    .await;
    let (MerchantPage { merchants, next }, mut health) = (found?, health?);
    health.load_not_tried(&signed_in, &merchants).await?;
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
    let next = next.map(|last| filter.next(&last));
    let unavailable = health.unavailable;
    html(&MerchantsPage { page, filter, merchants, next, unavailable })
}

#[derive(Template)]
#[template(path = "merchant_options.html")]
struct OptionsPage {
    merchants: Vec<Merchant>,
}

/// Merchants that begin with a text, as suggestions for a field.
#[get("/merchant-options")]
async fn list_options(signed_in: SignedIn, filter: web::Query<MerchantFilter>) -> PageResult {
    if !signed_in.person.is_staff() {
        return Err(PageError::NotFound);
    }
    let query = [("q", filter.q.trim()), ("limit", OPTIONS)];
    let found: MerchantPage = signed_in.api.get(Service::Auth, "v1/merchants", &query).await?;
    html(&OptionsPage { merchants: found.merchants })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_part_of_the_request_and_of_the_next_page() {
        let filter = MerchantFilter { q: " OUTdoor".to_owned(), after: "acme".to_owned() };
        assert_eq!(filter.request(), [("q", "OUTdoor"), ("after", "acme"), ("limit", "50")]);
        assert_eq!(filter.next("beta"), "q=OUTdoor&after=beta");
    }
}
