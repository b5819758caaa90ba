//! `backhaul merchant appearance`: the appearance of a merchant's returns portal.

use std::path::PathBuf;

use clap::Args;
use domain::access::MerchantId;
use serde_json::{Value, json};

use super::partial::{self, Key, body, boolean, list, text};
use crate::connection::OperatorArgs;
use crate::output::{Column, computed, details, table, text_at, value};

const FIELDS: &[Column] = &[
    computed("name", |merchant| match merchant.pointer("/appearance/name") {
        Some(Value::String(name)) => name.clone(),
        _ => text_at(merchant, "/name"),
    }),
    value("logo", "/appearance/logo_url"),
    value("primary", "/appearance/colors/primary"),
    value("text on primary", "/appearance/colors/text_on_primary"),
    value("background", "/appearance/colors/background"),
    value("text", "/appearance/colors/text"),
    value("languages", "/appearance/languages"),
    value("look-up keys", "/appearance/lookup_keys"),
    value("withdrawal", "/appearance/withdrawal"),
    value("return policy", "/appearance/policy_url"),
    value("contact page", "/appearance/contact_url"),
    value("contact e-mail", "/appearance/contact_email"),
    value("host names", "/appearance/host_names"),
    value("image hosts", "/appearance/image_hosts"),
];

const LABEL_COLUMNS: &[Column] = &[
    value("reason", "/code"),
    value("en", "/labels/en"),
    value("de", "/labels/de"),
    value("fr", "/labels/fr"),
    value("es", "/labels/es"),
];

/// Fields that `--set` can change.
const KEYS: [Key; 14] = [
    ("name", text),
    ("logo_url", text),
    ("colors.primary", text),
    ("colors.text_on_primary", text),
    ("colors.background", text),
    ("colors.text", text),
    ("languages", list),
    ("policy_url", text),
    ("contact_url", text),
    ("contact_email", text),
    ("image_hosts", list),
    ("host_names", list),
    ("lookup_keys", list),
    ("withdrawal", boolean),
];

#[derive(Args)]
pub(crate) struct Appearance {
    /// Identifier of the merchant
    merchant: MerchantId,
    /// JSON file with the fields to change, - for standard input; --json prints such a file
    #[arg(long)]
    file: Option<PathBuf>,
    /// A field to change: name, logo_url, colors.primary, colors.text_on_primary,
    /// colors.background, colors.text, languages, policy_url, contact_url, contact_email,
    /// image_hosts, host_names, lookup_keys or withdrawal. Lists have commas.
    /// An empty value restores the default. Repeat the flag for several fields.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_field, verbatim_doc_comment)]
    fields: Vec<(&'static str, Value)>,
}

pub(super) async fn run(operator: &OperatorArgs, appearance: Appearance) -> anyhow::Result<()> {
    let Appearance { merchant, file, fields } = appearance;
    let body = body(file.as_deref(), fields)?;
    let auth = operator.connect().await?;
    let path = ["v1", "merchants", merchant.as_str()];
    let shown = match body {
        Some(body) => auth.patch(&path, &json!({ "appearance": body })).await?,
        None => auth.get(&path).await?,
    };
    let json = shown.get("appearance").unwrap_or(&Value::Null);
    operator.format().print(json, |_| describe(&shown))
}

fn parse_field(field: &str) -> Result<(&'static str, Value), String> {
    partial::parse_field(&KEYS, "reason_labels", field)
}

fn describe(merchant: &Value) -> String {
    let fields = details(merchant, FIELDS);
    let labels = merchant.pointer("/appearance/reason_labels").and_then(Value::as_object);
    let rows: Vec<_> = labels
        .into_iter()
        .flatten()
        .map(|(code, labels)| json!({ "code": code, "labels": labels }))
        .collect();
    if rows.is_empty() { fields } else { format!("{fields}\n{}", table(&rows, LABEL_COLUMNS)) }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn fields_become_a_partial_update() {
        let fields = [
            "name=Acme = more",
            "colors.primary=#0b6e4f",
            "colors.text=",
            "languages=de, en",
            "withdrawal=true",
            "logo_url=",
        ];
        let fields = fields.map(|field| parse_field(field).unwrap()).to_vec();
        let expected = json!({
            "name": "Acme = more", "colors": { "primary": "#0b6e4f", "text": null },
            "languages": ["de", "en"], "withdrawal": true, "logo_url": null,
        });
        assert_eq!(body(None, fields).unwrap(), Some(expected));
        assert_eq!(body(None, Vec::new()).unwrap(), None);
    }

    #[test]
    fn a_field_that_cannot_be_set_is_a_usage_error() {
        for (field, error) in [
            ("name", "write KEY=VALUE"),
            ("withdrawal=maybe", "write true or false"),
            ("reason_labels=x", "--file can change reason_labels"),
            ("primary=#fff", "the keys are name, logo_url, colors.primary, "),
        ] {
            let found = parse_field(field).unwrap_err();
            assert!(found.contains(error), "{field}: {found}");
        }
    }

    #[test]
    fn an_appearance_is_shown_with_its_labels() {
        let merchant = json!({ "identifier": "acme", "name": "Acme Outdoor", "appearance": {
            "name": null, "logo_url": "https://cdn.acme.example/logo.svg",
            "colors": { "primary": "#0b6e4f", "text_on_primary": "#ffffff", "background": "#ffffff",
                "text": "#111827" },
            "languages": ["de", "en"], "lookup_keys": ["email"], "withdrawal": true,
            "reason_labels": { "TOO_SMALL": { "de": "Zu klein", "en": "Too small" } },
            "policy_url": null, "contact_url": null, "contact_email": "help@acme.example",
            "host_names": ["returns.acme.example"], "image_hosts": [],
        } });
        expect![[r#"
            name             Acme Outdoor
            logo             https://cdn.acme.example/logo.svg
            primary          #0b6e4f
            text on primary  #ffffff
            background       #ffffff
            text             #111827
            languages        de, en
            look-up keys     email
            withdrawal       yes
            return policy    -
            contact page     -
            contact e-mail   help@acme.example
            host names       returns.acme.example
            image hosts      -

            REASON     EN         DE        FR  ES
            TOO_SMALL  Too small  Zu klein  -   -
        "#]]
        .assert_eq(&describe(&merchant));
    }
}
