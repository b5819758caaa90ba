//! The key of a form that creates something. A form that is sent twice, by a double click or a reload, is then one
//! request: the service gives the second one the response of the first.

use std::fmt;

use pages::{api::Caller, form::Fields};
use serde::Deserialize;
use uuid::Uuid;

use crate::PageError;

/// Back leads from a page that was shown once to its form, where the values can be changed.
pub(crate) const SENT_BEFORE: &str = "Nothing was changed. This form was sent before, with other values. Look at \
    what it did; send it again with these values.";

/// A random key, which the service gets as `Idempotency-Key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct FormKey(Uuid);

impl FormKey {
    /// The key of a form that is shown. A form that is shown again has another key, because its values may change.
    pub(crate) fn random() -> Self {
        Self(Uuid::new_v4())
    }

    pub(crate) fn read(fields: &Fields) -> Result<Self, PageError> {
        fields.text("key").parse().map(Self).map_err(|_not_ours| PageError::BadForm)
    }

    /// Calls that take effect once.
    pub(crate) fn api(self, api: &Caller) -> Caller {
        api.clone().with_header("idempotency-key", self.to_string())
    }
}

impl fmt::Display for FormKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
