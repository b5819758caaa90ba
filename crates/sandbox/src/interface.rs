//! The merchant's endpoint for a path. Only the end of the path counts, so that one sandbox can serve
//! many merchants under different prefixes.

use domain::message_kind::MessageKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interface<'p> {
    Token,
    /// The identifier is percent-encoded.
    Variants {
        variant_identifier: &'p str,
    },
    Message(MessageKind),
}

impl<'p> Interface<'p> {
    pub(crate) fn for_path(path: &'p str) -> Option<Self> {
        if path.ends_with("/oauth/token") {
            return Some(Self::Token);
        }
        let mut segments = path.rsplit('/');
        if let (Some("variants"), Some(variant_identifier), Some("sku")) =
            (segments.next(), segments.next(), segments.next())
        {
            return Some(Self::Variants { variant_identifier });
        }
        MessageKind::WEBHOOKS
            .into_iter()
            .find(|kind| path.ends_with(kind.default_path()))
            .map(Self::Message)
    }

    /// A list of all endpoints, for error messages.
    pub(crate) fn list() -> String {
        let messages = MessageKind::WEBHOOKS.map(MessageKind::default_path).join(", ");
        format!(
            "the endpoints are {messages}, /sku/{{variant_identifier}}/variants and /oauth/token"
        )
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
    fn check(path: &str, expected: Option<Interface<'_>>) {
        assert_eq!(Interface::for_path(path), expected, "{path}");
    }

    #[test]
    fn endpoints_are_found_below_any_prefix() {
        for kind in MessageKind::WEBHOOKS {
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
