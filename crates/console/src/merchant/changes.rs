//! Forms of a merchant that another person changed in the meantime: auth refuses them, and the page
//! shows both values.

use pages::{
    api::{ApiError, Caller},
    form::Fields,
};

use super::Merchant;
use crate::person::SignedIn;

/// The text above a form that was refused.
pub(super) const MESSAGE: &str = "Nothing was saved, because another person changed this merchant after \
    you opened this page. Compare your values with those that are stored now, then save again.";

/// A value that is stored now and differs from the value in the form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) name: &'static str,
    pub(super) stored: String,
    pub(super) typed: String,
}

/// The values that differ between two lists of names and values.
pub(super) fn between(
    stored: Vec<(&'static str, String)>,
    typed: Vec<(&'static str, String)>,
) -> Vec<Change> {
    let pairs = stored.into_iter().zip(typed).filter(|(stored, typed)| stored != typed);
    pairs.map(|((name, stored), (_, typed))| Change { name, stored, typed }).collect()
}

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
    fn only_values_that_differ_are_shown() {
        let values = |name: &str| vec![("Name", name.to_owned()), ("Currency", "EUR".to_owned())];
        let change =
            Change { name: "Name", stored: "Acme".to_owned(), typed: "Acme Ltd".to_owned() };
        assert_eq!(between(values("Acme"), values("Acme Ltd")), [change]);
    }

    #[test]
    fn an_outdated_form_is_not_another_conflict() {
        let conflict = |code: &str| {
            ApiError::Conflict(ErrorBody { code: code.to_owned(), ..ErrorBody::default() })
        };
        assert!(is_outdated(&conflict("changed")));
        assert!(!is_outdated(&conflict("")));
    }
}
