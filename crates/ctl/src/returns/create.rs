//! Starting a return from the command line.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::returns::ReturnMethod;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::line_unit;
use crate::Usage;
use crate::operator::Operator;
use crate::places::EXCHANGE;
use crate::settings::read_text;

#[derive(Args)]
pub(super) struct Create {
    /// The order
    #[arg(long, required_unless_present = "body")]
    order: Option<String>,
    /// A unit of it, LINE or LINE:NUMBER; repeat it for several
    #[arg(long = "unit", value_name = "UNIT", value_parser = line_unit)]
    units: Vec<(String, i32)>,
    /// Why, one of the merchant's codes
    #[arg(long, value_name = "CODE", required_unless_present = "body")]
    reason: Option<String>,
    /// How it comes back: mail-back, express-returns or customer-keep
    #[arg(long, default_value = "mail-back", value_parser = PossibleValuesParser::new(ReturnMethod::ALL.iter().map(|it| it.as_str())))]
    method: String,
    /// Exchange the units for this variant
    #[arg(long, value_name = "SKU", conflicts_with = "gift_card")]
    exchange_for: Option<String>,
    /// Exchange the units for a gift card
    #[arg(long)]
    gift_card: bool,
    /// The units were a gift; refunds go to this giftee
    #[arg(long, value_name = "EMAIL")]
    giftee_email: Option<String>,
    /// The whole request as JSON from a file, - for standard input, instead of these flags
    #[arg(long, value_name = "FILE", conflicts_with_all = ["order", "units", "reason", "method", "exchange_for", "gift_card", "giftee_email"])]
    body: Option<PathBuf>,
    /// Makes sure that the same return is not started twice; made up unless given
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl Create {
    pub(super) async fn send(self, engine: &Operator) -> anyhow::Result<Value> {
        let key = self.idempotency_key.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
        let request = match &self.body {
            Some(file) => serde_json::from_str(&read_text(file)?)
                .with_context(|| format!("{} is not a JSON object", file.display()))?,
            None => self.request(engine).await?,
        };
        engine.with("Idempotency-Key", &key).post(&["v1", "returns"], request).await
    }

    async fn request(self, engine: &Operator) -> anyhow::Result<Map<String, Value>> {
        if self.units.is_empty() {
            return Err(
                Usage("say which units: --unit LINE or --unit LINE:NUMBER".to_owned()).into()
            );
        }
        let order = self.order.unwrap_or_default();
        let mut units = Vec::new();
        for (line, number) in &self.units {
            let mut unit = json!({
                "order_identifier": order, "order_line_item_identifier": line, "unit": number,
                "return_reason": self.reason, "resolution": "refund",
            });
            if self.gift_card {
                set(&mut unit, "resolution", json!("gift_card"));
            }
            if let Some(sku) = &self.exchange_for {
                set(&mut unit, "resolution", json!("exchange"));
                set(&mut unit, "variant", variant(engine, &order, line, sku).await?);
            }
            units.push(unit);
        }
        let mut request = Map::new();
        request.insert("return_method".to_owned(), self.method.into());
        request.insert("units".to_owned(), units.into());
        if let Some(email) = self.giftee_email {
            request.insert("gift_refund_only".to_owned(), true.into());
            request.insert("giftee_email".to_owned(), email.into());
        }
        Ok(request)
    }
}

/// The variant of a line's product with this SKU, as the merchant offers it now.
async fn variant(engine: &Operator, order: &str, line: &str, sku: &str) -> anyhow::Result<Value> {
    let returnable = engine.get(&["v1", "orders", order, "returnable"]).await?;
    let units = returnable.get("units").and_then(Value::as_array).into_iter().flatten();
    let of_line = |it: &&Value| it.get("order_line_item_identifier") == Some(&json!(line));
    let Some(product) = units
        .filter(of_line)
        .find_map(|unit| unit.get("variant_identifier").and_then(Value::as_str))
    else {
        bail!("line {line} of order {order} has no variants");
    };
    let offers = engine.elsewhere(EXCHANGE)?;
    let offer = offers.get(&["v1", "variants", product]).await?;
    let offered = offer.get("variants").and_then(Value::as_array).into_iter().flatten();
    let known: Vec<_> = offered.collect();
    let Some(found) = known.iter().find(|it| it.get("sku") == Some(&json!(sku))) else {
        let skus = known.iter().filter_map(|it| it.get("sku").and_then(Value::as_str));
        bail!(
            "{sku} is not offered for {product}; offered are: {}",
            skus.collect::<Vec<_>>().join(", ")
        );
    };
    let part = |name: &str| found.get(name).cloned().unwrap_or_default();
    Ok(json!({
        "sku": sku, "title": part("title"), "unit_price_amount_cents": part("unit_price_amount_cents"),
    }))
}

fn set(unit: &mut Value, name: &str, value: Value) {
    if let Value::Object(unit) = unit {
        unit.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, error::ErrorKind};

    use super::*;

    #[test]
    fn a_whole_request_takes_no_flag_beside_it() {
        let parse = |line: &str| {
            let command = Create::augment_args(Command::new("create"));
            let words = line.split(' ');
            command.try_get_matches_from(words).map(drop).map_err(|error| error.kind())
        };
        assert_eq!(parse("create --body return.json"), Ok(()));
        assert_eq!(parse("create --order 1 --reason R --method customer-keep"), Ok(()));
        for flag in ["--order 1", "--unit L", "--reason R", "--method customer-keep", "--gift-card"]
        {
            let line = format!("create --body return.json {flag}");
            assert_eq!(parse(&line), Err(ErrorKind::ArgumentConflict), "{flag}");
        }
    }
}
