//! The contract files under `proto-schemas`: generated from the types, and committed. Tests check that they match.

use std::{fs, path::PathBuf};

/// Fails if the file differs from the generated one. With `UPDATE_CONTRACT=1` it is written instead.
#[track_caller]
pub fn check_contract(file: &str, generated: &str) {
    let path =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../proto-schemas")).join(file);
    #[expect(clippy::disallowed_methods, reason = "tests have no other settings")]
    if std::env::var("UPDATE_CONTRACT").is_ok() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, generated).unwrap();
        return;
    }
    let checked_in = fs::read_to_string(&path).unwrap_or_default();
    let hint = "run the tests with UPDATE_CONTRACT=1 and look at the difference";
    assert!(checked_in == generated, "proto-schemas/{file} is not what the code says: {hint}");
}
