//! Tests of settings with values outside their range.

use platform::{Service as _, config};

use crate::{App, Settings};

#[test]
fn unusable_settings_are_rejected() {
    for (name, value, expected) in [
        ("STORING__MAX_BATCH_ORDERS", "0", "must be a whole number from 1 to 100000, not 0"),
        ("STORING__MAX_QUEUED_ORDERS", "0", "must be a whole number from 1 to 10000000, not 0"),
        (
            "RETENTION__PERSONAL_DATA",
            "1000years",
            "must be a duration from 0s to 100years, not 1000years",
        ),
    ] {
        let variables = [
            ("DATABASE__URL", "postgres://h/d"),
            ("BROKER__URL", "amqp://h"),
            ("IDENTITY__JWKS_URL", "https://auth.test/jwks.json"),
            ("IDENTITY__ISSUER", "https://auth.test"),
            (name, value),
        ];
        let variables =
            variables.map(|(name, value)| (format!("ORDER_INTAKE__{name}"), value.to_owned()));
        let loaded = config::load::<Settings>(App::NAME, App::DEFAULTS, None, variables.into());
        let faults = loaded.unwrap_err().to_string();
        let expected = format!("(ORDER_INTAKE__{name}): {expected}");
        assert!(faults.starts_with("one setting of "), "{faults}");
        assert!(faults.contains(&expected), "{expected}: {faults}");
    }
}
