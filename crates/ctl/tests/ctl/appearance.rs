//! The command for the appearance of a portal.

use serde_json::json;

use crate::app::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn an_appearance_is_shown_and_changed() {
    let app = TestApp::start().await;
    app.text("merchant add acme --name Acme").await;
    let shown = app.text("merchant appearance acme").await;
    assert!(shown.starts_with("name             Acme\n"), "{shown}");
    assert!(shown.contains("look-up keys     email, zip_code\n"), "{shown}");

    let set = "merchant appearance acme --set colors.primary=#0b6e4f --set languages=de,en --json";
    let changed = app.json(set).await;
    assert_eq!(changed["colors"]["primary"], "#0b6e4f");
    assert_eq!(changed["languages"], json!(["de", "en"]));

    // The output is a file that the command accepts.
    let mut file = changed.clone();
    file["reason_labels"] = json!({"TOO_SMALL": {"de": "Zu klein"}});
    app.write("acme.json", &file.to_string());
    let from_file =
        app.json("merchant appearance acme --file acme.json --set withdrawal=true --json").await;
    file["withdrawal"] = json!(true);
    assert_eq!(from_file, file);

    let stderr = app.error("merchant appearance acme --set colors.text=#eee", 1).await;
    assert!(stderr.contains("$.appearance.colors.text: "), "{stderr}");
    assert!(stderr.contains("at least 4.5:1 is needed"), "{stderr}");
    app.write("acme.json", "[]");
    let stderr = app.error("merchant appearance acme --file acme.json", 1).await;
    assert!(stderr.contains("acme.json is not a JSON object"), "{stderr}");
    app.error("merchant appearance acme --set colour=red", 2).await;
    app.error("merchant appearance", 2).await;
    let stderr = app.error("merchant appearance nobody", 1).await;
    assert!(stderr.starts_with("error: there is no merchant nobody\n"), "{stderr}");
}
