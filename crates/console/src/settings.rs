//! Typed settings. `default.toml` has the defaults.

use pages::api::ServiceUrls;
use serde::Deserialize;

/// The sections of the console's settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub(crate) services: ServiceUrls,
}

#[cfg(test)]
mod tests {
    use platform::{Service as _, settings};

    use super::*;
    use crate::App;

    fn read(settings: &[(&str, &str)]) -> Result<(), String> {
        let variables = settings.iter().map(|(name, value)| (format!("CONSOLE__{name}"), *value));
        let variables = variables.map(|(name, value)| (name, value.to_owned())).collect();
        let loaded = settings::load::<Settings>(App::NAME, App::DEFAULTS, None, variables);
        loaded.map(drop).map_err(|faults| faults.to_string())
    }

    #[test]
    fn wrong_settings_are_rejected() {
        read(&[]).unwrap();
        for (name, value, expected) in [
            ("FOO__BAR", "x", "foo (CONSOLE__FOO__*): does not exist"),
            ("FOO", "x", "foo (CONSOLE__FOO): does not exist"),
            ("BROKER__URL", "amqp://h", "broker (CONSOLE__BROKER__*): does not exist"),
            ("SERVICES__AUHT", "x", "services.auht (CONSOLE__SERVICES__AUHT): does not exist"),
            (
                "SERVICES__AUTH",
                "auth:8081",
                "services.auth (CONSOLE__SERVICES__AUTH): \"auth:8081\" is not an http:// or https:// URL",
            ),
        ] {
            let faults = read(&[(name, value)]).unwrap_err();
            assert!(faults.starts_with("one setting of console is wrong:"), "{faults}");
            assert!(faults.contains(expected), "{expected}: {faults}");
        }
    }
}
