//! The version of a merchant that a form shows. Auth refuses a form whose merchant another person changed in the
//! meantime.

use pages::{
    api::{ApiError, Caller},
    form::Fields,
};

use super::Merchant;
use crate::SignedIn;

/// The reason why something was not deleted.
pub(super) const NOT_DELETED: &str = "Nothing was deleted, because another person changed this merchant after you \
    opened this page. Look at it again before you delete it.";

/// The version of the merchant that a form shows.
pub(super) struct Version(String);

impl Version {
    pub(super) fn of(merchant: &Merchant) -> Self {
        Self(merchant.version.to_string())
    }

    pub(super) fn read(fields: &Fields) -> Self {
        Self(fields.text("version").to_owned())
    }

    /// Calls that change only this version.
    pub(super) fn api(&self, signed_in: &SignedIn) -> Caller {
        signed_in.api.clone().with_header("if-match", format!("\"{}\"", self.0))
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether auth refused a change of an old version.
pub(super) fn is_outdated(error: &ApiError) -> bool {
    matches!(error, ApiError::Conflict(body) if body.code == "changed")
}

#[cfg(test)]
mod tests {
    use pages::api::ErrorBody;

    use super::*;

    #[test]
    fn an_outdated_form_is_not_another_conflict() {
        let conflict = |code: &str| {
            ApiError::Conflict(ErrorBody { code: code.to_owned(), ..ErrorBody::default() })
        };
        assert!(is_outdated(&conflict("changed")));
        assert!(!is_outdated(&conflict("")));
    }
}
