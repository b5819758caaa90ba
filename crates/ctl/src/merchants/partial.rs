//! Changes of a part of a merchant, from a JSON file and from `--set KEY=VALUE`.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use crate::output::file_name;
use crate::settings::read_text;

/// A field that `--set` can change, and how its value is read.
pub(super) type Key = (&'static str, fn(&str) -> Result<Value, String>);

/// The change. Without a file and fields there is none.
pub(super) fn body(
    file: Option<&Path>,
    fields: Vec<(&str, Value)>,
) -> anyhow::Result<Option<Value>> {
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

/// Reads `KEY=VALUE`. An empty value restores the default. `of_file` is the field that only a file can change.
pub(super) fn parse_field(
    keys: &[Key],
    of_file: &str,
    field: &str,
) -> Result<(&'static str, Value), String> {
    let (key, text) = field.split_once('=').ok_or("write KEY=VALUE")?;
    let (key, read) = keys.iter().copied().find(|(known, _)| *known == key).ok_or_else(|| {
        let known: Vec<_> = keys.iter().map(|(key, _)| *key).collect();
        format!("the keys are {}; --file can change {of_file}", known.join(", "))
    })?;
    Ok((key, if text.is_empty() { Value::Null } else { read(text)? }))
}

pub(super) fn text(text: &str) -> Result<Value, String> {
    Ok(text.into())
}

pub(super) fn list(text: &str) -> Result<Value, String> {
    Ok(text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect())
}

pub(super) fn boolean(text: &str) -> Result<Value, String> {
    text.parse::<bool>().map(Value::from).map_err(|_not_a_boolean| "write true or false".to_owned())
}
