//! Endpoints with their state. Only the states of one page are read.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use api::delivery::EndpointView;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::endpoint_state::EndpointState;
use domain::merchant::{Interface, Merchant};
use domain::message_kind::MessageKind;
use platform::{Timestamp, database::DatabaseError};

use super::endpoint_view::new_view;
use crate::engine::Engine;
use crate::store::{self, EndpointKey, EndpointResults};

/// Number of endpoints whose states are read at once.
const BATCH: i64 = 200;
/// Batches that one page reads. Many endpoints of one state may be paused or no longer set.
const MAX_BATCHES: usize = 10;

/// The endpoints that a list shows.
pub(super) struct Selection<'a> {
    pub(super) engine: &'a Engine,
    pub(super) merchant: Option<&'a MerchantId>,
    pub(super) state: Option<EndpointState>,
}

impl Selection<'_> {
    /// Returns at least `rows` endpoints after `after` if there are that many, by merchant and kind. If the
    /// search stopped at its limit, the last endpoint that it read comes with them.
    pub(super) async fn page(
        &self,
        conn: &mut AsyncPgConnection,
        mut after: Option<EndpointKey>,
        rows: usize,
    ) -> Result<(Vec<EndpointView>, Option<EndpointKey>), DatabaseError> {
        let mut found = Vec::new();
        for _ in 0..MAX_BATCHES {
            let keys = self.next_keys(conn, after.as_ref()).await?;
            let is_last = keys.len() < usize::try_from(BATCH).unwrap_or_default();
            let views = views(self.engine, conn, &keys).await?;
            let is_listed =
                |view: &EndpointView| self.state.is_none_or(|state| view.state == state);
            found.extend(views.into_iter().filter(is_listed));
            if is_last || found.len() >= rows {
                return Ok((found, None));
            }
            after = keys.into_iter().last();
        }
        Ok((found, after))
    }

    /// Returns the next endpoints that may have the state.
    async fn next_keys(
        &self,
        conn: &mut AsyncPgConnection,
        after: Option<&EndpointKey>,
    ) -> Result<Vec<EndpointKey>, DatabaseError> {
        let merchant = self.merchant.map(MerchantId::as_str);
        match self.state {
            Some(EndpointState::Failing) => {
                store::failing_endpoints(conn, merchant, after, BATCH).await
            }
            Some(EndpointState::Ok | EndpointState::NotTried | EndpointState::Paused) | None => {
                Ok(self.set_endpoints(after))
            }
        }
    }

    /// Returns the next endpoints that are set, and paused if only those are listed.
    fn set_endpoints(&self, after: Option<&EndpointKey>) -> Vec<EndpointKey> {
        let is_listed = |merchant: &Merchant, kind: MessageKind| {
            let endpoint = merchant.endpoints.get(&Interface::Message(kind));
            let only_paused = self.state == Some(EndpointState::Paused);
            endpoint.is_some_and(|endpoint| endpoint.paused || !only_paused)
        };
        let endpoints = |merchant: &Arc<Merchant>| {
            let kinds = self.engine.kinds.iter().filter(|kind| is_listed(merchant, **kind));
            let key = |kind: &MessageKind| (merchant.identifier.to_string(), kind.to_string());
            let mut keys: Vec<_> = kinds.map(key).collect();
            keys.sort();
            keys
        };
        let first = self.merchant.cloned().or_else(|| after?.0.parse().ok());
        let from = first.map_or(Bound::Unbounded, Bound::Included);
        let to = self.merchant.map_or(Bound::Unbounded, |only| Bound::Included(only.clone()));
        self.engine
            .merchants
            .all()
            .range((from, to))
            .flat_map(|(_, merchant)| endpoints(merchant))
            .filter(|key| after.is_none_or(|after| key > after))
            .take(usize::try_from(BATCH).unwrap_or_default())
            .collect()
    }
}

/// Returns those of the endpoints that are set, with their states.
pub(super) async fn views(
    engine: &Engine,
    conn: &mut AsyncPgConnection,
    keys: &[EndpointKey],
) -> Result<Vec<EndpointView>, DatabaseError> {
    let (merchants, kinds): (Vec<_>, Vec<_>) =
        keys.iter().map(|(merchant, kind)| (merchant.as_str(), kind.as_str())).unzip();
    let results = store::endpoint_results(conn, (&merchants, &kinds)).await?.into_iter();
    let results: HashMap<_, _> =
        results.map(|it| ((it.merchant.clone(), it.kind.clone()), it)).collect();
    Ok(keys.iter().filter_map(|key| view(engine, key, results.get(key))).collect())
}

fn view(
    engine: &Engine,
    key: &EndpointKey,
    results: Option<&EndpointResults>,
) -> Option<EndpointView> {
    let kind: MessageKind = key.1.parse().ok().filter(|kind| engine.kinds.contains(kind))?;
    let merchant = engine.merchants.get(&key.0.parse().ok()?)?;
    let is_paused = merchant.endpoints.get(&Interface::Message(kind))?.paused;
    let (state, since) = state(is_paused, results);
    Some(new_view(&merchant.identifier, kind, state, since))
}

/// Returns the state of an endpoint, and the time since which it has that state.
fn state(is_paused: bool, results: Option<&EndpointResults>) -> (EndpointState, Option<Timestamp>) {
    let last_success_at = results.and_then(|it| it.last_success_at);
    match results.and_then(|it| it.failing_since) {
        _ if is_paused => (EndpointState::Paused, None),
        Some(since) => (EndpointState::Failing, Some(since)),
        None if last_success_at.is_none() => (EndpointState::NotTried, None),
        None => (EndpointState::Ok, None),
    }
}
