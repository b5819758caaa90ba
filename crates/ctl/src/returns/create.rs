//! `backhaul returns create`.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::printable::one_line;
use domain::returns::ReturnMethod;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::parse_line_unit;
use crate::api_client::ApiClient;
use crate::output::{file_name, items, join, line_at};
use crate::service_urls::EXCHANGE;
use crate::settings::{Settings, read_text};
use crate::usage_error;

#[derive(Args)]
pub(crate) struct Create {
    /// Identifier of the order
    #[arg(long, required_unless_present = "body")]
    order: Option<String>,
    /// A unit of the order as LINE or LINE:NUMBER; can be repeated
    #[arg(long = "unit", value_name = "UNIT", value_parser = parse_line_unit)]
    units: Vec<(String, i32)>,
    /// Return reason, one of the merchant's codes
    #[arg(long, value_name = "CODE", required_unless_present = "body")]
    reason: Option<String>,
    /// Words of the shopper about the units, up to 1,000 characters
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Return method
    #[arg(long, default_value = "mail-back", value_parser = PossibleValuesParser::new(ReturnMethod::ALL.iter().map(|it| it.as_str())))]
    method: String,
    /// Exchange the units for the variant with this SKU
    #[arg(long, value_name = "SKU", conflicts_with = "gift_card")]
    exchange_for: Option<String>,
    /// Exchange the units for a gift card
    #[arg(long)]
    gift_card: bool,
    /// Return the units as a gift and refund the giftee with this address
    #[arg(long, value_name = "EMAIL")]
    giftee_email: Option<String>,
    /// Return units that the merchant's policy excludes, without a review. Facts, such as an earlier return, still count
    #[arg(long = "override", requires = "note")]
    overridden: bool,
    /// Reason of the override, for the timeline
    #[arg(long, value_name = "TEXT", requires = "overridden")]
    note: Option<String>,
    /// File with the whole request as JSON instead of these flags, - for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["order", "units", "reason", "comment", "method", "exchange_for", "gift_card", "giftee_email", "overridden", "note"])]
    body: Option<PathBuf>,
    /// Idempotency key, which prevents a second return for the same request [default: random]
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl Create {
    pub(super) async fn run(self, client: &ApiClient) -> anyhow::Result<Value> {
        let key = self.idempotency_key.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let request: Map<String, Value> = match &self.body {
            Some(file) => serde_json::from_str(&read_text(file)?)
                .with_context(|| format!("{} is not a JSON object", file_name(file)))?,
            None => self.request(client).await?,
        };
        let client = client.with_header("Idempotency-Key", &key);
        client.post(&["v1", "returns"], &request.into()).await
    }

    async fn request(self, client: &ApiClient) -> anyhow::Result<Map<String, Value>> {
        if self.units.is_empty() {
            return Err(usage_error("no units: pass --unit LINE or --unit LINE:NUMBER"));
        }
        let order = self.order.unwrap_or_default();
        let resolution = match (&self.exchange_for, self.gift_card) {
            (Some(_), _) => "exchange",
            (None, true) => "gift_card",
            (None, false) => "refund",
        };
        let mut units = Vec::new();
        for (line, number) in &self.units {
            let mut unit = json!({
                "order_identifier": order, "order_line_item_identifier": line, "unit": number,
                "return_reason": self.reason, "resolution": resolution,
            });
            if let Some(unit) = unit.as_object_mut() {
                let comment = self.comment.clone();
                unit.extend(comment.map(|comment| ("comment".to_owned(), comment.into())));
                if let Some(sku) = &self.exchange_for {
                    unit.insert("variant".to_owned(), variant(client, &order, line, sku).await?);
                }
            }
            units.push(unit);
        }
        let mut request = Map::new();
        if let Some(note) = self.note.filter(|_| self.overridden) {
            let by = client.client_id();
            request.insert("override".to_owned(), json!({ "by": by, "reason": note }));
        }
        request.insert("return_method".to_owned(), self.method.into());
        request.insert("units".to_owned(), units.into());
        if let Some(email) = self.giftee_email {
            request.insert("gift_refund_only".to_owned(), true.into());
            request.insert("giftee_email".to_owned(), email.into());
        }
        Ok(request)
    }
}

/// The variant with this SKU, as the merchant currently offers it for a line's product.
async fn variant(client: &ApiClient, order: &str, line: &str, sku: &str) -> anyhow::Result<Value> {
    let returnable = client.get(&["v1", "orders", order, "returnable"]).await?;
    let is_of_line = |unit: &&Value| unit.get("order_line_item_identifier") == Some(&json!(line));
    let units = items(&returnable, "/units").iter();
    let Some(product) =
        units.filter(is_of_line).find_map(|unit| unit.get("variant_identifier")?.as_str())
    else {
        bail!("line {line} of order {order} has no variants");
    };
    let exchange = client.at_service(EXCHANGE, &Settings::load()?)?;
    let offer = exchange.get(&["v1", "variants", product]).await?;
    let variants = items(&offer, "/variants");
    let Some(found) = variants.iter().find(|it| it.get("sku") == Some(&json!(sku))) else {
        let skus = join(variants.iter().map(|it| line_at(it, "/sku")));
        let [sku, product] = [sku, product].map(one_line);
        bail!("the merchant does not offer {sku} for {product}, only: {skus}");
    };
    let part = |name: &str| found.get(name).cloned().unwrap_or_default();
    Ok(json!({
        "sku": sku, "title": part("title"), "unit_price_amount_cents": part("unit_price_amount_cents"),
    }))
}

#[cfg(test)]
mod tests {
    use clap::{Command, error::ErrorKind};

    use super::*;

    #[test]
    fn a_whole_request_excludes_the_other_flags() {
        let parse = |line: &str| {
            let command = Create::augment_args(Command::new("create"));
            let words = line.split(' ');
            command.try_get_matches_from(words).map(drop).map_err(|error| error.kind())
        };
        assert_eq!(parse("create --body return.json"), Ok(()));
        assert_eq!(parse("create --order 1 --reason R --method customer-keep"), Ok(()));
        assert_eq!(parse("create --order 1 --reason R --override --note Goodwill"), Ok(()));
        for incomplete in ["--override", "--note Goodwill"] {
            let line = format!("create --order 1 --reason R {incomplete}");
            assert_eq!(parse(&line), Err(ErrorKind::MissingRequiredArgument), "{incomplete}");
        }
        for flag in [
            "--order 1",
            "--unit L",
            "--reason R",
            "--comment C",
            "--method customer-keep",
            "--gift-card",
            "--override --note Goodwill",
        ] {
            let line = format!("create --body return.json {flag}");
            assert_eq!(parse(&line), Err(ErrorKind::ArgumentConflict), "{flag}");
        }
    }
}
