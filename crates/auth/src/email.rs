//! E-mail addresses, which identify people.

use std::{fmt, str::FromStr};

pub(crate) use domain::email::MAX_LENGTH;
use domain::email::is_email;

/// An e-mail address in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Email(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be an e-mail address, like ada@example.com")]
pub(crate) struct InvalidEmail;

impl Email {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Email {
    type Err = InvalidEmail;

    fn from_str(text: &str) -> Result<Self, InvalidEmail> {
        if is_email(text) { Ok(Self(text.to_ascii_lowercase())) } else { Err(InvalidEmail) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_checked_and_converted_to_lower_case() {
        let parsed = |text: &str| text.parse::<Email>().map(|email| email.to_string());
        assert_eq!(parsed("Ada.Lovelace+x@Example.COM"), Ok("ada.lovelace+x@example.com".into()));
        assert_eq!(parsed("root@localhost"), Ok("root@localhost".into()));
        let long = format!("{}@example.com", "a".repeat(MAX_LENGTH));
        for invalid in [
            "",
            "ada",
            "@example.com",
            "ada@",
            "a da@example.com",
            "ada@exa mple.com",
            "a@b@c",
            "ada@.com",
            "ada@-x.com",
            "ada@x-.com",
            "a/b@example.com",
            "a:b@example.com",
            "<b>@example.com",
            "ada@example.com\n",
            "ädä@example.com",
            &long,
        ] {
            assert_eq!(parsed(invalid), Err(InvalidEmail), "{invalid}");
        }
    }
}
