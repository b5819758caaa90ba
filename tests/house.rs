//! The rules of the house: who may depend on whom. The map is in ARCHITECTURE.md.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should panic"
)]

use std::{collections::BTreeMap, process::Command};

use serde_json::Value;

/// Every crate of the workspace and what it may build upon. Arrows point down only, services never
/// at each other; tests may use what they like.
const ARROWS: [(&str, &[&str]); 16] = [
    ("domain", &[]),
    ("platform", &["domain"]),
    ("messaging", &["domain", "platform"]),
    ("directory", &["domain", "messaging", "platform"]),
    ("testkit", &["domain", "messaging", "platform"]),
    ("auth", &["domain", "messaging", "platform"]),
    ("order-intake", &["directory", "domain", "messaging", "platform"]),
    ("delivery", &["directory", "domain", "messaging", "platform"]),
    ("rma-engine", &["delivery", "directory", "domain", "messaging", "platform"]),
    ("exchange", &["delivery", "directory", "domain", "messaging", "platform"]),
    ("warehouse-notifier", &["delivery", "directory", "domain", "messaging", "platform"]),
    ("sandbox", &["domain", "platform"]),
    ("ctl", &["delivery", "domain", "platform"]),
    ("demo", &["ctl", "domain", "platform"]),
    (
        "bench",
        &[
            "auth",
            "delivery",
            "directory",
            "domain",
            "exchange",
            "messaging",
            "order-intake",
            "platform",
            "rma-engine",
            "testkit",
            "warehouse-notifier",
        ],
    ),
    ("tests", &[]),
];

/// Libraries that only one crate may name, and which.
const KEPT: [(&str, &[&str]); 2] = [("lapin", &["messaging"]), ("backoff", &["platform"])];

fn packages() -> Vec<Value> {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .output();
    let output = cargo.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// What a package names in `[dependencies]` and `[build-dependencies]`.
fn dependencies(package: &Value) -> Vec<(String, bool)> {
    let all = package["dependencies"].as_array().unwrap().iter();
    let real = all.filter(|dependency| dependency["kind"] != "dev");
    real.map(|dependency| {
        (dependency["name"].as_str().unwrap().to_owned(), dependency["path"].is_string())
    })
    .collect()
}

#[test]
fn arrows_point_down_only() {
    let allowed: BTreeMap<_, _> = ARROWS.into_iter().collect();
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let below = allowed
            .get(name)
            .unwrap_or_else(|| panic!("{name} has no place in the house: give it one here"));
        for (dependency, _) in dependencies(&package).into_iter().filter(|(_, ours)| *ours) {
            assert!(
                below.contains(&dependency.as_str()),
                "{name} must not build upon {dependency}"
            );
        }
    }
}

#[test]
fn some_libraries_are_one_crates_business() {
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        for (dependency, _) in dependencies(&package) {
            let kept = KEPT.iter().find(|(library, _)| *library == dependency);
            assert!(
                kept.is_none_or(|(_, by)| by.contains(&name)),
                "{name} must not name {dependency}"
            );
        }
    }
}

#[test]
fn what_only_tests_use_is_in_no_product() {
    for package in packages() {
        let product = !matches!(package["name"].as_str().unwrap(), "testkit" | "tests" | "bench");
        let named = dependencies(&package);
        let uses = |name: &str| named.iter().any(|(dependency, _)| dependency == name);
        assert!(
            !product || !(uses("testkit") || uses("proptest")),
            "{} ships test code",
            package["name"]
        );
    }
}
