//! Handlers: parse, call, respond.

pub(crate) mod drop_shipments;
pub(crate) mod inbound;
pub(crate) mod outbound;
pub(crate) mod receipts;

use std::sync::Arc;

use domain::access::Scope;
use domain::merchant::Merchant;
use platform::identity::Caller;
use platform::{Failure, Kind, Problem};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::App;

const PAGE: i64 = 50;
const LONGEST_PAGE: i64 = 500;

/// The merchant a warehouse's request is about.
fn warehouse(app: &App, caller: &Caller) -> Result<Arc<Merchant>, Problem> {
    caller.require(Scope::Warehouse)?;
    Ok(app.directory.of(caller)?)
}

/// The merchant of a request that the merchant itself may make, too.
fn warehouse_or_merchant(app: &App, caller: &Caller) -> Result<Arc<Merchant>, Problem> {
    caller.require(Scope::Warehouse).or_else(|_refused| caller.require(Scope::Orders))?;
    Ok(app.directory.of(caller)?)
}

/// Which part of a long list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// How many at the most, 50 unless said; 500 is the limit.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<i64>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum BadQuery {
    #[error("limit must be between 1 and {LONGEST_PAGE}")]
    Limit,
    #[error("{0} cannot be read")]
    Unreadable(&'static str),
}

impl Failure for BadQuery {
    fn kind(&self) -> Kind {
        Kind::Malformed
    }
}

fn page_limit(limit: Option<i64>) -> Result<i64, BadQuery> {
    let limit = limit.unwrap_or(PAGE);
    if (1..=LONGEST_PAGE).contains(&limit) { Ok(limit) } else { Err(BadQuery::Limit) }
}

impl Page {
    fn limit(&self) -> Result<i64, BadQuery> {
        page_limit(self.limit)
    }

    fn after(&self) -> Result<&str, BadQuery> {
        let after = self.after.as_deref().unwrap_or("");
        if after.contains('\0') { Err(BadQuery::Unreadable("after")) } else { Ok(after) }
    }
}

/// Where the next page begins, if this one was full.
fn next<T>(page: &[T], limit: i64, name: impl Fn(&T) -> String) -> Option<String> {
    let full = i64::try_from(page.len()).is_ok_and(|length| length >= limit);
    page.last().filter(|_| full).map(name)
}
