//! A merchant that can be measured with.

use std::collections::BTreeMap;

use domain::kind::Kind;
use domain::merchant::{Authentication, Endpoint, Interface, Merchant};
use testkit::merchant;

/// A merchant whose endpoints are paused: messages wait in the ledger, and nobody is called.
pub(crate) fn paused_merchant(name: &str) -> Merchant {
    let mut merchant = merchant(name);
    for kind in Kind::ALL {
        let endpoint = Endpoint {
            url: None,
            path: None,
            headers: BTreeMap::new(),
            authentication: Authentication::None,
            timeout_ms: None,
            paused: true,
            signing_secrets: Vec::new(),
        };
        merchant.endpoints.insert(Interface::Message(kind), endpoint);
    }
    merchant
}
