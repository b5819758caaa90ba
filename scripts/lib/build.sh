# shellcheck shell=bash
# Cargo. Requires $root (the checkout).
# shellcheck disable=SC2154

need_cargo() {
    command -v cargo >/dev/null || PATH=$HOME/.cargo/bin:$PATH
    command -v cargo >/dev/null ||
        die "cargo is not installed: install Rust from https://rustup.rs, open a new shell and try again"
    command -v cc >/dev/null || install_packages build-essential
}

target_folder() { echo "${CARGO_TARGET_DIR:-$root/target}"; }

# version: prints the version of the workspace, the only place that defines it.
version() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml"; }
