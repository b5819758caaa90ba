//! The version of the running program and the commit that it was built from.

use std::sync::LazyLock;

/// The version of the workspace.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, if the build sets it in this variable.
pub const COMMIT: &str = match option_env!("BACKHAUL_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// The text of `--version`.
pub fn version_text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| format!("{VERSION} (commit {COMMIT})"));
    &TEXT
}
