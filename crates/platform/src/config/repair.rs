//! Repairs of faulty settings, so that one check finds all faults.

use config::{Value, ValueKind};

use super::{
    Table,
    fault::{Fault, Reason},
};

/// A valid value of each setting that has no default.
const EXAMPLES: [(&str, &str); 8] = [
    ("database.url", "postgres://host/database"),
    ("broker.url", "amqp://host"),
    ("sealing.keys", "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    ("shopper.proof_keys", "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    ("client.id", "cl_4f1d"),
    ("client.secret", "a-client-secret"),
    ("identity.issuer", "https://auth.backhaul.example"),
    ("identity.jwks_url", "https://auth.backhaul.example/.well-known/jwks.json"),
];

/// Removes a fault from the settings: an unknown setting is deleted, any other gets its default or an
/// example. Returns whether something changed.
pub(super) fn repair(table: &mut Table, defaults: &Table, fault: &Fault) -> bool {
    if fault.path.is_empty() {
        return false;
    }
    let valid = match fault.reason {
        Reason::Unknown => None,
        Reason::Missing | Reason::Wrong(_) => valid_value(defaults, &fault.path),
    };
    let (parents, name) = fault.path.rsplit_once('.').unwrap_or(("", &fault.path));
    // Part of an optional section, such as `http.tls`, is missing: the section is deleted.
    if valid.is_none() && fault.reason == Reason::Missing {
        let (parents, name) = parents.rsplit_once('.').unwrap_or(("", parents));
        return inner(table, parents).is_some_and(|inner| inner.remove(name).is_some());
    }
    inner(table, parents).is_some_and(|inner| match valid {
        Some(value) => inner.insert(name.to_owned(), value.clone()) != Some(value),
        None => inner.remove(name).is_some(),
    })
}

/// The default of a setting or section, or an example for a setting without a default.
fn valid_value(defaults: &Table, path: &str) -> Option<Value> {
    let examples = EXAMPLES.iter().filter_map(|(setting, example)| {
        let rest = setting.strip_prefix(path)?;
        Some((rest.strip_prefix('.').unwrap_or(rest), *example))
    });
    match find(defaults, path) {
        Some(Value { kind: ValueKind::Table(section), .. }) => {
            let mut section = section.clone();
            section.extend(examples.map(|(name, example)| (name.to_owned(), example.into())));
            Some(section.into())
        }
        Some(value) => Some(value.clone()),
        None => examples.filter(|(rest, _)| rest.is_empty()).map(|(_, it)| it.into()).next(),
    }
}

fn find<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => table.get(path),
        Some((first, rest)) => match &table.get(first)?.kind {
            ValueKind::Table(inner) => find(inner, rest),
            _ => None,
        },
    }
}

/// The table at a path, which is created if it is missing.
fn inner<'a>(table: &'a mut Table, path: &str) -> Option<&'a mut Table> {
    if path.is_empty() {
        return Some(table);
    }
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let value = table.entry(first.to_owned()).or_insert_with(|| Value::from(Table::new()));
    match &mut value.kind {
        ValueKind::Table(found) => inner(found, rest),
        _ => None,
    }
}
