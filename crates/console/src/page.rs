//! The frame of a page: navigation and the signed-in person.

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use pages::{
    assets::{ASSETS, AssetUrls},
    text::Moment,
};

use crate::{Notice, PageResult, SignedIn, error_summary, person::Person};

/// A section of the console; most are entries of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Merchants,
    People,
    Deliveries,
    Replays,
    Lookup,
    Orders,
    Returns,
    ExchangeOrders,
    Reviews,
    Overdue,
    Warehouse,
    Discrepancies,
    Audit,
    Reference,
    Account,
    /// A failure, which is in no section.
    Error,
}

/// The context that every page of a signed-in person has.
pub(crate) struct Page {
    pub(crate) assets: &'static AssetUrls,
    pub(crate) person: Person,
    pub(crate) section: Section,
    pub(crate) notice: Option<&'static str>,
    now: DateTime<Utc>,
    /// The zone of the times on the page.
    zone: Tz,
}

impl SignedIn {
    /// The context of a page in a section.
    pub(crate) fn page(&self, section: Section) -> Page {
        let notice = self.notice.map(Notice::text);
        let person = self.person.clone();
        let now = self.now;
        let zone = self.zone;
        Page { assets: &ASSETS, person, section, notice, now, zone }
    }
}

impl Page {
    pub(crate) fn moment(&self, at: DateTime<Utc>) -> Moment {
        Moment::new(at, self.now).in_zone(self.zone)
    }

    /// The page with times in the zone of a merchant. Without a known zone they stay in UTC.
    pub(crate) fn in_zone(self, zone: &str) -> Self {
        Self { zone: zone.parse().unwrap_or(Tz::UTC), ..self }
    }

    /// The name of the zone, for example `Europe/Berlin`.
    pub(crate) fn zone(&self) -> &'static str {
        self.zone.name()
    }

    /// The time since then; zero if it is to come.
    pub(crate) fn age(&self, at: DateTime<Utc>) -> TimeDelta {
        (self.now - at).max(TimeDelta::zero())
    }

    /// The navigation: section, URL and name.
    pub(crate) fn sections(&self) -> Vec<(Section, &'static str, &'static str)> {
        let deliveries = (Section::Deliveries, "/deliveries", "Deliveries");
        let replays = (Section::Replays, "/replays", "Replays");
        let rest = [
            (Section::Returns, "/returns", "Returns"),
            (Section::Orders, "/orders", "Orders"),
            (Section::Lookup, "/lookup", "Look up"),
            (Section::ExchangeOrders, "/exchange-orders", "Exchange orders"),
            (Section::Reviews, "/reviews", "Returns to review"),
            (Section::Overdue, "/overdue", "Overdue exchanges"),
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
        let people = (Section::People, "/people", "People");
        let last = [
            (Section::Audit, "/audit", "Audit"),
            (Section::Reference, "/reference", "API reference"),
        ];
        let work = [deliveries, replays];
        let people = self.person.is_operator().then_some(people);
        first.into_iter().chain(work).chain(rest).chain(people).chain(last).collect()
    }
}

pub(crate) fn html(template: &impl Template) -> PageResult {
    html_with(StatusCode::OK, template)
}

/// The page of a rejected form, with the errors beside the fields.
pub(crate) fn rejected(template: &impl Template) -> PageResult {
    html_with(StatusCode::UNPROCESSABLE_ENTITY, template)
}

pub(crate) fn html_with(status: StatusCode, template: &impl Template) -> PageResult {
    let body = template.render()?;
    let body = if status.is_client_error() { error_summary::add_to(&body) } else { body };
    Ok(HttpResponse::build(status).content_type("text/html; charset=utf-8").body(body))
}
