//! Settings that a service rejects.

use platform::{Service, settings};

/// Settings that have no default in any service that consumes events.
const REQUIRED: [(&str, &str); 4] = [
    ("DATABASE__URL", "postgres://h/d"),
    ("BROKER__URL", "amqp://h"),
    ("IDENTITY__JWKS_URL", "https://auth.test/jwks.json"),
    ("IDENTITY__ISSUER", "https://auth.test"),
];

/// Checks that a setting has exactly this fault. Names are those of environment variables without the service's
/// prefix; `required` are further settings without a default.
#[track_caller]
pub fn check_setting_rejected<S: Service>(
    required: &[(&str, &str)],
    (name, value): (&str, &str),
    expected: &str,
) {
    let prefix = S::NAME.replace('-', "_").to_uppercase();
    let given = [&REQUIRED, required, &[(name, value)]].concat();
    let variables =
        given.iter().map(|(name, value)| (format!("{prefix}__{name}"), (*value).into()));
    let loaded = settings::load::<S::Settings>(S::NAME, S::DEFAULTS, None, variables.collect());
    let faults = loaded.err().map(|faults| faults.to_string()).unwrap_or_default();
    let setting = name.to_lowercase().replace("__", ".");
    let faults: Vec<_> = faults.lines().skip(1).map(str::trim).collect();
    assert_eq!(faults, [format!("{setting} ({prefix}__{name}): {expected}")]);
}
