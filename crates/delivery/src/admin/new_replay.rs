//! The body of a request to replay deliveries.

use api::delivery::{Filter, State};
use domain::access::MerchantId;
use domain::delivery::OUTCOMES;
use domain::json::{
    Object, integer, object, one_of, parsed, read_fields, text, timestamp, variant,
};
use domain::message_kind::MessageKind;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// A request to replay deliveries.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewReplay {
    /// Deliveries to replay: dead ones, or delivered ones if `state` is `delivered`. It names a
    /// merchant, unless `all` is true or the token is limited to one.
    #[schema(required = false)]
    pub(super) filter: Filter,
    /// Replay deliveries of all merchants, or all of the merchant that the token is limited to.
    #[schema(required = false, default = false)]
    pub(super) all: bool,
    /// Replay deliveries even if a newer message of their ordering key was delivered.
    #[schema(required = false, default = false)]
    pub(super) force: bool,
    /// Count and show the deliveries that match, and replay none.
    #[schema(required = false, default = false)]
    pub(super) dry_run: bool,
    #[schema(required = false, default = 50, minimum = 1, maximum = 1000)]
    pub(super) per_second: i32,
    /// Number of matches of a dry run. If the number has changed, or cannot be counted, nothing is
    /// replayed.
    #[schema(required = false, minimum = 0, maximum = 100000)]
    pub(super) expect_matches: Option<i64>,
    /// Difference from `expect_matches` that is accepted.
    #[schema(required = false, default = 0, minimum = 0, maximum = 100000)]
    pub(super) tolerance: i64,
}

pub(super) const DEFAULT_PER_SECOND: i32 = 50;
const MAX_PER_SECOND: i32 = 1000;
/// Matches are counted among this many messages or attempts.
pub(super) const MAX_COUNTED: i64 = 100_000;
const MAX_ORDERING_KEY: usize = 1000;

impl NewReplay {
    /// Reads a request. A caller that is limited to one merchant need not name it.
    pub(super) fn read(body: &Object<'_>, is_limited: bool) -> Option<Self> {
        let all = body.flag("all");
        let filter = body.optional("filter", object(read_filter));
        if let (Some(all), Some(filter)) = (all, &filter) {
            let merchant = filter.as_ref().and_then(|filter| filter.merchant.as_ref());
            if all && merchant.is_some() {
                body.invalid("all", "must not be true if the filter names a merchant");
            }
            if !all && !is_limited && merchant.is_none() {
                body.invalid("filter", "must name a merchant, unless `all` is true");
            }
        }
        let rate = body.optional("per_second", integer(1..=MAX_PER_SECOND));
        let tolerance = body.optional("tolerance", integer(0..=MAX_COUNTED));
        read_fields!(body => Self {
            filter: filter.map(Option::unwrap_or_default),
            all: all,
            force: body.flag("force"),
            dry_run: body.flag("dry_run"),
            // The outer `None` is an invalid field, the inner one an absent field.
            per_second: rate.map(|rate| rate.unwrap_or(DEFAULT_PER_SECOND)),
            expect_matches: body.optional("expect_matches", integer(0..=MAX_COUNTED)),
            tolerance: tolerance.map(Option::unwrap_or_default),
        })
    }
}

fn read_filter(filter: &Object<'_>) -> Option<Filter> {
    let outcomes: Vec<_> = OUTCOMES.into_iter().map(|name| (name, name.to_owned())).collect();
    let states = [("dead", State::Dead), ("delivered", State::Delivered)];
    let merchant = |text: &str| text.parse::<MerchantId>().map(String::from);
    let kind = filter.optional("kind", variant::<MessageKind>);
    read_fields!(filter => Filter {
        delivery: filter.optional("delivery", parsed(1..=100, str::parse::<Uuid>)),
        merchant: filter.optional("merchant", parsed(1..=63, merchant)),
        kind: kind.map(|kind| kind.map(|kind| kind.to_string())),
        state: filter.optional("state", one_of(&states)),
        status: filter.optional("status", integer(100..=999)),
        outcome: filter.optional("outcome", one_of(&outcomes)),
        ordering_key: filter.optional("ordering_key", text(1..=MAX_ORDERING_KEY)),
        text: filter.optional("text", text(1..=MAX_ORDERING_KEY)),
        event: filter.optional("event", text(1..=MAX_ORDERING_KEY)),
        from: filter.optional("from", timestamp),
        to: filter.optional("to", timestamp),
    })
}

#[cfg(test)]
mod tests {
    use domain::json::Document;
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    /// Fields that take fewer words than their schema, which describes searches too.
    const KNOWN_WORDS: [&str; 3] = [".kind", ".state", ".outcome"];

    #[test]
    fn the_schema_and_the_reader_agree() {
        let example = json!({ "filter": { "merchant": "acme" } });
        testkit::check_request_body::<NewReplay, _>(&example, &KNOWN_WORDS, |document| {
            document.read(object(|body| NewReplay::read(body, true)))
        });
    }

    fn read(body: &str, is_limited: bool) -> Result<NewReplay, Vec<String>> {
        let document = Document::parse(body.as_bytes()).unwrap();
        let read = document.read(object(|body| NewReplay::read(body, is_limited)));
        read.map_err(|error| error.errors.iter().map(ToString::to_string).collect())
    }

    #[track_caller]
    fn check_rejected(body: &str, errors: &Expect) {
        errors.assert_eq(&read(body, false).unwrap_err().join("\n"));
    }

    #[test]
    fn a_replay_names_a_merchant_or_all() {
        let named = read(r#"{"filter": {"merchant": "acme"}}"#, false).unwrap();
        assert_eq!((named.filter.merchant.as_deref(), named.per_second), (Some("acme"), 50));
        for all in [r#"{"all": true}"#, r#"{"all": true, "filter": {"status": 503}}"#] {
            assert!(read(all, false).unwrap().all, "{all}");
        }
        assert!(read("{}", true).is_ok());
        let unnamed =
            expect![[r#"$.filter: invalid (must name a merchant, unless `all` is true)"#]];
        for body in
            ["{}", r#"{"filter": {}}"#, r#"{"filter": {"status": 503}}"#, r#"{"all": false}"#]
        {
            check_rejected(body, &unnamed);
        }
        check_rejected(
            r#"{"all": true, "filter": {"merchant": "acme"}}"#,
            &expect!["$.all: invalid (must not be true if the filter names a merchant)"],
        );
    }

    #[test]
    fn every_invalid_field_is_reported() {
        let body = r#"{"filter": {"merchant": "A B", "kind": "rmas", "state": "pending",
            "status": "503", "outcome": "lost", "ordering_key": "", "text": 7, "event": "",
            "from": "yesterday", "colour": 1}, "all": 1, "per_second": 1001, "fast": true,
            "expect_matches": -1, "tolerance": 100001}"#;
        let errors = read(body, false).unwrap_err();
        let mut fields: Vec<_> =
            errors.iter().filter_map(|error| Some(error.split_once(':')?.0)).collect();
        fields.sort_unstable();
        let expected = [
            "$.all",
            "$.expect_matches",
            "$.fast",
            "$.filter.colour",
            "$.filter.event",
            "$.filter.from",
            "$.filter.kind",
            "$.filter.merchant",
            "$.filter.ordering_key",
            "$.filter.outcome",
            "$.filter.state",
            "$.filter.status",
            "$.filter.text",
            "$.per_second",
            "$.tolerance",
        ];
        assert_eq!(fields, expected);
        check_rejected(
            r#"{"all": true, "per_second": 0}"#,
            &expect!["$.per_second: invalid (must be between 1 and 1000)"],
        );
        check_rejected("[]", &expect!["$: invalid_type (expected an object, found an array)"]);
    }
}
