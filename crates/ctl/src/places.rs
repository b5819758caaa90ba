//! The settings that say where each service is.

use crate::settings::Setting;

const fn service(name: &'static str, what: &'static str) -> Setting {
    Setting { name, flag: Some("--service-url"), what }
}

pub(crate) const ORDERS: Setting = service("ORDERS_URL", "the address of the order intake");
pub(crate) const RETURNS: Setting = service("RMA_URL", "the address of the RMA engine");
pub(crate) const EXCHANGE: Setting = service("EXCHANGE_URL", "the address of the exchange service");
pub(crate) const WAREHOUSE: Setting =
    service("WAREHOUSE_URL", "the address of the warehouse notifier");
