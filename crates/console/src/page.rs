//! The frame of a page: navigation and the signed-in person.

use actix_web::HttpResponse;
use askama::Template;
use chrono::{DateTime, Utc};
use pages::{
    assets::{ASSETS, AssetUrls},
    text::Moment,
};

use crate::{
    App,
    error::PageError,
    notice::Notice,
    person::{Person, SignedIn},
};

/// An entry of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Merchants,
    Deliveries,
    Replays,
    Lookup,
    ExchangeOrders,
    Warehouse,
    Discrepancies,
    Audit,
    Reference,
    Account,
}

/// The context that every page of a signed-in person has.
pub(crate) struct Page {
    pub(crate) assets: &'static AssetUrls,
    pub(crate) person: Person,
    pub(crate) section: Section,
    pub(crate) notice: Option<&'static str>,
    now: DateTime<Utc>,
}

impl Page {
    pub(crate) fn new(app: &App, signed_in: &SignedIn, section: Section) -> Self {
        let person = signed_in.person.clone();
        let notice = signed_in.notice.map(Notice::text);
        Self { assets: &ASSETS, person, section, notice, now: app.clock.now() }
    }

    pub(crate) fn moment(&self, at: DateTime<Utc>) -> Moment {
        Moment::new(at, self.now)
    }

    /// The navigation: section, URL and name.
    pub(crate) fn sections(&self) -> Vec<(Section, &'static str, &'static str)> {
        let (deliveries, replays) = (
            (Section::Deliveries, "/deliveries", "Deliveries"),
            (Section::Replays, "/replays", "Replays"),
        );
        let rest = [
            (Section::Lookup, "/lookup", "Look up"),
            (Section::ExchangeOrders, "/exchange-orders", "Exchange orders"),
            (Section::Warehouse, "/warehouse", "Warehouse"),
            (Section::Discrepancies, "/discrepancies", "Discrepancies"),
        ];
        let first = if self.person.is_staff() {
            vec![
                (Section::Overview, "/", "Overview"),
                (Section::Merchants, "/merchants", "Merchants"),
            ]
        } else {
            vec![(Section::Overview, "/", "Home"), (Section::Merchants, "/merchant", "Settings")]
        };
        let last = [
            (Section::Audit, "/audit", "Audit"),
            (Section::Reference, "/reference", "API reference"),
        ];
        first.into_iter().chain([deliveries, replays]).chain(rest).chain(last).collect()
    }
}

/// A template as a response.
pub(crate) fn html(template: &impl Template) -> Result<HttpResponse, PageError> {
    Ok(HttpResponse::Ok().content_type("text/html; charset=utf-8").body(template.render()?))
}
