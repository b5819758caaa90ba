//! `backhaul merchant mails`: the mails to a merchant's shoppers about their returns.

use std::path::PathBuf;

use clap::Args;
use domain::access::MerchantId;
use serde_json::{Value, json};

use super::partial::{self, Key, body, boolean, text};
use crate::connection::OperatorArgs;
use crate::output::{Column, computed, details, text_at, value};

const FIELDS: &[Column] = &[
    computed("replies to", |merchant| match merchant.pointer("/mails/reply_to") {
        Some(Value::String(address)) => address.clone(),
        _ => "- (shoppers get no mails)".to_owned(),
    }),
    computed("sender", |merchant| {
        let names = ["/mails/sender_name", "/appearance/name"];
        let own = names.iter().find_map(|name| merchant.pointer(name)?.as_str());
        own.map_or_else(|| text_at(merchant, "/name"), str::to_owned)
    }),
    value("confirmed", "/mails/events/confirmed"),
    value("received", "/mails/events/received"),
    value("refunded", "/mails/events/refunded"),
    value("exchange placed", "/mails/events/exchange_placed"),
    value("declined", "/mails/events/declined"),
    value("about to expire", "/mails/events/about_to_expire"),
    value("withdrawal", "/mails/events/withdrawal"),
];

/// Fields that `--set` can change.
const KEYS: [Key; 9] = [
    ("reply_to", text),
    ("sender_name", text),
    ("events.confirmed", boolean),
    ("events.received", boolean),
    ("events.refunded", boolean),
    ("events.exchange_placed", boolean),
    ("events.declined", boolean),
    ("events.about_to_expire", boolean),
    ("events.withdrawal", boolean),
];

#[derive(Args)]
pub(crate) struct Mails {
    /// Identifier of the merchant
    merchant: MerchantId,
    /// JSON file with the fields to change, - for standard input; --json prints such a file
    #[arg(long)]
    file: Option<PathBuf>,
    /// A field to change: reply_to, sender_name, events.confirmed, events.received,
    /// events.refunded, events.exchange_placed, events.declined, events.about_to_expire
    /// or events.withdrawal. Shoppers get no mails without reply_to. An empty value restores the default.
    /// Repeat the flag for several fields.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_field, verbatim_doc_comment)]
    fields: Vec<(&'static str, Value)>,
}

pub(super) async fn run(operator: &OperatorArgs, mails: Mails) -> anyhow::Result<()> {
    let Mails { merchant, file, fields } = mails;
    let body = body(file.as_deref(), fields)?;
    let auth = operator.connect().await?;
    let path = ["v1", "merchants", merchant.as_str()];
    let shown = match body {
        Some(body) => auth.patch(&path, &json!({ "mails": body })).await?,
        None => auth.get(&path).await?,
    };
    let json = shown.get("mails").unwrap_or(&Value::Null);
    operator.format().print(json, |_| details(&shown, FIELDS))
}

/// An empty switch is on, as by default.
fn parse_field(field: &str) -> Result<(&'static str, Value), String> {
    let (key, value) = partial::parse_field(&KEYS, "texts", field)?;
    let is_default = key.starts_with("events.") && value.is_null();
    Ok((key, if is_default { json!(true) } else { value }))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn fields_become_a_partial_update() {
        let fields = [
            "reply_to=returns@acme.example",
            "sender_name=",
            "events.refunded=false",
            "events.received=",
        ];
        let fields = fields.map(|field| parse_field(field).unwrap()).to_vec();
        let expected = json!({
            "reply_to": "returns@acme.example", "sender_name": null,
            "events": { "refunded": false, "received": true },
        });
        assert_eq!(body(None, fields).unwrap(), Some(expected));
        let error = parse_field("events.lost=true").unwrap_err();
        assert!(
            error.starts_with("the keys are reply_to, sender_name, events.confirmed, "),
            "{error}"
        );
    }

    #[test]
    fn the_sender_is_the_merchant_unless_it_has_another_name() {
        let mut merchant = json!({ "name": "Acme Outdoor", "appearance": { "name": null }, "mails": {
            "reply_to": null, "sender_name": null, "events": {
                "confirmed": true, "received": false, "refunded": true, "exchange_placed": true,
                "declined": true, "about_to_expire": true, "withdrawal": true,
            },
        } });
        expect![[r#"
            replies to       - (shoppers get no mails)
            sender           Acme Outdoor
            confirmed        yes
            received         no
            refunded         yes
            exchange placed  yes
            declined         yes
            about to expire  yes
            withdrawal       yes
        "#]]
        .assert_eq(&details(&merchant, FIELDS));
        merchant["mails"]["sender_name"] = json!("Acme Returns");
        merchant["mails"]["reply_to"] = json!("returns@acme.example");
        let shown = details(&merchant, FIELDS);
        let start = "replies to       returns@acme.example\nsender           Acme Returns\n";
        assert!(shown.starts_with(start), "{shown}");
    }
}
