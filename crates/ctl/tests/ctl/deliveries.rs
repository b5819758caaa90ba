//! What operators see of messages to merchants, and what they can do about them.

use serde_json::{Value, json};
use testkit::eventually;

use crate::desk::{Desk, SOON};

/// The words of each row below the headings.
fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_listed_shown_replayed_and_counted() {
    let desk = Desk::open().await;
    desk.answer(503).await;
    let dead = desk.say(&json!({"number": 1})).await;
    desk.is(&dead, "dead").await;
    desk.answer(200).await;
    let well = desk.say(&json!({"number": 2})).await;
    desk.is(&well, "delivered").await;

    let stack = &desk.stack;
    let list = stack.text("deliveries list").await;
    assert!(list.starts_with("ID"), "{list}");
    let found: Vec<_> = rows(&list).iter().map(|row| row[0].to_owned()).collect();
    assert_eq!(found, [well.clone(), dead.clone()], "newest first: {list}");
    for filter in ["--state dead", "--status 503", "--merchant acme --kind rma --state dead"] {
        let page = stack.json(&format!("deliveries list {filter} --json")).await;
        let ids: Vec<_> =
            page["deliveries"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
        assert_eq!(ids, [&json!(dead)], "{filter}");
    }
    let page = stack.json("deliveries list --limit 1 --json").await;
    assert_eq!(page["deliveries"].as_array().unwrap().len(), 1);
    let none = stack.json("deliveries list --ordering_key rma:2 --json").await;
    assert_eq!(none["deliveries"], json!([]));

    let shown = stack.text(&format!("deliveries show {dead}")).await;
    assert!(shown.contains("{\"number\":1}") && shown.contains("dead"), "{shown}");
    assert!(shown.lines().last().is_some_and(|request| request.contains(" 503 ")), "{shown}");
    let shown = stack.json(&format!("deliveries show {dead} --json")).await;
    assert_eq!(shown["requests"].as_array().unwrap().len(), 2);

    let complaint = stack.complaint(&format!("deliveries replay {dead}"), 1).await;
    assert!(complaint.contains("has overtaken"), "{complaint}");
    let replayed = stack.json(&format!("deliveries replay {dead} --force")).await;
    assert_eq!(replayed["replayed"], json!(dead));
    desk.is(&dead, "delivered").await;

    let report = stack.json("deliveries report --merchant acme --by day --json").await;
    let requests = |status: u16| -> i64 {
        let counts = report["counts"].as_array().unwrap().iter();
        counts.filter(|it| it["status"] == status).filter_map(|it| it["requests"].as_i64()).sum()
    };
    assert_eq!((requests(503), requests(200)), (2, 2), "{report}");
    let table = stack.text("deliveries report").await;
    assert!(table.starts_with("FROM") && table.contains("acme"), "{table}");
    desk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_messages_are_replayed_by_filter() {
    let desk = Desk::open().await;
    desk.answer(500).await;
    let mut dead = Vec::new();
    for number in 0..3 {
        let id = desk.say(&json!({"number": number})).await;
        desk.is(&id, "dead").await;
        dead.push(id);
    }
    desk.answer(200).await;
    let stack = &desk.stack;
    let replay = "deliveries replay --merchant acme --status 500 --force";
    let counted = stack.json(&format!("{replay} --dry-run")).await;
    assert_eq!(counted["replays"][0]["matches"], 3);
    let (first, _) = dead.split_first().unwrap();
    assert_eq!(stack.json(&format!("deliveries show {first} --json")).await["state"], "dead");
    let started = stack.json(&format!("{replay} --per-second 100")).await;
    assert!(started["replays"][0]["id"].is_string(), "{started}");
    for id in &dead {
        desk.is(id, "delivered").await;
    }
    assert_eq!(stack.json("deliveries replay --all --dry-run").await["replays"][0]["matches"], 0);

    desk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_away_does_not_hide_the_others() {
    let desk = Desk::open().await;
    let id = desk.say(&json!({"number": 1})).await;
    desk.is(&id, "delivered").await;
    desk.move_behind_another();
    let stack = &desk.stack;
    stack.text(&format!("deliveries show {id}")).await;
    stack.text(&format!("deliveries replay {id} --force")).await;
    let partly = async |line: &str, key: &str| {
        let output = stack.backhaul(line).await;
        assert_eq!(output.status.code(), Some(1), "{line}");
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert!(complaint.starts_with("error: the service does not answer"), "{line}: {complaint}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(!answer[key].as_array().unwrap().is_empty(), "{line}: {answer}");
    };
    partly("deliveries list --json", "deliveries").await;
    partly("deliveries report --json", "counts").await;
    partly("deliveries replay --merchant acme", "replays").await;
    partly("endpoint check acme --json", "results").await;
    // Whether the one that is away has it cannot be said.
    let nobody = "0198c0de-0000-7000-8000-000000000000";
    let complaint = stack.complaint(&format!("deliveries show {nobody}"), 1).await;
    assert!(complaint.starts_with("error: the service does not answer"), "{complaint}");
    desk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_done_to_a_message_is_said() {
    let desk = Desk::open().await;
    let stack = &desk.stack;
    let nobody = "0198c0de-0000-7000-8000-000000000000";
    let complaint = stack.complaint(&format!("deliveries show {nobody}"), 1).await;
    assert!(
        complaint.starts_with(&format!("error: there is no delivery {nobody}\n")),
        "{complaint}"
    );
    let complaint = stack.complaint(&format!("deliveries replay {nobody}"), 1).await;
    assert!(complaint.contains("there is no delivery"), "{complaint}");
    for misuse in [
        "deliveries list --state lost",
        "deliveries list --kind letter",
        "deliveries list --from yesterday",
        "deliveries replay 1 --dry-run",
        "deliveries replay 1 --merchant acme",
        "deliveries replay 1 --all",
        "deliveries replay --all --merchant acme",
        "deliveries replay",
        "deliveries replay --force --per-second 9",
        "deliveries replay --all --per-second 0",
        "deliveries replay --all --per-second 1001",
        "deliveries list --limit 501",
        "deliveries report --by minute",
    ] {
        stack.complaint(misuse, 2).await;
    }
    let complaint = stack.complaint("deliveries list --service-url http://127.0.0.1:1", 1).await;
    assert!(complaint.contains("127.0.0.1:1"), "{complaint}");
    desk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_says_what_is_wrong_with_an_endpoint() {
    let desk = Desk::open().await;
    let stack = &desk.stack;
    let check = stack.json("endpoint check acme --json").await;
    assert_eq!(check["results"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&check["results"][0]["kind"], &check["results"][0]["accepted"]),
        (&json!("rma"), &json!(true))
    );
    desk.answer(404).await;
    let refused = stack.backhaul("endpoint check acme").await;
    assert_eq!(refused.status.code(), Some(1));
    let table = String::from_utf8(refused.stdout).unwrap();
    assert!(table.starts_with("KIND"), "{table}");
    assert!(table.contains(" no ") && table.contains(" 404 "), "{table}");
    stack.text("endpoint set acme rma --url http://127.0.0.1:1/rmas").await;
    eventually("the new address is known", SOON, async || {
        let check = stack.backhaul("endpoint check acme --json").await;
        let check: Value = serde_json::from_slice(&check.stdout).unwrap();
        (check["results"][0]["status"] == Value::Null).then_some(())
    })
    .await;
    stack.text("merchant set acme --base-url http://127.0.0.1:1").await;
    stack.text("endpoint set acme rma --path /rmas").await;
    stack.text("merchant set acme --no-base-url").await;
    let unusable = eventually("an endpoint without an address is wrong", SOON, async || {
        let check = stack.backhaul("endpoint check acme --json").await;
        let code = check.status.code();
        let check: Value = serde_json::from_slice(&check.stdout).unwrap();
        (check["results"][0]["endpoint"] == Value::Null).then_some((code, check))
    })
    .await;
    assert_eq!(unusable.0, Some(1), "{}", unusable.1);
    stack.text("endpoint remove acme rma").await;
    eventually("an endpoint that is not there is not wrong", SOON, async || {
        let check = stack.backhaul("endpoint check acme").await;
        check.status.success().then_some(())
    })
    .await;
    let complaint = stack.complaint("endpoint check nobody", 1).await;
    assert!(complaint.starts_with("error: there is no merchant nobody\n"), "{complaint}");
    desk.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_captured_message_is_verified() {
    let desk = Desk::open().await;
    let (stack, body) = (&desk.stack, json!({"number": 7}));
    let id = desk.say(&body).await;
    desk.is(&id, "delivered").await;
    let arrival = desk.arrival(&id).await;
    let header = |name: &str| arrival["headers"][name].as_str().unwrap().to_owned();
    let (timestamp, signature) = (header("webhook-timestamp"), header("webhook-signature"));
    stack.write("secret", &format!("{}\n", desk.secret));
    stack.write("other", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
    stack.write("body", &body.to_string());
    stack.write("forged", "{\"number\":8}");
    let verify = async |secret: &str, body: &str, more: &str| {
        let line = format!(
            "verify --secret-file {secret} --id {id} --timestamp {timestamp} \
             --signature {signature}{more} {body}"
        );
        let output = stack.backhaul(&line).await;
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(verify("secret", "body", "").await, (Some(0), "the signature is good\n".to_owned()));
    // While a secret is rotated, either one will do.
    let both = verify("other", "body", " --secret-file secret").await;
    assert_eq!(both.0, Some(0), "{}", both.1);
    for (secret, body, more) in [
        ("secret", "forged", ""),
        ("other", "body", ""),
        ("secret", "body", " --at 2020-01-01T00:00:00Z"),
    ] {
        let (code, said) = verify(secret, body, more).await;
        assert_eq!(code, Some(1), "{secret} {body}{more}: {said}");
        assert!(said.starts_with("the signature is not good: "), "{said}");
    }
    assert_eq!(verify("missing", "body", "").await.0, Some(1));
    assert_eq!(verify("body", "body", "").await.0, Some(1));
    desk.close().await;
}
