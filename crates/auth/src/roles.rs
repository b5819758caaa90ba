//! The roles of people, and the scopes that each role gives.

use domain::access::{Scope, Scopes};

domain::words! {
    /// The role of a person. The merchant roles belong to one merchant; the others to none.
    pub(crate) enum Role as "kebab-case" {
        Operator,
        Support,
        MerchantAdmin,
        MerchantViewer,
    }
}

impl Role {
    pub(crate) fn as_str(self) -> &'static str {
        self.into()
    }

    pub(crate) fn scopes(self) -> Scopes {
        let scopes: &[Scope] = match self {
            Self::Operator => &[Scope::Operator],
            Self::Support => &[Scope::Read, Scope::Replay],
            Self::MerchantAdmin => &Scope::OF_MERCHANTS,
            Self::MerchantViewer => &[Scope::Read],
        };
        scopes.iter().copied().collect()
    }

    pub(crate) fn is_of_merchant(self) -> bool {
        matches!(self, Self::MerchantAdmin | Self::MerchantViewer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_has_its_scopes() {
        for (role, scopes) in [
            ("operator", "operator"),
            ("support", "read replay"),
            ("merchant-admin", "orders returns read replay manage"),
            ("merchant-viewer", "read"),
        ] {
            let parsed: Role = role.parse().unwrap();
            assert_eq!((parsed.as_str(), parsed.scopes().to_string().as_str()), (role, scopes));
        }
        assert!("owner".parse::<Role>().is_err());
    }
}
