//! The position of an entry in a list that is sorted by merchant and number.

use domain::access::MerchantId;
use platform::http::BadCursor;

/// The entries of a page are sorted after this position. The default is the start of the list.
#[derive(Debug, Default)]
pub(crate) struct ListPosition {
    pub(crate) merchant: String,
    pub(crate) number: String,
}

impl ListPosition {
    pub(crate) fn read(cursor: Option<&str>) -> Result<Self, BadCursor> {
        let Some(cursor) = cursor else { return Ok(Self::default()) };
        let (merchant, number) = cursor.split_once('/').ok_or(BadCursor)?;
        Ok(Self { merchant: merchant.to_owned(), number: number.to_owned() })
    }
}

/// The cursor of the page after an entry.
pub(crate) fn cursor_of(merchant: &MerchantId, number: impl std::fmt::Display) -> String {
    format!("{merchant}/{number}")
}
