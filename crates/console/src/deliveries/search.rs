//! Searches the deliveries of all services that deliver messages.
//!
//! The ids of deliveries are UUIDv7, which grow with time. So one order and one cursor serve all
//! services: the services return deliveries whose id is smaller than `after`, or larger if the oldest come first.

use std::cmp::Reverse;

use api::delivery::DeliveryView;
use futures_util::future::join_all;
use pages::api::{ApiError, ErrorBody, Service};
use uuid::Uuid;

use super::Entry;
use crate::{
    PageError, SignedIn,
    record_list::{Order, Records},
};

/// The number of deliveries on a page.
const PAGE: usize = 50;

/// A search in the three services.
pub(crate) struct Search {
    query: Vec<(&'static str, String)>,
    limit: usize,
    order: Order,
}

/// The deliveries of all services that responded.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) deliveries: Vec<Entry>,
    /// The cursor of the next page, if there is one.
    pub(crate) next: Option<Uuid>,
    pub(crate) unavailable: Vec<Service>,
    /// The reason why a service rejected the filter.
    pub(crate) rejected: Option<String>,
}

impl Search {
    pub(crate) fn new(query: Vec<(&'static str, String)>) -> Self {
        Self { query, limit: PAGE, order: Order::Newest }
    }

    /// A search behind a delivery, in an order.
    pub(crate) fn after(mut self, last: &str, order: Order) -> Self {
        self.query.push(("after", last.to_owned()));
        self.query.push(("order", order.value().to_owned()));
        Self { order, ..self }
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
            found.add(service, list, self.order)?;
        }
        found.sort(self.limit, self.order);
        Ok(found)
    }
}

impl Found {
    /// Adds the deliveries of one service. A service that does not respond leaves those of the others.
    fn add(
        &mut self,
        service: Service,
        list: Result<Records<DeliveryView>, ApiError>,
        order: Order,
    ) -> Result<(), PageError> {
        match list {
            Ok(list) => {
                // Deliveries behind a cursor are not known of every service.
                let next = list.next.and_then(|next| next.parse().ok());
                let cursors = [self.next, next].into_iter().flatten();
                self.next = match order {
                    Order::Newest => cursors.max(),
                    Order::Oldest => cursors.min(),
                };
                let entry = |delivery| Entry { service, delivery };
                self.deliveries.extend(list.records.into_iter().map(entry));
            }
            Err(
                ApiError::Unavailable { service }
                | ApiError::Unauthenticated { service }
                | ApiError::TooManyRequests { service, .. },
            ) => self.unavailable.push(service),
            Err(ApiError::Invalid(body)) => self.rejected = Some(explain(&body)),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Leaves the first deliveries. The others come again on the next page.
    fn sort(&mut self, limit: usize, order: Order) {
        let next = self.next;
        match order {
            Order::Newest => {
                self.deliveries.retain(|it| next.is_none_or(|next| it.delivery.id >= next));
                self.deliveries.sort_by_key(|it| Reverse(it.delivery.id));
            }
            Order::Oldest => {
                self.deliveries.retain(|it| next.is_none_or(|next| it.delivery.id <= next));
                self.deliveries.sort_by_key(|it| it.delivery.id);
            }
        }
        if self.deliveries.len() > limit {
            self.deliveries.truncate(limit);
            self.next = self.deliveries.last().map(|last| last.delivery.id);
        }
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
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    fn id(number: u32) -> String {
        format!("00000000-0000-7000-8000-{number:012}")
    }

    fn list(ids: &[u32], next: Option<u32>) -> Result<Records<DeliveryView>, ApiError> {
        let delivery = |number: &u32| fixtures::delivery(&json!({ "id": id(*number) }));
        Ok(Records { records: ids.iter().map(delivery).collect(), next: next.map(id) })
    }

    /// The numbers of the deliveries and of the cursor.
    fn numbers(found: &Found) -> (Vec<u128>, Option<u128>) {
        let number = |id: Uuid| id.as_u128() % 16;
        let shown = found.deliveries.iter().map(|entry| number(entry.delivery.id));
        (shown.collect(), found.next.map(number))
    }

    #[test]
    fn pages_of_several_services_are_merged_newest_first() {
        let mut found = Found::default();
        found.add(Service::RmaEngine, list(&[9, 5, 1], None), Order::Newest).unwrap();
        found.add(Service::Exchange, list(&[8, 6], None), Order::Newest).unwrap();
        let service = Service::WarehouseNotifier;
        found.add(service, Err(ApiError::Unavailable { service }), Order::Newest).unwrap();
        found.sort(4, Order::Newest);
        assert_eq!(numbers(&found), ([9, 8, 6, 5].into(), Some(5)));
        assert_eq!(found.unavailable, [service]);
    }

    #[test]
    fn a_list_without_further_pages_is_the_last_one() {
        let mut found = Found::default();
        found.add(Service::RmaEngine, list(&[2, 1], None), Order::Newest).unwrap();
        found.sort(2, Order::Newest);
        assert_eq!(numbers(&found), ([2, 1].into(), None));
    }

    #[test]
    fn a_page_ends_where_a_service_stopped_looking() {
        let mut found = Found::default();
        found.add(Service::RmaEngine, list(&[9, 2], None), Order::Newest).unwrap();
        found.add(Service::Exchange, list(&[], Some(4)), Order::Newest).unwrap();
        found.add(Service::WarehouseNotifier, list(&[5, 3], Some(3)), Order::Newest).unwrap();
        found.sort(4, Order::Newest);
        assert_eq!(numbers(&found), ([9, 5].into(), Some(4)));
    }

    #[test]
    fn the_oldest_deliveries_of_all_services_come_first() {
        let mut found = Found::default();
        let services = [Service::RmaEngine, Service::Exchange, Service::WarehouseNotifier];
        let lists = [list(&[1, 8], None), list(&[2], Some(6)), list(&[3, 7], Some(7))];
        for (service, list) in services.into_iter().zip(lists) {
            found.add(service, list, Order::Oldest).unwrap();
        }
        found.sort(4, Order::Oldest);
        assert_eq!(numbers(&found), ([1, 2, 3].into(), Some(6)));
        found.sort(2, Order::Oldest);
        assert_eq!(numbers(&found), ([1, 2].into(), Some(2)));
    }
}
