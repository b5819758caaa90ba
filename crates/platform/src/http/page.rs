//! Pagination: every list takes `limit` and `after`, and its response has a `next` for the next page.

#![expect(unused_qualifications, reason = "the derive of parameters repeats the types of fields")]

use serde::{Deserialize, Deserializer, de::Error as _};
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

use crate::{ErrorKind, Failure};

const DEFAULT: u16 = 50;
const MAX: u16 = 200;

/// The page of a list without filters.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    pub limit: PageLimit,
    /// The `next` of the previous page
    pub after: Option<String>,
}

impl Page {
    pub fn after(&self) -> &str {
        self.after.as_deref().unwrap_or("")
    }
}

/// The `limit` of a query: 1 to 200, 50 by default. Other values are rejected with 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimit(u16);

impl Default for PageLimit {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<'de> Deserialize<'de> for PageLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limit = i64::deserialize(deserializer)?;
        let limit = u16::try_from(limit).ok().filter(|limit| (1..=MAX).contains(limit));
        limit.map(Self).ok_or_else(|| D::Error::custom(format!("must be between 1 and {MAX}")))
    }
}

impl PartialSchema for PageLimit {
    fn schema() -> RefOr<Schema> {
        let schema = ObjectBuilder::new().schema_type(Type::Integer);
        schema.minimum(Some(1)).maximum(Some(MAX)).default(Some(DEFAULT.into())).into()
    }
}

impl ToSchema for PageLimit {}

impl PageLimit {
    /// The number of rows to load: one more than the page shows tells whether another page follows.
    pub fn rows(self) -> i64 {
        i64::from(self.0) + 1
    }

    /// Cuts loaded rows to the page; returns the cursor of the next page, if there is one.
    pub fn next<T>(self, rows: &mut Vec<T>, cursor: impl Fn(&T) -> String) -> Option<String> {
        self.next_of(rows, false, cursor)
    }

    /// As [`PageLimit::next`], for rows that
    /// [`limit_page_bytes`](crate::database::limit_page_bytes) may have truncated.
    pub fn next_of<T>(
        self,
        rows: &mut Vec<T>,
        is_truncated: bool,
        cursor: impl Fn(&T) -> String,
    ) -> Option<String> {
        let has_next = is_truncated || rows.len() > usize::from(self.0);
        rows.truncate(self.0.into());
        rows.last().filter(|_| has_next).map(cursor)
    }
}

/// Order of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ListOrder {
    #[default]
    Newest,
    Oldest,
}

impl ListOrder {
    /// The direction of an `ORDER BY`.
    pub fn direction(self) -> &'static str {
        match self {
            Self::Newest => "DESC",
            Self::Oldest => "ASC",
        }
    }
}

/// A cursor that is not the `next` of a page.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("after is not the `next` of a page")]
pub struct BadCursor;

impl Failure for BadCursor {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}

#[cfg(test)]
mod tests {
    use actix_web::web::Query;

    use super::*;

    #[test]
    fn a_page_has_one_to_two_hundred_entries() {
        let limit = |query: &str| Query::<Page>::from_query(query).map(|page| page.limit.0).ok();
        assert_eq!(limit(""), Some(50));
        for (requested, given) in
            [("0", None), ("1", Some(1)), ("200", Some(200)), ("201", None), ("-1", None)]
        {
            assert_eq!(limit(&format!("limit={requested}")), given, "{requested}");
        }
    }

    #[test]
    fn a_page_has_a_next_one_if_there_is_more() {
        let check = |found: &[i32], is_truncated, shown: &[i32], after: Option<&str>| {
            let mut page = found.to_vec();
            let next = PageLimit(2).next_of(&mut page, is_truncated, ToString::to_string);
            assert_eq!((page.as_slice(), next.as_deref()), (shown, after));
        };
        check(&[1, 2, 3], false, &[1, 2], Some("2"));
        check(&[1, 2], false, &[1, 2], None);
        check(&[1], true, &[1], Some("1"));
        check(&[], false, &[], None);
    }
}
