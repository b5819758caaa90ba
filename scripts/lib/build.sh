# shellcheck shell=bash
# Cargo. Wants $root (the checkout).
# shellcheck disable=SC2154

need_cargo() {
    command -v cargo >/dev/null || PATH=$HOME/.cargo/bin:$PATH
    command -v cargo >/dev/null ||
        die "there is no cargo: install Rust from https://rustup.rs, then open a new shell and try again"
    command -v cc >/dev/null || install_packages build-essential
}

target_folder() { echo "${CARGO_TARGET_DIR:-$root/target}"; }
