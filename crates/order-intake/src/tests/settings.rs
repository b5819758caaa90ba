//! Tests of settings with values outside their range.

use testkit::check_setting_rejected;

use crate::App;

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
        check_setting_rejected::<App>(&[], (name, value), expected);
    }
}
