//! The returns of all orders that the shopper has found.

use actix_web::{HttpResponse, get};
use askama::Template;
use futures_util::future::try_join_all;
use pages::api::{ApiError, Service};
use serde::Deserialize;

use super::{
    items::{Item, items},
    model::Return,
    return_url,
};
use crate::{
    error::PageError,
    page::{Page, html},
    visit::{Proven, Visit},
};

#[derive(Deserialize)]
struct Returns {
    #[serde(default)]
    returns: Vec<Return>,
}

/// A return of the list.
struct Row {
    rma: Return,
    url: String,
    items: Vec<Item>,
}

#[derive(Template)]
#[template(path = "returns.html")]
struct ReturnsPage {
    page: Page,
    rows: Vec<Row>,
}

#[get("/{merchant}/returns")]
pub(super) async fn show_returns(Proven(visit): Proven) -> Result<HttpResponse, PageError> {
    let orders = visit.proofs().into_iter().map(|proof| returns_of(&visit, &proof.order));
    let found = try_join_all(orders).await?;
    let row = |rma: Return| Row {
        url: return_url(&visit, &rma.rma_identifier, ""),
        items: items(&rma),
        rma,
    };
    let rows = newest_first(found.into_iter().flatten().collect()).into_iter().map(row).collect();
    let template = ReturnsPage { page: Page::new(&visit, None), rows };
    html(&template.page, &template)
}

async fn returns_of(visit: &Visit, order: &str) -> Result<Vec<Return>, ApiError> {
    let query = [("order_identifier", order), ("limit", "200")];
    let found: Returns =
        visit.api.get_for(Service::RmaEngine, visit.merchant(), "v1/returns", &query).await?;
    Ok(found.returns)
}

/// Each return once, also if it contains units of several orders.
fn newest_first(mut returns: Vec<Return>) -> Vec<Return> {
    returns.sort_by(|a, b| {
        b.created_at.cmp(&a.created_at).then_with(|| a.rma_identifier.cmp(&b.rma_identifier))
    });
    returns.dedup_by(|a, b| a.rma_identifier == b.rma_identifier);
    returns
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::rma;
    use super::*;

    #[test]
    fn a_return_of_two_orders_is_listed_once() {
        let new = |name: &str, at: &str| {
            let mut rma = rma(&[]);
            name.clone_into(&mut rma.rma_identifier);
            rma.created_at = at.parse().unwrap();
            rma
        };
        let (old, newer) = (new("R-1", "2026-11-01T00:00:00Z"), new("R-2", "2026-11-02T00:00:00Z"));
        let listed = newest_first(vec![old.clone(), newer, old]);
        let names: Vec<_> = listed.iter().map(|rma| rma.rma_identifier.as_str()).collect();
        assert_eq!(names, ["R-2", "R-1"]);
    }
}
