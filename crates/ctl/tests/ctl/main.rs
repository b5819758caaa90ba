//! The real program against a real token service.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up should panic"
)]

mod deliveries;
mod demo;
mod desk;
mod warehouse;

use std::process::{Output, Stdio};
use std::time::Duration;

use platform::{Clock, Service as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{Database, TestService, eventually};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

const SECRET: &str = "a secret of the first operator";
const SOON: Duration = Duration::from_secs(30);

/// A token service and a folder that looks like a checkout whose stack it is.
struct Stack {
    auth: TestService,
    checkout: TempDir,
}

impl Stack {
    async fn start() -> Self {
        let auth = TestService::new::<auth::App>(&[
            ("SEALING__KEYS", testkit::sealing_keys()),
            ("BOOTSTRAP__CLIENT_ID", "operator"),
            ("BOOTSTRAP__CLIENT_SECRET", SECRET),
            ("TOKENS__ISSUER", "https://auth.test"),
        ])
        .await;
        let checkout = tempfile::tempdir().unwrap();
        for folder in ["scripts", ".run", "deep/inside"] {
            std::fs::create_dir_all(checkout.path().join(folder)).unwrap();
        }
        std::fs::write(checkout.path().join("scripts/run"), "").unwrap();
        let environment = format!(
            "AUTH_URL={}\nOPERATOR_CLIENT_ID=operator\nOPERATOR_CLIENT_SECRET='{SECRET}'\n",
            auth.url
        );
        std::fs::write(checkout.path().join(".run/env"), environment).unwrap();
        Self { auth, checkout }
    }

    /// One more setting in the checkout.
    fn remember(&self, name: &str, value: &str) {
        let file = self.checkout.path().join(".run/env");
        let known = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, format!("{known}{name}={value}\n")).unwrap();
    }

    /// A file beside the place that commands are called from.
    fn write(&self, name: &str, content: &str) {
        std::fs::write(self.checkout.path().join("deep").join(name), content).unwrap();
    }

    /// A command, words separated by blanks, from somewhere inside the checkout.
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_backhaul"));
        command.args(line.split(' ')).env_clear().current_dir(self.checkout.path().join("deep"));
        command
    }

    async fn backhaul(&self, line: &str) -> Output {
        self.command(line).stdin(Stdio::null()).output().await.unwrap()
    }

    /// The same with something on standard input.
    async fn fed(&self, line: &str, input: &str) -> Output {
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
        child.wait_with_output().await.unwrap()
    }

    /// What a command prints when it succeeds.
    #[track_caller]
    fn text(&self, line: &str) -> impl Future<Output = String> {
        let asked_at = std::panic::Location::caller();
        async move {
            let output = self.backhaul(line).await;
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{asked_at}: {line}: {complaint}");
            String::from_utf8(output.stdout).unwrap()
        }
    }

    #[track_caller]
    fn json(&self, line: &str) -> impl Future<Output = Value> {
        let text = self.text(line);
        async move { serde_json::from_str(&text.await).unwrap() }
    }

    /// What a command complains of when it fails, after checking how it ends.
    async fn complaint(&self, line: &str, code: i32) -> String {
        let output = self.backhaul(line).await;
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}: {complaint}");
        assert!(output.stdout.is_empty(), "{line}");
        complaint
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_is_added_changed_and_shown() {
    let stack = Stack::start().await;
    let added = stack.json("merchant add acme --name Acme --currency EUR --json").await;
    assert_eq!(added["currency"], "EUR");
    let changed = stack
        .json(
            "merchant set acme --return-window-days 60 --strict-amounts true --final-sale-tag Sale \
             --support-email help@acme.example --base-url https://acme.example/hooks --json",
        )
        .await;
    assert_eq!(
        (&changed["return_window_days"], &changed["final_sale_tags"][0]),
        (&60.into(), &"Sale".into())
    );
    assert!(changed["version"].as_i64() > added["version"].as_i64(), "{changed}");
    let emptied = stack
        .json("merchant set acme --no-base-url --no-support-contact --no-final-sale-tags --json")
        .await;
    assert_eq!(emptied["base_url"], Value::Null);
    assert_eq!(emptied["support_contact"], Value::Null);
    assert_eq!(emptied["final_sale_tags"], Value::Array(vec![]));
    assert_eq!(stack.json("merchant show acme --json").await, emptied);
    // A card is replaced whole, so its bonus is never lost unsaid.
    for half in ["--gift-card-sku GIFT", "--gift-card-bonus-cents 500"] {
        stack.complaint(&format!("merchant set acme {half}"), 2).await;
    }
    stack.text("merchant add zeta --name Zeta").await;
    let list = stack.text("merchant list").await;
    assert!(list.starts_with("MERCHANT  NAME  TIME ZONE  CURRENCY  WINDOW"), "{list}");
    assert_eq!(list.lines().count(), 3);
    let republished = stack.json("merchant republish --json").await;
    assert_eq!(republished["merchants"], 2);
    let audit = stack.json("audit acme --json").await;
    let actions: Vec<_> = audit["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["merchant.changed", "merchant.changed", "merchant.added"]);
    assert_eq!(stack.json("audit --limit 1 --json").await["records"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_works_until_it_is_revoked() {
    let stack = Stack::start().await;
    stack.text("merchant add acme --name Acme").await;
    let client = stack.json("client add acme --scope orders --scope returns --json").await;
    let (id, secret) =
        (client["client_id"].as_str().unwrap(), client["client_secret"].as_str().unwrap());
    let token = async |secret: &str, more: &str| {
        let line = format!("token --client-id {id} --client-secret-file -{more}");
        let output = stack.fed(&line, &format!("{secret}\n")).await;
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    let whole: Value =
        serde_json::from_str(&token(secret, " --scope orders --json").await.unwrap()).unwrap();
    assert_eq!((&whole["scope"], &whole["expires_in"]), (&"orders".into(), &90_000.into()));

    let rotated = stack.json(&format!("client rotate {id} --overlap 1h --json")).await;
    let newer = rotated["client_secret"].as_str().unwrap();
    assert!(token(secret, "").await.is_some() && token(newer, "").await.is_some());
    let rotated = stack.json(&format!("client rotate {id} --overlap 0s --json")).await;
    let newest = rotated["client_secret"].as_str().unwrap();
    assert!(token(secret, "").await.is_none() && token(newer, "").await.is_none());
    assert!(token(newest, "").await.is_some());

    let list = stack.json("client list acme --json").await;
    assert_eq!(list["clients"].as_array().unwrap().len(), 1);
    assert!(!list.to_string().contains("secret"));
    stack.text(&format!("client revoke {id}")).await;
    assert!(token(newest, "").await.is_none());
    let complaint = stack.complaint(&format!("client rotate {id}"), 1).await;
    assert!(complaint.starts_with(&format!("error: client {id} was revoked\n")), "{complaint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_set_paused_and_removed() {
    let stack = Stack::start().await;
    stack.text("merchant add acme --name Acme").await;
    let complaint = stack.complaint("endpoint set acme rma", 1).await;
    assert!(complaint.contains("base_url"), "{complaint}");
    let set = stack
        .json("endpoint set acme rma --url https://acme.example/rmas --header x-shop:7 --json")
        .await;
    assert!(set["signing_secret"].as_str().unwrap().starts_with("whsec_"));
    let line = "endpoint set acme rma --url https://acme.example/rmas --auth basic --username us \
                --password-file - --timeout-ms 5000 --json";
    let set: Value = serde_json::from_slice(&stack.fed(line, "hunter2\n").await.stdout).unwrap();
    assert_eq!(set["endpoint"]["authentication"]["password"], "********");
    assert_eq!(set["signing_secret"], Value::Null);
    stack.text("endpoint pause acme rma").await;
    let list = stack.text("endpoint list acme").await;
    assert_eq!(
        list.lines().last().unwrap(),
        "rma        paused  https://acme.example/rmas  basic           5000 ms"
    );
    stack.text("endpoint resume acme rma").await;
    let rotated = stack.text("endpoint rotate-secret acme rma --overlap 2days").await;
    assert!(rotated.contains("whsec_") && rotated.contains("not shown again"), "{rotated}");
    let endpoints = stack.json("endpoint list acme --json").await;
    let rma = &endpoints["endpoints"]["rma"];
    assert_eq!(
        (&rma["paused"], rma["signing_secrets"].as_array().unwrap().len()),
        (&false.into(), 2)
    );
    stack.text("endpoint remove acme rma").await;
    let complaint = stack.complaint("endpoint remove acme rma", 1).await;
    assert!(
        complaint.contains("merchant acme has no endpoint for rma\n  request id "),
        "{complaint}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_is_said_in_full() {
    let stack = Stack::start().await;
    let complaint =
        stack.complaint("merchant add acme --name Acme --currency usd --time-zone Mars", 1).await;
    assert!(
        complaint.starts_with(
            "error: 2 fields are not valid\n  \
             $.time_zone: invalid (must be an IANA time zone, like Europe/Berlin)\n  \
             $.currency: invalid (must be an ISO 4217 currency code, like USD)\n  request id "
        ),
        "{complaint}"
    );
    let complaint = stack.complaint("merchant show nobody", 1).await;
    assert!(complaint.starts_with("error: there is no merchant nobody\n"), "{complaint}");
    let complaint = stack.complaint("client add nobody --scope orders", 1).await;
    assert!(complaint.starts_with("error: there is no merchant nobody\n"), "{complaint}");
    for misuse in [
        "merchant set acme",
        "merchant show ACME",
        "client add acme",
        "client add acme --scope admin",
        "endpoint set acme letters --url https://x.example",
        "endpoint set acme rma --url https://x.example --username u",
        "endpoint set acme rma --url https://x.example --path /x",
    ] {
        stack.complaint(misuse, 2).await;
    }
    let complaint = stack.complaint("token", 2).await;
    assert!(
        complaint.starts_with(
            "error: the client id is not known: set CLIENT_ID or give --client-id, or start the stack of "
        ),
        "{complaint}"
    );
    let complaint = stack.complaint("merchant list --operator-id nobody", 1).await;
    assert!(
        complaint.starts_with(
            "error: no token for client nobody: client authentication failed (invalid_client)\n"
        ),
        "{complaint}"
    );
    let complaint = stack.complaint("merchant list --auth-url http://127.0.0.1:1", 1).await;
    assert!(
        complaint.starts_with("error: no token from http://127.0.0.1:1/oauth/token"),
        "{complaint}"
    );
    // Advice names flags that the command has.
    stack.remember("OPERATOR_CLIENT_ID", "");
    for (command, advice) in [
        ("merchant list", "set OPERATOR_CLIENT_ID or give --operator-id, or start"),
        ("token --as operator", "set OPERATOR_CLIENT_ID or give --client-id, or start"),
        ("returns list --merchant acme", "set OPERATOR_CLIENT_ID or give --client-id, or start"),
        ("demo kept", "set OPERATOR_CLIENT_ID, or start"),
    ] {
        let complaint = stack.complaint(command, 2).await;
        assert!(complaint.contains(advice), "{complaint}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_from_standard_input_is_good_for_two_services() {
    let stack = Stack::start().await;
    stack.remember("RMA_URL", "http://127.0.0.1:1");
    stack.remember("ORDERS_URL", "http://127.0.0.1:1");
    let line = "returns simulate 1001 --merchant acme --client-secret-file -";
    let output = stack.fed(line, &format!("{SECRET}\n")).await;
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.starts_with("error: the service does not answer"), "{complaint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_win_over_the_environment_and_that_over_the_checkout() {
    let stack = Stack::start().await;
    let token = async |url: &str, flags: &str| {
        let mut command = stack.command(&format!("token --as operator{flags}"));
        command.env("AUTH_URL", url).output().await.unwrap().status.success()
    };
    assert!(token(&stack.auth.url, "").await);
    assert!(!token("http://127.0.0.1:1", "").await);
    assert!(token("http://127.0.0.1:1", &format!(" --auth-url {}", stack.auth.url)).await);
}

/// What a service says when it hears that a return of order 1001 was confirmed.
fn confirmation(rma: &str) -> String {
    let address = json!({
        "name": "Ada Byron", "street1": "1 Long Lane", "city": "London", "country_code": "GB",
    });
    let data = json!({
        "merchant": "acme", "rma_identifier": rma, "original_order_id": "1001", "currency": "USD",
        "is_gift": false, "customer": {"identifier": "c-1"}, "shipping_address": address,
        "billing_address": address, "confirmed_at": "2026-03-01T00:00:00Z",
        "gift_card": {"sku": "GIFT", "bonus_credit_amount_cents": 0},
        "units": [{
            "order_identifier": "1001", "order_line_item_identifier": "L1", "unit": 1,
            "sku": "TEE-S", "title": "Shirt", "product_identifier": "P-1",
            "unit_price_amount_cents": 2500, "product_amount_cents": 2500,
            "discount_amount_cents": 0, "tax_amount_cents": 0,
            "replacement": {"resolution": "gift_card"},
        }],
    });
    let id = uuid::Uuid::new_v4();
    json!({
        "specversion": "1.0", "id": id, "source": "/backhaul/rma-engine",
        "type": "return.confirmed.v1", "subject": "acme/1001", "time": "2026-03-01T00:00:00Z",
        "datacontenttype": "application/json", "data": data,
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn exchange_orders_and_variants_are_shown() {
    let stack = Stack::start().await;
    let merchant = sandbox::start(&sandbox::settings::Settings::for_tests().unwrap()).unwrap();
    let database = Database::create(exchange::App::migrations()).await;
    let keys = format!("{}/.well-known/jwks.json", stack.auth.url);
    let settings = [
        ("SEALING__KEYS", testkit::sealing_keys()),
        ("IDENTITY__ISSUER", "https://auth.test"),
        ("IDENTITY__JWKS_URL", &keys),
        ("DELIVERY__HTTPS_ONLY", "false"),
        ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
    ];
    let namespace = &stack.auth.namespace;
    let service =
        testkit::run::<exchange::App>(&settings, Clock::system(), &database, namespace).await;
    let at = format!("--merchant acme --service-url {}", service.url);
    let base = merchant.url("");
    stack.text(&format!("merchant add acme --name Acme --base-url {base}")).await;
    stack.text("endpoint set acme exchange-order").await;

    let shown = eventually("the merchant is known", SOON, async || {
        let output = stack.backhaul(&format!("exchange variants TEE {at}")).await;
        let text = String::from_utf8(output.stdout).unwrap();
        text.contains("TEE-M").then_some(text)
    })
    .await;
    expect_test::expect![[r#"
        SKU    TITLE        ATTRIBUTES  CENTS  IN STOCK
        TEE-S  TEE, size S  size S      2500   4
        TEE-M  TEE, size M  size M      2500   9
    "#]]
    .assert_eq(&shown);
    for rma in ["R-1", "R-2"] {
        namespace.publish_raw("exchange.return.confirmed.v1", &confirmation(rma)).await;
    }
    let placed = eventually("the order is placed", SOON, async || {
        let page = stack.json(&format!("exchange list --state placed {at} --json")).await;
        page.pointer("/exchange_orders/0").cloned()
    })
    .await;
    assert_eq!(placed.get("exchange_order_identifier"), Some(&"EX-1001".into()));
    let listed = stack.text(&format!("exchange list --original-order 1001 {at}")).await;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let shown = stack.text(&format!("exchange show 1001 {at}")).await;
    assert!(shown.contains("EX-1001") && shown.contains("\nOTHER RETURNS"), "{shown}");
    let complaint = stack.complaint(&format!("exchange abandon 1001 {at}"), 1).await;
    assert!(complaint.contains("only an undeliverable one can be ended"), "{complaint}");
    let complaint = stack.complaint(&format!("exchange show 1002 {at}"), 1).await;
    assert!(complaint.contains("there is no exchange order for order 1002"), "{complaint}");
    stack.complaint(&format!("exchange list --state lost {at}"), 2).await;
    assert!(service.stop().await);
}
