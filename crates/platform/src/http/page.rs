//! Long lists, a page at a time.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::{ErrorKind, Failure};

const USUAL: i64 = 50;
const LONGEST: i64 = 500;

/// Which part of a long list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// How many at the most, 50 unless said; 500 is the limit.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<i64>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
}

/// Why there is no such page.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPage {
    #[error("limit must be between 1 and {LONGEST}")]
    Limit,
    #[error("{0} cannot be read")]
    Unreadable(&'static str),
}

impl Failure for BadPage {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}

impl Page {
    pub fn limit(&self) -> Result<i64, BadPage> {
        page_limit(self.limit)
    }

    pub fn after(&self) -> &str {
        self.after.as_deref().unwrap_or("")
    }
}

/// How many to show, for lists that can be asked for more than a [`Page`] says.
pub fn page_limit(limit: Option<i64>) -> Result<i64, BadPage> {
    let limit = limit.unwrap_or(USUAL);
    if (1..=LONGEST).contains(&limit) { Ok(limit) } else { Err(BadPage::Limit) }
}

/// Cuts a page, which was asked for with one more than its limit, to that limit; the last one shown is
/// where the next page begins, if there is one.
pub fn next<T>(page: &mut Vec<T>, limit: i64, name: impl Fn(&T) -> String) -> Option<String> {
    let limit = usize::try_from(limit).unwrap_or(0);
    if page.len() <= limit {
        return None;
    }
    page.truncate(limit);
    page.last().map(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_one_to_five_hundred_entries() {
        assert_eq!(page_limit(None), Ok(50));
        for (asked, given) in [(0, None), (1, Some(1)), (500, Some(500)), (501, None), (-1, None)] {
            assert_eq!(page_limit(Some(asked)).ok(), given);
        }
    }

    #[test]
    fn a_page_has_a_next_one_if_there_is_more() {
        let check = |found: &[i32], shown: &[i32], after: Option<&str>| {
            let mut page = found.to_vec();
            let next = next(&mut page, 2, ToString::to_string);
            assert_eq!((page.as_slice(), next.as_deref()), (shown, after));
        };
        check(&[1, 2, 3], &[1, 2], Some("2"));
        check(&[1, 2], &[1, 2], None);
        check(&[], &[], None);
    }
}
