//! `backhaul returns list`.

use std::num::NonZeroUsize;

use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::returns::{ResolutionKind, ReturnMethod, RmaStatus, WorkList};
use platform::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::api_client::ApiClient;
use crate::time_input::{check_period, parse_time};

/// The states of a message to a merchant.
const MESSAGE_STATES: [&str; 3] = ["pending", "delivered", "dead"];

#[derive(Args, Serialize)]
pub(crate) struct List {
    /// Only the return with this identifier
    #[arg(long, value_name = "RMA")]
    #[serde(rename = "rma_identifier")]
    rma: Option<String>,
    /// Only returns with units of this order
    #[arg(long, value_name = "ORDER")]
    #[serde(rename = "order_identifier")]
    order: Option<String>,
    /// Only returns with this status
    #[arg(long, value_parser = PossibleValuesParser::new(RmaStatus::ALL.iter().map(|it| it.as_str())))]
    status: Option<String>,
    /// Only returns that need this step next
    #[arg(long, value_name = "LIST", value_parser = PossibleValuesParser::new(WorkList::ALL.iter().map(|it| it.as_str())))]
    work_list: Option<String>,
    /// Only returns with exchanged units that did not come back in time
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    overdue: bool,
    /// Only returns of the shopper or giftee with this e-mail address
    #[arg(long)]
    email: Option<String>,
    /// Only returns with this tracking number
    #[arg(long, value_name = "NUMBER")]
    tracking_number: Option<String>,
    /// Only returns with this method
    #[arg(long, value_parser = PossibleValuesParser::new(ReturnMethod::ALL.iter().map(|it| it.as_str())))]
    #[serde(rename = "return_method")]
    method: Option<String>,
    /// Only returns with a unit with this resolution
    #[arg(long, value_parser = PossibleValuesParser::new(ResolutionKind::ALL.iter().map(|it| it.as_str())))]
    resolution: Option<String>,
    /// Only returns with a unit with this reason, one of the merchant's codes
    #[arg(long, value_name = "CODE")]
    #[serde(rename = "return_reason")]
    reason: Option<String>,
    /// Only returns with a unit with this SKU
    #[arg(long)]
    sku: Option<String>,
    /// Only returns for whose units at least this amount was paid
    #[arg(long, value_name = "CENTS")]
    #[serde(rename = "min_amount_cents")]
    min_amount: Option<i64>,
    /// Only returns for whose units at most this amount was paid
    #[arg(long, value_name = "CENTS")]
    #[serde(rename = "max_amount_cents")]
    max_amount: Option<i64>,
    /// Only returns whose last message to the merchant has this state
    #[arg(long, value_name = "STATE", value_parser = PossibleValuesParser::new(MESSAGE_STATES))]
    message_state: Option<String>,
    /// Created at this time or later
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Timestamp>,
    /// Created before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Timestamp>,
    /// Changed at this time or later; lists returns in the order of their last changes
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with_all = ["rma", "order", "tracking_number", "oldest_first"])]
    updated_from: Option<Timestamp>,
    /// Last changed before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    updated_to: Option<Timestamp>,
    /// Continue after the page with this `after` in its JSON
    #[arg(long, value_name = "CURSOR")]
    #[serde(skip)]
    after: Option<String>,
    /// List the oldest returns first
    #[arg(long)]
    #[serde(
        rename = "order",
        serialize_with = "oldest",
        skip_serializing_if = "std::ops::Not::not"
    )]
    oldest_first: bool,
    /// Search all merchants, as the operator
    #[arg(long)]
    #[serde(skip)]
    pub(super) all_merchants: bool,
    /// Maximum number of returns
    #[arg(long, value_name = "N", default_value = "50")]
    #[serde(skip)]
    limit: NonZeroUsize,
}

/// The order in a request.
fn oldest<S: serde::Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str("oldest")
}

impl List {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        check_period(("--from", self.from), ("--to", self.to))?;
        check_period(("--updated-from", self.updated_from), ("--updated-to", self.updated_to))
    }

    /// The returns, with the cursor `after` with which a later request continues, if there is one.
    pub(super) async fn run(self, client: &ApiClient) -> anyhow::Result<Value> {
        let after = self.after.clone();
        let (path, limit) = (["v1", "returns"], self.limit.get());
        let (mut returns, cursor) =
            client.list_after(&path, "returns", &self, limit, after).await?;
        if let (Some(cursor), Some(fields)) = (cursor, returns.as_object_mut()) {
            fields.insert("after".to_owned(), cursor.into());
        }
        Ok(returns)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches as _, error::ErrorKind};
    use serde_json::json;

    use super::*;

    fn parse(line: &str) -> Result<Value, ErrorKind> {
        let command = List::augment_args(Command::new("list"));
        let matches = command.try_get_matches_from(line.split(' ')).map_err(|it| it.kind())?;
        let list = List::from_arg_matches(&matches).map_err(|it| it.kind())?;
        let Value::Object(mut query) = serde_json::to_value(&list).unwrap() else { panic!() };
        query.retain(|_, value| !value.is_null());
        Ok(query.into())
    }

    #[test]
    fn flags_are_filters_of_the_api() {
        assert_eq!(parse("list"), Ok(json!({})));
        let units = "list --method mail-back --resolution gift_card --reason DAMAGED --sku S --min-amount 5";
        let expected = json!({ "return_method": "mail-back", "resolution": "gift_card",
            "return_reason": "DAMAGED", "sku": "S", "min_amount_cents": 5 });
        assert_eq!(parse(units), Ok(expected));
        let work = parse("list --work-list to_refund --message-state dead --oldest-first");
        let expected =
            json!({ "work_list": "to_refund", "message_state": "dead", "order": "oldest" });
        assert_eq!(work, Ok(expected));
        let since = parse("list --updated-from 2026-11-16 --after abc").unwrap();
        assert_eq!(since, json!({ "updated_from": "2026-11-16T00:00:00Z" }));
        assert_eq!(parse("list --work-list all"), Err(ErrorKind::InvalidValue));
        let both = "list --updated-from 2026-11-16 --order 1001";
        assert_eq!(parse(both), Err(ErrorKind::ArgumentConflict));
    }
}
