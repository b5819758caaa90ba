//! What is being placed at the moment, and how much more there is room for.

use std::collections::HashMap;

use platform::database::DatabaseError;
use tokio::task::{Id, JoinError, JoinSet};

use crate::store::confirmations::{Claimed, Space};

/// Confirmations of so many bytes are dealt with at once, however few they are. The longest one does
/// not count: it alone may be as long, and must not keep the others waiting.
const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;

pub(super) struct UnderWay {
    most: usize,
    tasks: JoinSet<Result<(), DatabaseError>>,
    places: HashMap<Id, Place>,
}

/// What a task works on.
struct Place {
    position: i64,
    merchant: String,
    bytes: usize,
}

impl UnderWay {
    pub(super) fn new(most: usize) -> Self {
        Self { most, tasks: JoinSet::new(), places: HashMap::new() }
    }

    /// What there is room for, if there is any.
    pub(super) fn space(&self) -> Option<Space> {
        let places = self.most.saturating_sub(self.places.len());
        let lengths = || self.places.values().map(|place| place.bytes);
        let counted = lengths().sum::<usize>() - lengths().max().unwrap_or(0);
        let bytes = MAX_BATCH_BYTES.saturating_sub(counted);
        (places > 0 && bytes > 0).then(|| Space {
            places: places.try_into().unwrap_or(i64::MAX),
            bytes: bytes.try_into().unwrap_or(i64::MAX),
            busy: self.places.values().map(|place| place.merchant.clone()).collect(),
        })
    }

    /// Begins to work on a confirmation. A task of its own: one that waits for a merchant holds up
    /// nobody, and a transaction never waits for us to look at it.
    pub(super) fn begin<F>(&mut self, claimed: Claimed, work: impl FnOnce(Claimed) -> F)
    where
        F: Future<Output = Result<(), DatabaseError>> + Send + 'static,
    {
        let place = Place {
            position: claimed.position,
            merchant: claimed.confirmed.merchant.to_string(),
            bytes: claimed.bytes,
        };
        let task = self.tasks.spawn(work(claimed)).id();
        self.places.insert(task, place);
    }

    /// Waits until one is done, and takes whatever else is done already; nothing if nothing is under
    /// way. One that failed is taken up again when its lease is over.
    pub(super) async fn done(&mut self) -> Option<Result<(), DatabaseError>> {
        let first = self.tasks.join_next_with_id().await?;
        let mut done = self.leave(first);
        while let Some(next) = self.tasks.try_join_next_with_id() {
            done = done.and(self.leave(next));
        }
        Some(done)
    }

    fn leave(
        &mut self,
        ended: Result<(Id, Result<(), DatabaseError>), JoinError>,
    ) -> Result<(), DatabaseError> {
        let (id, done) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                let place = self.places.get(&error.id());
                let position = place.map_or(0, |place| place.position);
                tracing::error!(%error, "placing confirmation {position} broke off");
                (error.id(), Ok(()))
            }
        };
        self.places.remove(&id);
        done
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use platform::Clock;

    use super::*;
    use crate::tests::confirmed;

    const MIB: usize = 1024 * 1024;

    fn claimed(bytes: usize) -> Claimed {
        Claimed {
            position: 1,
            confirmed: confirmed("R-1", "1001", &[]),
            received_at: Clock::system().now(),
            traceparent: None,
            taken: false,
            bytes,
        }
    }

    #[tokio::test]
    async fn the_longest_one_keeps_nobody_waiting() {
        let mut under_way = UnderWay::new(4);
        let mut left = Vec::new();
        for mebibytes in [9, 3, 6] {
            under_way.begin(claimed(mebibytes * MIB), |_| pending());
            left.push(under_way.space().map(|space| (space.places, space.bytes >> 20)));
        }
        assert_eq!(left, [Some((3, 8)), Some((2, 5)), None]);
    }

    #[tokio::test]
    async fn whoever_is_under_way_is_named_until_it_is_done() {
        let mut under_way = UnderWay::new(3);
        under_way.begin(claimed(0), |_| pending());
        under_way.begin(claimed(0), |_| ready(Ok(())));
        assert_eq!(under_way.space().unwrap().busy, ["acme", "acme"]);
        assert!(under_way.done().await.unwrap().is_ok());
        assert_eq!(under_way.space().unwrap().busy, ["acme"]);
    }

    #[tokio::test]
    async fn one_that_panics_gives_its_place_back() {
        let mut under_way = UnderWay::new(1);
        under_way.begin(claimed(0), async |_| panic!("on purpose"));
        assert_eq!(under_way.space(), None);
        assert!(under_way.done().await.unwrap().is_ok());
        assert!(under_way.space().is_some());
        assert!(under_way.done().await.is_none());
    }
}
