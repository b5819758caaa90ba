//! Lists as data: the service that has the records, the conditions of the filter and the texts. One page shows them
//! all.

use askama::Template;
use pages::{
    api::{ApiError, Service},
    form::Fields,
};
use serde::de::DeserializeOwned;

use crate::{
    Page, PageError, PageResult, Section, SignedIn,
    filter::{Condition, Filter},
    html,
    record_list::{Listed, PAGE, Records, Sorted, load, merchant_filter},
    table::Table,
};

/// Pages of a list that are loaded at once while they are empty: a service checks a limited number of records for each.
const MAX_EMPTY_PAGES: usize = 5;

/// The reason why a list has no records. The field says more.
const UNKNOWN_VALUE: &str = "one of its values is not known";

/// A list of records of one merchant or, for staff, of all merchants.
pub(crate) struct List {
    pub(crate) section: Section,
    /// The URL of the page.
    pub(crate) path: &'static str,
    pub(crate) title: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) about: &'static str,
    /// URL and name of lists that belong together.
    pub(crate) tabs: &'static [(&'static str, &'static str)],
    pub(crate) service: Service,
    /// The path of the request.
    pub(crate) api: &'static str,
    pub(crate) conditions: &'static [Condition],
    pub(crate) has_chips: bool,
    /// A condition that needs a merchant, and the error without one.
    pub(crate) within_merchant: Option<(&'static str, &'static str)>,
    /// The sentence for an empty list without a filter, and with one.
    pub(crate) empty: [&'static str; 2],
    /// The names of the links to the first and the next page of a list that has only one order.
    pub(crate) pages: [&'static str; 2],
    /// The noun for one record and for several, if the list can be sorted by time.
    pub(crate) sorted_nouns: Option<(&'static str, &'static str)>,
}

impl List {
    /// A list without the parts that only some lists have. The newest records come first.
    pub(crate) const fn new(
        section: Section,
        (path, title): (&'static str, &'static str),
        (service, api): (Service, &'static str),
        conditions: &'static [Condition],
        empty: [&'static str; 2],
    ) -> Self {
        Self {
            section,
            path,
            title,
            heading: title,
            about: "",
            tabs: &[],
            service,
            api,
            conditions,
            has_chips: false,
            within_merchant: None,
            empty,
            pages: ["Newest", "Older"],
            sorted_nouns: None,
        }
    }

    /// The filter in the URL.
    pub(crate) fn filter(&self, signed_in: &SignedIn, query: &Fields) -> Filter {
        let filter = Filter::read(signed_in, self.path, self.conditions, query);
        let filter = if self.sorted_nouns.is_some() { filter.with_order(query) } else { filter };
        if self.conditions.iter().any(Condition::is_time) {
            filter.with_zone(query).with_time_order()
        } else {
            filter
        }
    }

    /// Loads the records that match the filter in the URL. `sent` completes the request.
    pub(crate) async fn load<T: DeserializeOwned>(
        &'static self,
        signed_in: &SignedIn,
        query: &Fields,
        sent: &[(&str, &str)],
    ) -> Result<(ListView, Vec<T>), PageError> {
        let filter = self.filter(signed_in, query);
        let within = merchant_filter(signed_in, filter.value("merchant"))?;
        let is_within =
            |(name, _): &(&str, &str)| within.is_none() && !filter.value(name).is_empty();
        let conditions = filter.request();
        let ask = async |after: &str| {
            let mut found = Records::default();
            let mut after = after.to_owned();
            for _ in 0..MAX_EMPTY_PAGES {
                let conditions = conditions.iter().map(|(name, value)| (*name, value.as_str()));
                let page =
                    [("order", filter.order().value()), ("after", after.as_str()), ("limit", PAGE)];
                let query: Vec<_> = conditions.chain(page).chain(sent.iter().copied()).collect();
                found =
                    load::<Records<T>>(signed_in, self.service, within, self.api, &query).await?;
                match &found.next {
                    Some(next) if found.records.is_empty() => next.clone_into(&mut after),
                    _ => break,
                }
            }
            Ok::<_, ApiError>(found)
        };
        let listed = match self.within_merchant.filter(is_within) {
            Some((_, reason)) => Listed::Invalid(reason.to_owned()),
            None if !filter.is_valid() => Listed::Invalid(UNKNOWN_VALUE.to_owned()),
            None => Listed::new(match ask(&filter.after).await {
                // A cursor comes from a link. One that cannot be read leads to the first page.
                Err(ApiError::Invalid(_)) if !filter.after.is_empty() => ask("").await,
                found => found,
            })?,
        };
        let is_unfiltered = filter.is_empty();
        let (listed, Records { records, next }) = match listed {
            Listed::Loaded(loaded) => (Listed::Loaded(()), loaded),
            Listed::Invalid(reason) => (Listed::Invalid(reason), Records::default()),
            Listed::Missing(service) => (Listed::Missing(service), Records::default()),
        };
        let sorted =
            self.sorted_nouns.map(|nouns| filter.sorted(next.as_deref(), records.len(), nouns));
        let view = ListView { list: self, filter, is_unfiltered, listed, next, sorted };
        Ok((view, records))
    }
}

/// A list with its filter, without its records.
pub(crate) struct ListView {
    pub(crate) list: &'static List,
    pub(crate) filter: Filter,
    pub(crate) is_unfiltered: bool,
    /// The reason why there are no records, if there is one.
    pub(crate) listed: Listed<()>,
    pub(crate) next: Option<String>,
    /// The texts and links of a list that can be sorted.
    pub(crate) sorted: Option<Sorted>,
}

#[derive(Template)]
#[template(path = "list.html")]
struct ListPage {
    page: Page,
    view: ListView,
    table: Table,
}

impl ListView {
    pub(crate) fn show(self, page: Page, table: Table) -> PageResult {
        html(&ListPage { page, view: self, table })
    }
}
