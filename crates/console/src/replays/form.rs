//! The form of a new replay. The URL holds the filter, so that a reload shows the same.

use pages::form::Fields;
use serde_json::{Map, Value, json};

use crate::{
    SignedIn,
    deliveries::conditions,
    filter::{Condition, Filter},
};

const DEFAULT_PER_SECOND: u32 = 50;

/// The conditions. Pending deliveries are sent anyway, so they cannot be chosen.
const CONDITIONS: &[Condition] =
    &conditions(|| ["dead", "delivered"].map(|state| (state, state.to_owned())).into());

/// The fields as they were typed.
#[derive(Clone)]
pub(super) struct NewReplay {
    pub(super) filter: Filter,
    /// Set to replay deliveries of all merchants.
    pub(super) all: String,
    /// Set to replay superseded deliveries too.
    pub(super) force: String,
    pub(super) per_second: String,
}

/// The reasons why the form is not valid.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Problems {
    is_filter_valid: bool,
    pub(super) per_second: Option<&'static str>,
    /// The reason why nothing is searched yet.
    pub(super) hint: Option<&'static str>,
}

impl Problems {
    pub(super) fn is_empty(&self) -> bool {
        self.is_filter_valid && self.per_second.is_none() && self.hint.is_none()
    }
}

impl NewReplay {
    /// The form with its defaults. A person of a merchant replays that merchant's deliveries only.
    pub(super) fn read(signed_in: &SignedIn, fields: &Fields) -> Self {
        let mut filter = Filter::read(signed_in, "/deliveries", CONDITIONS, fields);
        let own_merchant = signed_in.person.merchant.as_deref();
        if let Some(own) = own_merchant {
            filter.set("merchant", own);
        }
        if filter.value("state").is_empty() {
            filter.set("state", "dead");
        }
        let all = if own_merchant.is_some() { "" } else { fields.text("all") };
        let per_second = match fields.text("per_second") {
            "" => DEFAULT_PER_SECOND.to_string(),
            typed => typed.to_owned(),
        };
        let force = fields.text("force").to_owned();
        let mut filter = filter.with_zone(fields).with_order(fields).with_time_order();
        if filter.value("state") == "pending" {
            // The hint says more.
            filter.accept("state");
        }
        Self { filter, all: all.to_owned(), force, per_second }
    }

    fn merchant(&self) -> &str {
        self.filter.value("merchant")
    }

    pub(super) fn problems(&self) -> Problems {
        let hint = if self.filter.value("state") == "pending" {
            Some("Pending deliveries are sent anyway. Choose dead or delivered ones.")
        } else if self.merchant().is_empty() && !self.is_for_all() {
            Some("Name a merchant, or check “All merchants”, to see which deliveries match.")
        } else if !self.merchant().is_empty() && self.is_for_all() {
            Some("Leave the merchant empty to replay deliveries of all merchants.")
        } else {
            None
        };
        let is_valid = self.rate().is_some_and(|rate| (1..=1000).contains(&rate));
        let per_second = (!is_valid).then_some("Write a number from 1 to 1000.");
        Problems { is_filter_valid: self.filter.is_valid(), per_second, hint }
    }

    fn rate(&self) -> Option<u32> {
        self.per_second.parse().ok()
    }

    pub(super) fn is_for_all(&self) -> bool {
        !self.all.is_empty()
    }

    pub(super) fn is_forced(&self) -> bool {
        !self.force.is_empty()
    }

    /// The request of a dry run.
    pub(super) fn dry_run(&self) -> Value {
        let mut body = self.request();
        body.insert("dry_run".to_owned(), true.into());
        body.into()
    }

    /// The request that starts a replay of this many deliveries.
    pub(super) fn start(&self, matches: i64, tolerance: i64) -> Value {
        let mut body = self.request();
        body.insert("expect_matches".to_owned(), matches.into());
        body.insert("tolerance".to_owned(), tolerance.into());
        body.into()
    }

    fn request(&self) -> Map<String, Value> {
        let field = |(name, value): (&str, String)| {
            let number = value.parse::<u16>().ok().filter(|_| name == "status");
            (name.to_owned(), number.map_or(Value::String(value), Value::from))
        };
        let filter: Map<_, _> = self.filter.request().into_iter().map(field).collect();
        let all = self.merchant().is_empty() && self.is_for_all();
        let body = json!({
            "filter": filter, "all": all, "force": self.is_forced(), "per_second": self.rate(),
        });
        match body {
            Value::Object(body) => body,
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn form(query: &str, own: Option<&str>) -> NewReplay {
        let role = if own.is_some() { "merchant-admin" } else { "operator" };
        let signed_in = fixtures::signed_in(role, own, &json!({}));
        NewReplay::read(&signed_in, &serde_html_form::from_str(query).unwrap())
    }

    #[test]
    fn a_replay_names_a_merchant_or_all() {
        let hint = |query: &str, own| form(query, own).problems().hint.is_some();
        assert!(hint("", None));
        assert!(hint("merchant=acme&all=true", None));
        assert!(hint("merchant=acme&state=pending", None));
        assert!(!hint("all=true", None));
        assert!(!hint("merchant=acme", None));
        assert!(!hint("", Some("acme")));
    }

    #[test]
    fn the_request_has_the_filter_with_its_types() {
        let query = "merchant=acme&status=503&from=2026-11-16T08:00&force=true&per_second=20";
        let form = form(query, None);
        assert!(form.problems().is_empty());
        let filter = json!({
            "merchant": "acme", "state": "dead", "status": 503, "from": "2026-11-16T08:00:00Z",
        });
        let expected = json!({
            "filter": filter, "all": false, "force": true, "per_second": 20,
            "expect_matches": 12, "tolerance": 0,
        });
        assert_eq!(form.start(12, 0), expected);
        assert_eq!(form.dry_run()["dry_run"], true);
    }

    #[test]
    fn the_rate_is_limited() {
        for (typed, is_valid) in
            [("", true), ("1000", true), ("0", false), ("1001", false), ("x", false)]
        {
            let form = form(&format!("all=true&per_second={typed}"), None);
            assert_eq!(form.problems().is_empty(), is_valid, "{typed}");
        }
    }
}
