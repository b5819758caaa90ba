//! A merchant to try things out with.

use std::os::unix::fs::PermissionsExt as _;

use order_intake::App;
use platform::{Clock, Service as _};
use testkit::{Database, run};

use super::Stack;

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_merchant_is_set_up_once_and_found_again() {
    let stack = Stack::start().await;
    let database = Database::create(App::migrations()).await;
    let jwks = format!("{}/.well-known/jwks.json", stack.auth.url);
    let settings =
        [("IDENTITY__ISSUER", "https://auth.test"), ("IDENTITY__JWKS_URL", jwks.as_str())];
    let intake = run::<App>(&settings, Clock::system(), &database, &stack.auth.namespace).await;
    stack.remember("ORDERS_URL", intake.url.as_str());
    let kept = stack.checkout.path().join("deep/kept");

    let first = stack.text("demo kept").await;
    expect_test::expect![[r#"
        created the merchant demo
        created an API client for it
        it has published 20 orders
    "#]]
    .assert_eq(&first);
    let client = std::fs::read_to_string(kept.join("env")).unwrap();
    let mode = kept.join("env").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let orders = std::fs::read_to_string(kept.join("orders.json")).unwrap();

    let again = stack.text("demo kept").await;
    expect_test::expect![[r#"
        the merchant demo is there
        its API client is there
        it has published 20 orders
    "#]]
    .assert_eq(&again);
    assert_eq!(std::fs::read_to_string(kept.join("env")).unwrap(), client);
    assert_eq!(std::fs::read_to_string(kept.join("orders.json")).unwrap(), orders);
    let clients = stack.json("client list demo --json").await;
    assert_eq!(clients["clients"].as_array().unwrap().len(), 1);

    // A client that no longer works is replaced.
    let id = clients["clients"][0]["client_id"].as_str().unwrap();
    stack.text(&format!("client revoke {id}")).await;
    let replaced = stack.text("demo kept").await;
    assert!(replaced.contains("created an API client for it"), "{replaced}");
    assert_ne!(std::fs::read_to_string(kept.join("env")).unwrap(), client);
    assert!(intake.stop().await);
}
