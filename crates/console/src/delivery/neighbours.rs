//! The deliveries before and after a delivery with the same ordering key.

use pages::api::{ApiError, Part, Service};

use crate::{
    Section, SignedIn,
    deliveries::{Delivery, DeliveryList, Entry},
};

/// The deliveries on each side.
const EACH_SIDE: usize = 3;
/// Newer deliveries are found among this many.
const SEARCHED: &str = "100";

/// Deliveries with the same ordering key, newest first.
#[derive(Default)]
pub(super) struct Neighbours {
    pub(super) entries: Vec<Entry>,
}

impl Neighbours {
    /// Loads the neighbours. A delivery without an ordering key has none.
    pub(super) async fn load(
        signed_in: &SignedIn,
        service: Service,
        delivery: &Delivery,
    ) -> Result<Part<Self>, ApiError> {
        let Some(key) = &delivery.ordering_key else { return Ok(Part::Loaded(Self::default())) };
        let (id, each) = (delivery.id.to_string(), EACH_SIDE.to_string());
        let search = async |after: &str, limit: &str| {
            let query = [
                ("merchant", delivery.merchant.as_str()),
                ("ordering_key", key.as_str()),
                ("after", after),
                ("limit", limit),
            ];
            signed_in.api.get::<DeliveryList>(service, "v1/deliveries", &query).await
        };
        let (newer, older) =
            futures_util::future::join(search("", SEARCHED), search(&id, &each)).await;
        let found = newer.and_then(|newer| Ok((newer.deliveries, older?.deliveries)));
        let page = signed_in.page(Section::Deliveries);
        let entries = |(newer, older)| Self {
            entries: around(newer, delivery, older)
                .into_iter()
                .map(|neighbour| Entry::new(&page, service, neighbour))
                .collect(),
        };
        Part::new(found.map(entries))
    }
}

/// A few newer deliveries, the delivery itself, and the older ones.
fn around(newer: Vec<Delivery>, delivery: &Delivery, older: Vec<Delivery>) -> Vec<Delivery> {
    let mut newer: Vec<_> = newer.into_iter().filter(|other| other.id > delivery.id).collect();
    let nearest = newer.split_off(newer.len().saturating_sub(EACH_SIDE));
    nearest.into_iter().chain([delivery.clone()]).chain(older).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn delivery(id: u32) -> Delivery {
        serde_json::from_value(json!({
            "id": format!("00000000-0000-7000-8000-{id:012}"), "merchant": "acme", "kind": "rma",
            "event": "rma.created", "state": "dead", "created_at": "2026-11-16T08:00:00Z",
        }))
        .unwrap()
    }

    #[test]
    fn the_nearest_neighbours_are_shown() {
        let newest = [9, 8, 7, 6, 5, 4].map(delivery).to_vec();
        let around = around(newest, &delivery(5), [4, 3].map(delivery).to_vec());
        let ids: Vec<_> = around.iter().map(|one| one.id.as_u128() % 10).collect();
        assert_eq!(ids, [8, 7, 6, 5, 4, 3]);
    }
}
