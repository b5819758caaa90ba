//! The command for the mails to a merchant's shoppers.

use crate::app::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn mails_are_shown_and_changed() {
    let app = TestApp::start().await;
    app.text("merchant add acme --name Acme").await;
    let shown = app.text("merchant mails acme").await;
    assert!(shown.starts_with("replies to       - (shoppers get no mails)\n"), "{shown}");
    let set = "merchant mails acme --set reply_to=returns@acme.example --set events.received=false \
               --json";
    let changed = app.json(set).await;
    assert_eq!(changed["reply_to"], "returns@acme.example");
    assert_eq!(changed["events"]["received"], false);
    assert_eq!(changed["events"]["refunded"], true);

    // The output is a file that the command accepts.
    app.write("mails.json", &changed.to_string());
    assert_eq!(app.json("merchant mails acme --file mails.json --json").await, changed);
    let restored = app.json("merchant mails acme --set events.received= --json").await;
    assert_eq!(restored["events"]["received"], true);
    let stderr = app.error("merchant mails acme --set reply_to=nobody", 1).await;
    assert!(stderr.contains("$.mails.reply_to: "), "{stderr}");
    app.error("merchant mails acme --set to=x", 2).await;
}
