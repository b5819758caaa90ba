//! One box that finds orders, returns, exchange orders and warehouse records, within a merchant or, for
//! staff, across merchants.

mod hits;
mod targets;

use actix_web::{get, web};
use askama::Template;
use futures_util::future::join_all;
use pages::api::{ApiError, Service};
use serde::Deserialize;

use crate::{
    Page, PageError, PageResult, Section, SignedIn, html,
    notice::redirect,
    record_list::{load, merchant_filter},
    table::Table,
};
use hits::{Found, Hit, groups};
pub(crate) use targets::spellings;
use targets::{Target, broader, targets};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(look_up);
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lookup {
    q: String,
    merchant: String,
}

/// The results of all searches.
#[derive(Default)]
struct Results {
    hits: Vec<Hit>,
    unavailable: Vec<Service>,
    /// Service and reason of searches that were rejected.
    rejected: Vec<(Service, String)>,
}

#[derive(Template)]
#[template(path = "lookup.html")]
struct LookupPage {
    page: Page,
    lookup: Lookup,
    /// Names and tables.
    groups: Vec<(&'static str, Table)>,
    /// The searches, in words.
    searched: Vec<String>,
    /// The merchant in which everything was searched, if it was only one.
    within: Option<String>,
    unavailable: Vec<Service>,
    rejected: Vec<(Service, String)>,
}

#[get("/lookup")]
async fn look_up(signed_in: SignedIn, lookup: web::Query<Lookup>) -> PageResult {
    let mut lookup = lookup.into_inner();
    lookup.q = lookup.q.trim().to_owned();
    lookup.merchant = lookup.merchant.trim().to_owned();
    let page = signed_in.page(Section::Lookup);
    let within = merchant_filter(&signed_in, &lookup.merchant)?;
    let mut wanted = targets(&lookup.q);
    let mut results = search(&signed_in, within, &wanted).await?;
    if let ([hit], true, true) =
        (results.hits.as_slice(), results.unavailable.is_empty(), results.rejected.is_empty())
    {
        return Ok(redirect(&hit.url()));
    }
    if results.hits.is_empty() {
        let more = broader(&lookup.q);
        results.merge(search(&signed_in, within, &more).await?);
        wanted.extend(more);
    }
    let mut searched: Vec<String> = wanted.iter().map(Target::words).collect();
    searched.dedup();
    let within = within.map(str::to_owned);
    let Results { hits, unavailable, rejected } = results;
    html(&LookupPage {
        groups: groups(hits, &page),
        page,
        lookup,
        searched,
        within,
        unavailable,
        rejected,
    })
}

async fn search(
    signed_in: &SignedIn,
    within: Option<&str>,
    targets: &[Target],
) -> Result<Results, PageError> {
    let ask = async |target: &Target| {
        let query = [(target.filter, target.value.as_str()), ("limit", "20")];
        let found: Result<Found, ApiError> =
            load(signed_in, target.service, within, target.path, &query).await;
        (target.service, found)
    };
    let mut results = Results::default();
    for (service, found) in join_all(targets.iter().map(ask)).await {
        match found {
            Ok(found) => results.add(found.hits()),
            Err(
                ApiError::Unavailable { service }
                | ApiError::Unauthenticated { service }
                | ApiError::TooManyRequests { service, .. },
            ) => results.unavailable.push(service),
            Err(ApiError::Invalid(body)) => results.rejected.push((service, body.message)),
            Err(ApiError::NotFound) => {
                results.rejected.push((service, "there is no such merchant".to_owned()));
            }
            Err(error) => return Err(error.into()),
        }
    }
    results.unavailable.sort_unstable();
    results.unavailable.dedup();
    results.rejected.dedup();
    Ok(results)
}

impl Results {
    /// Adds the hits that another search has not found already.
    fn add(&mut self, hits: Vec<Hit>) {
        for hit in hits {
            if !self.hits.iter().any(|known| known.url() == hit.url()) {
                self.hits.push(hit);
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.add(other.hits);
        self.unavailable.extend(other.unavailable);
        self.unavailable.sort_unstable();
        self.unavailable.dedup();
        self.rejected.extend(other.rejected);
        self.rejected.dedup();
    }
}
