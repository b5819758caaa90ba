//! The lists in which a text is searched.

use pages::api::Service;

/// A shorter text begins too many identifiers.
const MIN_PREFIX_CHARS: usize = 3;

const RECORDS: &str = "v1/warehouse_records";

/// One search in one list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) service: Service,
    pub(super) path: &'static str,
    pub(super) filter: &'static str,
    pub(super) value: String,
    what: &'static str,
}

impl Target {
    /// The search in words, for the page.
    pub(super) fn words(&self) -> String {
        format!("{} ({})", self.what, self.service)
    }
}

/// The searches for an e-mail address or an identifier.
pub(super) fn targets(text: &str) -> Vec<Target> {
    use Service::{Exchange, OrderIntake, RmaEngine, WarehouseNotifier};
    let target = |service, path, filter, what| Target {
        service,
        path,
        filter,
        value: text.to_owned(),
        what,
    };
    if text.is_empty() {
        return Vec::new();
    }
    if text.contains('@') {
        return vec![
            target(OrderIntake, "v1/orders", "customer_email", "orders of the e-mail address"),
            target(RmaEngine, "v1/returns", "email", "returns of the e-mail address"),
        ];
    }
    let mut targets = vec![
        target(OrderIntake, "v1/orders", "identifier", "orders"),
        target(RmaEngine, "v1/returns", "rma_identifier", "returns"),
        target(RmaEngine, "v1/returns", "tracking_number", "returns with the tracking number"),
        target(Exchange, "v1/exchange_orders", "exchange_order_identifier", "exchange orders"),
        target(WarehouseNotifier, RECORDS, "asn_number", "ASNs"),
        target(WarehouseNotifier, RECORDS, "tracking_number", "ASNs with the tracking number"),
    ];
    for target in &mut targets {
        // Our own identifiers have capital letters only.
        if target.filter == "rma_identifier" {
            target.value = target.value.to_ascii_uppercase();
        }
    }
    targets
}

/// The searches that follow if nothing was found.
pub(super) fn broader(text: &str) -> Vec<Target> {
    if text.contains('@') || text.chars().count() < MIN_PREFIX_CHARS {
        return Vec::new();
    }
    let target = |service, path, filter, what| Target {
        service,
        path,
        filter,
        value: text.to_owned(),
        what,
    };
    vec![
        target(
            Service::OrderIntake,
            "v1/orders",
            "identifier_prefix",
            "orders that begin with the text",
        ),
        target(
            Service::WarehouseNotifier,
            RECORDS,
            "order_identifier",
            "ASNs and drop shipments of the order",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(text: &str) -> Vec<&'static str> {
        targets(text).iter().map(|target| target.filter).collect()
    }

    #[test]
    fn an_address_is_searched_as_one() {
        assert_eq!(filters("ada@shop.test"), ["customer_email", "email"]);
        assert!(broader("ada@shop.test").is_empty());
    }

    #[test]
    fn an_identifier_is_searched_everywhere() {
        let filters = filters("1001");
        for filter in
            ["identifier", "rma_identifier", "tracking_number", "exchange_order_identifier"]
        {
            assert!(filters.contains(&filter), "{filter}");
        }
        assert_eq!((broader("10").len(), broader("1001").len()), (0, 2));
    }

    #[test]
    fn an_rma_is_found_in_any_case() {
        let targets = targets("rma-1a");
        let values: Vec<_> = targets
            .iter()
            .filter(|target| target.service == Service::RmaEngine)
            .map(|target| target.value.as_str())
            .collect();
        assert_eq!(values, ["RMA-1A", "rma-1a"]);
    }

    #[test]
    fn nothing_is_searched_without_a_text() {
        assert!(targets("").is_empty() && broader("").is_empty());
    }
}
