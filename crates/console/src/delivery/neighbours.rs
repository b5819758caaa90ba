//! The deliveries before and after a delivery with the same ordering key.

use api::delivery::DeliveryView;
use futures_util::future::join;
use pages::api::{ApiError, Part, Service};
use uuid::Uuid;

use crate::{
    Page, SignedIn,
    deliveries::Entry,
    markup::{badge, link, text},
    record_list::Records,
    states::Shown as _,
    table::Table,
};

/// The deliveries on each side.
const EACH_SIDE: usize = 3;
/// Newer deliveries are found among this many.
const SEARCHED: &str = "100";

/// Loads the deliveries with the same ordering key, newest first. A delivery without a key has no others.
pub(super) async fn load(
    signed_in: &SignedIn,
    service: Service,
    delivery: &DeliveryView,
) -> Result<Part<Vec<Entry>>, ApiError> {
    let Some(key) = &delivery.ordering_key else { return Ok(Part::Loaded(Vec::new())) };
    let id = delivery.id.to_string();
    let each = EACH_SIDE.to_string();
    let search = async |after: &str, limit: &str| {
        let query = [
            ("merchant", delivery.merchant.as_str()),
            ("ordering_key", key.as_str()),
            ("after", after),
            ("limit", limit),
        ];
        signed_in.api.get::<Records<DeliveryView>>(service, "v1/deliveries", &query).await
    };
    let (newer, older) = join(search("", SEARCHED), search(&id, &each)).await;
    let found = newer.and_then(|newer| Ok(around(newer.records, delivery, older?.records)));
    let entry = |delivery| Entry { service, delivery };
    Part::new(found.map(|found| found.into_iter().map(entry).collect()))
}

/// The delivery itself has no link.
pub(super) fn table(entries: &[Entry], shown: Uuid, page: &Page) -> Table {
    Table::of("Messages of the same ordering key", entries)
        .cell("State", |it| badge(it.delivery.tone(), it.delivery.state))
        .head("Event", |it| match &it.delivery {
            DeliveryView { id, event, .. } if *id == shown => text(format!("{event} (this one)")),
            DeliveryView { event, .. } => link(it.url(), event),
        })
        .number("Number", |it| text(it.delivery.sequence))
        .response(page)
        .table()
}

/// A few newer deliveries, the delivery itself, and the older ones.
fn around(
    newer: Vec<DeliveryView>,
    delivery: &DeliveryView,
    older: Vec<DeliveryView>,
) -> Vec<DeliveryView> {
    let mut newer: Vec<_> = newer.into_iter().filter(|other| other.id > delivery.id).collect();
    let nearest = newer.split_off(newer.len().saturating_sub(EACH_SIDE));
    nearest.into_iter().chain([delivery.clone()]).chain(older).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    fn delivery(id: u32) -> DeliveryView {
        fixtures::delivery(&json!({ "id": format!("00000000-0000-7000-8000-{id:012}") }))
    }

    #[test]
    fn the_nearest_neighbours_are_shown() {
        let newest = [9, 8, 7, 6, 5, 4].map(delivery).to_vec();
        let around = around(newest, &delivery(5), [4, 3].map(delivery).to_vec());
        let ids: Vec<_> = around.iter().map(|one| one.id.as_u128() % 10).collect();
        assert_eq!(ids, [8, 7, 6, 5, 4, 3]);
    }
}
