//! The services that pages call.

use std::{collections::BTreeMap, fmt};

use platform::config;
use serde::Deserialize;
use url::Url;

/// The base URLs of all services.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceUrls {
    #[serde(deserialize_with = "config::http_url")]
    pub auth: Url,
    #[serde(deserialize_with = "config::http_url")]
    pub orders: Url,
    #[serde(deserialize_with = "config::http_url")]
    pub returns: Url,
    #[serde(deserialize_with = "config::http_url")]
    pub exchange: Url,
    #[serde(deserialize_with = "config::http_url")]
    pub warehouse: Url,
}

impl From<ServiceUrls> for BTreeMap<Service, Url> {
    fn from(urls: ServiceUrls) -> Self {
        Self::from([
            (Service::Auth, urls.auth),
            (Service::OrderIntake, urls.orders),
            (Service::RmaEngine, urls.returns),
            (Service::Exchange, urls.exchange),
            (Service::WarehouseNotifier, urls.warehouse),
        ])
    }
}

/// A service that pages call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    Auth,
    OrderIntake,
    RmaEngine,
    Exchange,
    WarehouseNotifier,
}

impl Service {
    pub const ALL: [Self; 5] =
        [Self::Auth, Self::OrderIntake, Self::RmaEngine, Self::Exchange, Self::WarehouseNotifier];
    /// The services that deliver messages to merchants.
    pub const DELIVERING: [Self; 3] = [Self::RmaEngine, Self::Exchange, Self::WarehouseNotifier];

    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::OrderIntake => "order-intake",
            Self::RmaEngine => "rma-engine",
            Self::Exchange => "exchange",
            Self::WarehouseNotifier => "warehouse-notifier",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.name() == name)
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
