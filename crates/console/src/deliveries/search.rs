//! Searches the deliveries of all services that deliver messages.
//!
//! The ids of deliveries are UUIDv7, which grow with time. So one order and one cursor serve all
//! services: the services return deliveries whose id is smaller than `after`.

use std::cmp::Reverse;

use futures_util::future::join_all;
use pages::api::{ApiError, ErrorBody, Service};

use super::{Delivery, DeliveryFilter, DeliveryList};
use crate::{error::PageError, person::SignedIn};

/// The number of deliveries on a page.
const PAGE: usize = 50;

/// A search in the three services.
pub(crate) struct Search {
    query: Vec<(&'static str, String)>,
    limit: usize,
}

/// The deliveries of all services that responded, newest first.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) deliveries: Vec<(Service, Delivery)>,
    pub(crate) has_more: bool,
    pub(crate) unavailable: Vec<Service>,
    /// The reason why a service rejected the filter.
    pub(crate) rejected: Option<String>,
}

impl Search {
    pub(crate) fn new(filter: &DeliveryFilter) -> Self {
        let mut query = filter.request();
        query.push(("after", filter.after.clone()));
        Self { query, limit: PAGE }
    }

    /// A search for fewer deliveries.
    pub(crate) fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    pub(crate) async fn load(self, signed_in: &SignedIn) -> Result<Found, PageError> {
        let limit = self.limit.to_string();
        let query: Vec<_> = self
            .query
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .chain([("limit", limit.as_str())])
            .collect();
        let lists = join_all(Service::DELIVERING.map(async |service| {
            (service, signed_in.api.get(service, "v1/deliveries", &query).await)
        }))
        .await;
        let mut found = Found::default();
        for (service, list) in lists {
            found.add(service, list)?;
        }
        found.sort(self.limit);
        Ok(found)
    }
}

impl Found {
    /// Adds the deliveries of one service. A service that does not respond leaves those of the others.
    fn add(
        &mut self,
        service: Service,
        list: Result<DeliveryList, ApiError>,
    ) -> Result<(), PageError> {
        match list {
            Ok(list) => {
                self.has_more |= list.next.is_some();
                self.deliveries.extend(list.deliveries.into_iter().map(|one| (service, one)));
            }
            Err(ApiError::Unavailable { service }) => self.unavailable.push(service),
            Err(ApiError::Invalid(body)) => self.rejected = Some(explain(&body)),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Leaves the newest deliveries. The others come again on the next page.
    fn sort(&mut self, limit: usize) {
        self.deliveries.sort_by_key(|(_, delivery)| Reverse(delivery.id));
        self.has_more |= self.deliveries.len() > limit;
        self.deliveries.truncate(limit);
    }
}

/// The reason of a rejected filter. An error of a field says more than the summary.
pub(crate) fn explain(body: &ErrorBody) -> String {
    let Some(error) = body.errors.first() else { return body.message.clone() };
    let name = error.field.trim_start_matches("$.").trim_start_matches("filter.");
    format!("{name}: {}", body.field(&error.field).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn delivery(id: u32) -> Value {
        json!({
            "id": format!("00000000-0000-7000-8000-{id:012}"), "merchant": "acme", "kind": "rma",
            "event": "rma.created", "state": "dead", "created_at": "2026-11-16T08:00:00Z",
        })
    }

    fn list(ids: &[u32], next: Option<&str>) -> Result<DeliveryList, ApiError> {
        let deliveries: Vec<_> = ids.iter().copied().map(delivery).collect();
        Ok(serde_json::from_value(json!({ "deliveries": deliveries, "next": next })).unwrap())
    }

    #[test]
    fn pages_of_several_services_are_merged_newest_first() {
        let mut found = Found::default();
        found.add(Service::RmaEngine, list(&[9, 5, 1], None)).unwrap();
        found.add(Service::Exchange, list(&[8, 6], None)).unwrap();
        let service = Service::WarehouseNotifier;
        found.add(service, Err(ApiError::Unavailable { service })).unwrap();
        found.sort(4);
        let last = |(_, delivery): &(Service, Delivery)| delivery.id.as_u128() % 10;
        assert_eq!(found.deliveries.iter().map(last).collect::<Vec<_>>(), [9, 8, 6, 5]);
        assert!(found.has_more);
        assert_eq!(found.unavailable, [service]);
    }

    #[test]
    fn a_list_without_further_pages_is_the_last_one() {
        let mut found = Found::default();
        found.add(Service::RmaEngine, list(&[2, 1], None)).unwrap();
        found.sort(2);
        assert!(!found.has_more);
        found.add(Service::Exchange, list(&[3], Some("3"))).unwrap();
        found.sort(3);
        assert!(found.has_more);
    }
}
