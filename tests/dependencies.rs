//! Checks which crates of the workspace may depend on which. ARCHITECTURE.md has the same rules as
//! a diagram.
//!
//! See docs/decisions/workspace.md.

use std::{collections::BTreeMap, process::Command};

use serde_json::Value;

/// Every crate and the workspace crates it may depend on. Dependencies point one way and no service
/// depends on another. Dev-dependencies are not restricted.
const ALLOWED: [(&str, &[&str]); 21] = [
    ("domain", &[]),
    ("texts", &["domain"]),
    ("api", &["domain"]),
    ("platform", &["domain"]),
    ("messaging", &["domain", "platform"]),
    ("merchants", &["domain", "messaging", "platform"]),
    ("testkit", &["domain", "messaging", "platform"]),
    ("auth", &["domain", "messaging", "platform"]),
    ("order-intake", &["api", "domain", "merchants", "messaging", "platform"]),
    ("delivery", &["api", "domain", "merchants", "messaging", "platform"]),
    ("rma-engine", &["api", "delivery", "domain", "merchants", "messaging", "platform", "texts"]),
    ("exchange", &["api", "delivery", "domain", "merchants", "messaging", "platform"]),
    ("warehouse-notifier", &["api", "delivery", "domain", "merchants", "messaging", "platform"]),
    ("pages", &["domain", "platform"]),
    ("console", &["api", "domain", "pages", "platform"]),
    ("portal", &["domain", "pages", "platform", "texts"]),
    ("sandbox", &["domain", "platform"]),
    ("ctl", &["domain", "platform"]),
    ("demo", &["ctl", "domain", "platform"]),
    ("bench", &["ctl", "domain", "messaging", "platform"]),
    ("tests", &[]),
];

/// Libraries that a single crate wraps for all others.
const WRAPPED: [(&str, &str); 3] =
    [("lapin", "messaging"), ("backoff", "platform"), ("lettre", "delivery")];

fn packages() -> Vec<Value> {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .output();
    let output = cargo.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Names in `[dependencies]` and `[build-dependencies]`, and whether each is a workspace crate.
fn dependencies(package: &Value) -> Vec<(String, bool)> {
    let all = package["dependencies"].as_array().unwrap().iter();
    all.filter(|dependency| dependency["kind"] != "dev")
        .map(|dependency| {
            (dependency["name"].as_str().unwrap().to_owned(), dependency["path"].is_string())
        })
        .collect()
}

#[test]
fn crates_depend_only_on_allowed_crates() {
    let allowed: BTreeMap<_, _> = ALLOWED.into_iter().collect();
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let allowed = allowed
            .get(name)
            .unwrap_or_else(|| panic!("crate {name} is not listed in tests/dependencies.rs"));
        for (dependency, in_workspace) in dependencies(&package) {
            assert!(
                !in_workspace || allowed.contains(&dependency.as_str()),
                "{name} must not depend on {dependency}"
            );
        }
    }
}

#[test]
fn wrapped_libraries_are_named_by_one_crate() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        for (dependency, _) in dependencies(&package) {
            let wrapper = WRAPPED.iter().find(|(library, _)| *library == dependency);
            assert!(
                wrapper.is_none_or(|(_, wrapper)| *wrapper == name),
                "{name} must not depend on {dependency}"
            );
        }
    }
}

#[test]
fn test_libraries_are_not_in_shipped_crates() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        if matches!(name, "testkit" | "tests") {
            continue;
        }
        for (dependency, _) in dependencies(&package) {
            assert!(
                !matches!(dependency.as_str(), "testkit" | "proptest"),
                "{name} ships {dependency}, which is for tests only"
            );
        }
    }
}
