//! `backhaul merchant appearance`: the appearance of a merchant's returns portal.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use domain::access::MerchantId;
use serde_json::{Map, Value, json};

use crate::connection::OperatorArgs;
use crate::output::{Column, computed, details, file_name, table, text_at, value};
use crate::settings::read_text;

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

/// Reads the value of a key.
type Reader = fn(&str) -> Result<Value, String>;

/// Fields that `--set` can change, and how their values are read.
const KEYS: [(&str, Reader); 14] = [
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

/// The change. Without a file and fields there is none.
fn body(file: Option<&Path>, fields: Vec<(&str, Value)>) -> anyhow::Result<Option<Value>> {
    let mut body = match file {
        Some(file) => read(file)?,
        None if fields.is_empty() => return Ok(None),
        None => Map::new(),
    };
    for (key, value) in fields {
        match key.split_once('.') {
            Some((parent, key)) => match body.entry(parent).or_insert_with(|| json!({})) {
                Value::Object(members) => drop(members.insert(key.to_owned(), value)),
                other => *other = json!({ key: value }),
            },
            None => drop(body.insert(key.to_owned(), value)),
        }
    }
    Ok(Some(body.into()))
}

fn read(file: &Path) -> anyhow::Result<Map<String, Value>> {
    let text = read_text(file)?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a JSON object", file_name(file)))
}

fn parse_field(field: &str) -> Result<(&'static str, Value), String> {
    let (key, text) = field.split_once('=').ok_or("write KEY=VALUE")?;
    let known = || KEYS.map(|(key, _)| key).join(", ");
    let (key, read) = KEYS
        .into_iter()
        .find(|(known, _)| *known == key)
        .ok_or_else(|| format!("the keys are {}; --file can change reason_labels", known()))?;
    Ok((key, if text.is_empty() { Value::Null } else { read(text)? }))
}

fn text(text: &str) -> Result<Value, String> {
    Ok(text.into())
}

fn list(text: &str) -> Result<Value, String> {
    Ok(text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect())
}

fn boolean(text: &str) -> Result<Value, String> {
    text.parse::<bool>().map(Value::from).map_err(|_not_a_boolean| "write true or false".to_owned())
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
