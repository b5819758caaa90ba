//! The lists in which a text is searched.

use pages::api::Service;
use uuid::Uuid;

/// A shorter text begins too many identifiers.
const MIN_PREFIX_CHARS: usize = 3;
/// Identifiers of returns have a fixed beginning, `RMA-`.
const MIN_RMA_PREFIX_CHARS: usize = 8;

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
    let mut targets: Vec<_> = spellings(text)
        .into_iter()
        .map(|value| Target { value, ..target(OrderIntake, "v1/orders", "identifier", "orders") })
        .collect();
    if text.parse::<Uuid>().is_ok() {
        targets.push(target(
            Exchange,
            "v1/exchange_orders",
            "transaction_id",
            "exchange orders with the transaction",
        ));
    }
    targets.extend([
        Target {
            // Our own identifiers have capital letters only.
            value: text.to_ascii_uppercase(),
            ..target(RmaEngine, "v1/returns", "rma_identifier", "returns")
        },
        target(RmaEngine, "v1/returns", "tracking_number", "returns with the tracking number"),
        target(Exchange, "v1/exchange_orders", "exchange_order_identifier", "exchange orders"),
        target(WarehouseNotifier, RECORDS, "asn_number", "ASNs"),
        target(WarehouseNotifier, RECORDS, "tracking_number", "ASNs with the tracking number"),
    ]);
    targets
}

/// The ways in which merchants write an order number: as it was typed, in capital letters, with and without `#`.
pub(crate) fn spellings(text: &str) -> Vec<String> {
    let plain = text.trim_start_matches('#');
    let upper = plain.to_uppercase();
    let mut spellings = vec![text.to_owned()];
    for spelling in [plain.to_owned(), upper.clone(), format!("#{plain}"), format!("#{upper}")] {
        if spelling.len() > usize::from(spelling.starts_with('#')) && !spellings.contains(&spelling)
        {
            spellings.push(spelling);
        }
    }
    spellings
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
    let orders = Service::OrderIntake;
    let records = Service::WarehouseNotifier;
    let mut targets = vec![
        target(orders, "v1/orders", "identifier_prefix", "orders that begin with the text"),
        target(records, RECORDS, "order_identifier", "ASNs and drop shipments of the order"),
        target(Service::RmaEngine, "v1/returns", "sku", "returns of the SKU"),
    ];
    if text.chars().count() >= MIN_RMA_PREFIX_CHARS {
        targets.push(Target {
            value: text.to_ascii_uppercase(),
            ..target(
                Service::RmaEngine,
                "v1/returns",
                "rma_identifier_prefix",
                "returns that begin with the text",
            )
        });
    }
    targets
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
        assert_eq!((broader("10").len(), broader("1001").len()), (0, 3));
        assert_eq!(broader("rma-7k2x").last().unwrap().value, "RMA-7K2X");
    }

    #[test]
    fn a_transaction_finds_its_exchange_order() {
        let transaction = "0198c0de-0000-4abc-8000-000000000001";
        assert!(filters(transaction).contains(&"transaction_id"));
        assert!(!filters("1001").contains(&"transaction_id"));
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
    fn an_order_is_found_in_capitals_and_with_or_without_a_number_sign() {
        assert_eq!(spellings("#s-1001"), ["#s-1001", "s-1001", "S-1001", "#S-1001"]);
        assert_eq!(spellings("1001"), ["1001", "#1001"]);
        assert_eq!(spellings("#"), ["#"]);
        let orders = targets("s-1").into_iter().filter(|it| it.filter == "identifier");
        let values: Vec<_> = orders.map(|target| target.value).collect();
        assert_eq!(values, ["s-1", "S-1", "#s-1", "#S-1"]);
    }

    #[test]
    fn nothing_is_searched_without_a_text() {
        assert!(targets("").is_empty() && broader("").is_empty());
    }
}
