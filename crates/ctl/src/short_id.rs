//! Short IDs of deliveries, replays and erasures, which tables show.
//!
//! A short ID is the beginning of a UUID of version 7: the time in milliseconds and some random digits.
//! Lists are sorted by ID, newest first, and continue after any ID. A page after the last UUID with a
//! beginning therefore starts with the IDs that have it, and no service reads more than one page.

use anyhow::bail;
use domain::printable::one_line;
use serde_json::Value;
use uuid::Uuid;

use crate::api_client::ApiClient;
use crate::delivery_services::merge_lists;
use crate::output::{items, line_at};
use crate::usage_error;

/// Shorter beginnings match the IDs of more than a minute.
const MIN: usize = 8;
/// An error names at most this many IDs with the same beginning.
const MAX_CANDIDATES: usize = 5;

/// The whole ID of the `noun` whose ID begins with `text`, from the list `key` of the services.
pub(crate) async fn resolve(
    services: &[ApiClient],
    noun: &str,
    key: &str,
    text: &str,
) -> anyhow::Result<String> {
    let text = one_line(&text.trim().to_lowercase());
    let last = match parse(&text) {
        Some(Beginning::Whole(id)) => return Ok(id.to_string()),
        Some(Beginning::Part(last)) => last,
        None => {
            return Err(usage_error(format!(
                "{text} is not the ID of any {noun}: pass a whole ID such as \
                 0198c0de-0000-7abc-8000-000000000000, or at least its first {MIN} characters"
            )));
        }
    };
    // The list begins before this ID, and the last ID may be the one.
    let after = [("after", Uuid::from_u128(last.as_u128().saturating_add(1)).to_string())];
    let call = async |service: &ApiClient| {
        let limit = [("limit", (MAX_CANDIDATES + 1).to_string())];
        service.search(&["v1", key], &[after.as_slice(), &limit].concat()).await
    };
    let (page, outcome) = merge_lists(services, key, call).await?;
    let ids = items(&page, &format!("/{key}")).iter().map(|item: &Value| line_at(item, "/id"));
    let mut ids: Vec<_> = ids.filter(|id| id.starts_with(&text)).collect();
    ids.sort_unstable();
    match ids.as_slice() {
        [id] => Ok(id.clone()),
        [] => {
            // The service that failed may have it.
            outcome?;
            bail!("there is no {noun} whose ID begins with {text}")
        }
        several => {
            let shown = several.iter().take(MAX_CANDIDATES).map(String::as_str);
            let more = (several.len() > MAX_CANDIDATES).then_some("and others");
            bail!(
                "the IDs of several {key} begin with {text}: pass more of the ID\n  {}",
                shown.chain(more).collect::<Vec<_>>().join("\n  ")
            )
        }
    }
}

enum Beginning {
    Whole(Uuid),
    /// The last UUID with this beginning.
    Part(Uuid),
}

fn parse(text: &str) -> Option<Beginning> {
    const LAST: &str = "ffffffff-ffff-ffff-ffff-ffffffffffff";
    let rest = LAST.get(text.len()..).filter(|_| text.len() >= MIN && text.is_ascii())?;
    let filled = format!("{text}{rest}");
    let id = Uuid::try_parse(&filled).ok()?;
    Some(if rest.is_empty() { Beginning::Whole(id) } else { Beginning::Part(id) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0198c0de-0000-7abc-8000-0123456789ab";

    #[test]
    fn every_beginning_from_eight_characters_on_is_accepted() {
        for length in MIN..ID.len() {
            let Some(Beginning::Part(last)) = parse(&ID[..length]) else {
                panic!("{length} characters");
            };
            assert!(
                last.to_string().starts_with(&ID[..length]) && last > ID.parse::<Uuid>().unwrap()
            );
        }
        assert!(matches!(parse(ID), Some(Beginning::Whole(_))));
        for wrong in ["", "0198c0d", "RMA-1001", "0198c0de0000", "0198c0de-0000-7abg", "0198c0dé"]
        {
            assert!(parse(wrong).is_none(), "{wrong}");
        }
        assert!(parse(&format!("{ID}0")).is_none());
    }
}
