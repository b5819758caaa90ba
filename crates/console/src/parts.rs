//! Parts of a page that come from several services.

use futures_util::future::join_all;
use pages::api::{ApiError, Caller, Part, Query, Service};
use serde::de::DeserializeOwned;

use crate::PageError;

/// Entries of several services, and the services that did not respond.
pub(crate) struct Loaded<T> {
    pub(crate) entries: Vec<T>,
    pub(crate) missing: Vec<Service>,
}

/// Calls several services. A service that does not have this operation yet, or that rejects the request, counts as
/// missing.
pub(crate) async fn each<T: DeserializeOwned>(
    api: &Caller,
    services: &[Service],
    path: &str,
    query: Query<'_>,
) -> Result<Loaded<(Service, T)>, PageError> {
    let calls =
        services.iter().map(async |service| (*service, api.get(*service, path, query).await));
    let mut loaded = Loaded { entries: Vec::new(), missing: Vec::new() };
    for (service, result) in join_all(calls).await {
        match result {
            Err(ApiError::NotFound | ApiError::Invalid(_)) => loaded.missing.push(service),
            result => match Part::new(result)? {
                Part::Loaded(value) => loaded.entries.push((service, value)),
                Part::Missing(service) => loaded.missing.push(service),
            },
        }
    }
    Ok(loaded)
}
