//! A signed-in person for unit tests. No service responds to the calls of the pages.

use std::{collections::BTreeMap, net::Ipv4Addr};

use pages::api::Api;
use platform::Clock;
use serde_json::{Value, json};

use crate::{Page, Section, SignedIn};

/// A person with this role. `changes` are further fields of the person.
pub(crate) fn signed_in(role: &str, merchant: Option<&str>, changes: &Value) -> SignedIn {
    let mut person = json!({
        "email": "ada@acme.example", "name": "Ada", "role": role, "merchant": merchant,
    });
    for (name, value) in changes.as_object().into_iter().flatten() {
        person[name] = value.clone();
    }
    SignedIn {
        person: serde_json::from_value(person).unwrap(),
        api: Api::new(BTreeMap::new()).unwrap().caller(Ipv4Addr::LOCALHOST.into(), None),
        zone: chrono_tz::Tz::UTC,
        notice: None,
        now: Clock::system().now(),
    }
}

pub(crate) fn page(signed_in: &SignedIn) -> Page {
    signed_in.page(Section::Account)
}
