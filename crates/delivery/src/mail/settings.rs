//! Settings of mails: section `[mail]`.

use std::num::NonZeroU32;

use lettre::message::Mailbox;
use lettre::{AsyncSmtpTransport, Tokio1Executor};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::Error as _};

/// Settings of mails.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct MailSettings {
    /// It may have a password.
    pub(super) url: SecretString,
    pub(super) from: String,
    pub(super) max_per_second: NonZeroU32,
    pub(super) max_per_domain: NonZeroU32,
}

/// Rejects a URL or a sender that cannot be used before the service starts.
impl<'de> Deserialize<'de> for MailSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `remote` makes the derived implementation an inherent function.
        let settings = Self::deserialize(deserializer)?;
        if !settings.is_set() {
            return Ok(settings);
        }
        // The error could quote the URL with its password.
        if AsyncSmtpTransport::<Tokio1Executor>::from_url(settings.url.expose_secret()).is_err() {
            return Err(D::Error::custom("mail.url must be an smtp:// or smtps:// URL"));
        }
        if settings.from.parse::<Mailbox>().is_err() {
            let from = &settings.from;
            return Err(D::Error::custom(format!(
                "mail.from must be an address, or a name and <an address>, not {from:?}"
            )));
        }
        Ok(settings)
    }
}

impl MailSettings {
    /// Whether mails are sent.
    pub(super) fn is_set(&self) -> bool {
        !self.url.expose_secret().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use platform::settings;

    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<bool, String> {
        let url = ("TEST__DATABASE__URL".to_owned(), "postgres://h".to_owned());
        let variables = variables
            .iter()
            .map(|(name, value)| (format!("TEST__MAIL__{name}"), (*value).to_owned()));
        let environment = variables.chain([url]).collect();
        let defaults = [crate::MAIL_DEFAULTS];
        let read =
            settings::load::<HashMap<String, MailSettings>>("test", &defaults, None, environment);
        let (_, sections) = read.map_err(|faults| faults.to_string())?;
        Ok(sections["mail"].is_set())
    }

    #[test]
    fn a_url_needs_a_sender_and_no_error_shows_its_password() {
        assert_eq!(read(&[]), Ok(false));
        let from = ("FROM", "Returns <returns@mail.example>");
        for url in
            ["smtps://u:p@mail.example", "smtp://mail.example?tls=required", "smtp://[::1]:25"]
        {
            assert_eq!(read(&[("URL", url), from]), Ok(true), "{url}");
        }
        let fault = read(&[("URL", "https://u:geheim@mail.example"), from]).unwrap_err();
        assert!(fault.contains("must be an smtp://") && !fault.contains("geheim"), "{fault}");
        let fault = read(&[("URL", "smtps://mail.example")]).unwrap_err();
        assert!(fault.contains("must be an address"), "{fault}");
    }
}
