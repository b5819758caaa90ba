//! Which of a merchant's endpoints a path is: by its end, so that one sandbox can stand in for
//! many merchants.

use domain::message_kind::MessageKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface<'p> {
    Token,
    /// The identifier as it stands in the path.
    Variants {
        variant_identifier: &'p str,
    },
    Message(MessageKind),
}

impl<'p> Interface<'p> {
    pub(crate) fn of(path: &'p str) -> Option<Self> {
        if path.ends_with("/oauth/token") {
            return Some(Self::Token);
        }
        let mut parts = path.rsplit('/');
        if let (Some("variants"), Some(variant_identifier), Some("sku")) =
            (parts.next(), parts.next(), parts.next())
        {
            return Some(Self::Variants { variant_identifier });
        }
        MessageKind::ALL
            .into_iter()
            .find(|kind| path.ends_with(kind.default_path()))
            .map(Self::Message)
    }

    /// How paths end that are known.
    pub(crate) fn known() -> String {
        let messages = MessageKind::ALL.map(MessageKind::default_path).join(", ");
        format!("known are {messages}, /sku/{{variant_identifier}}/variants and /oauth/token")
    }

    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Token | Self::Message(_) => "POST",
            Self::Variants { .. } => "GET",
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::message_kind::MessageKind;

    use super::Interface;

    #[track_caller]
    fn check(path: &str, want: Option<Interface<'_>>) {
        assert_eq!(Interface::of(path), want, "{path}");
    }

    #[test]
    fn endpoints_are_known_below_any_prefix() {
        for kind in MessageKind::ALL {
            check(kind.default_path(), Some(Interface::Message(kind)));
            check(&format!("/a/b{}", kind.default_path()), Some(Interface::Message(kind)));
        }
        let variant = |variant_identifier| Some(Interface::Variants { variant_identifier });
        check("/sku/TEE-1/variants", variant("TEE-1"));
        check("/blue/sku/TEE-1/variants", variant("TEE-1"));
        check("/oauth/token", Some(Interface::Token));
        check("/blue/oauth/token", Some(Interface::Token));
        for other in ["/", "", "/rmas/", "/xrmas", "/sku/variants", "/variants", "/token"] {
            check(other, None);
        }
    }
}
