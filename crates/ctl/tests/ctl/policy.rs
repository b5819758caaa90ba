//! The commands for the rules of a merchant.

use serde_json::json;

use crate::app::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_version_of_the_rules_is_used_again() {
    let app = TestApp::start().await;
    app.text("merchant add acme --name Acme").await;
    let rule = |id: &str| json!({ "id": id, "when": {}, "then": { "window": { "days": 60 } } });
    for rules in [json!([rule("a")]), json!([rule("b"), rule("a")])] {
        app.write("policy.json", &json!({ "rules": rules }).to_string());
        app.text("policy apply acme policy.json").await;
    }
    let listed = app.text("policy versions acme").await;
    let lines: Vec<_> = listed.lines().collect();
    assert!(lines[1].ends_with("b, a") && lines[2].ends_with(" a"), "{listed}");

    let versions = app.json("policy versions acme --json").await;
    let first = versions["versions"][1]["version"].as_i64().unwrap();
    let reverted = app.json(&format!("policy revert acme {first} --json")).await;
    assert_eq!(reverted["rules"], json!([rule("a")]));
    let versions = app.json("policy versions acme --json --limit 1").await;
    assert_eq!(versions["versions"][0]["rules"], json!([rule("a")]));
    assert_eq!(versions["has_more"], true);

    let stderr = app.error(&format!("policy revert acme {}", first - 1), 1).await;
    assert!(stderr.contains("the policy of acme has no version"), "{stderr}");
}
