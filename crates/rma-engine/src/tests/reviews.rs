//! Returns that wait for review by the merchant.

use domain::returns::GiftCardOffer;

use super::exchanging::exchange_of;
use super::moving::report;
use super::projecting::{order, refunded};
use super::quoting::quote;
use super::*;

/// The rules of a merchant that looks at every return for three days.
fn review_of_all(then: &str) -> Value {
    json!({ "rules": [{ "id": "look", "then": { "review": { "within_days": 3, "then": then } } }] })
}

fn policy(acme: &mut Merchant, rules: Value) {
    acme.settings.policy = serde_json::from_value(rules).unwrap();
}

/// The service with order A of three units, whose returns are reviewed.
async fn start(then: &str) -> TestApp {
    let app = TestApp::with(|acme| policy(acme, review_of_all(then))).await;
    app.store("acme", &order("A", 3)).await;
    app
}

/// A refund of unit 1 with a comment, and an exchange of unit 2.
fn refund_and_exchange() -> Value {
    let mut body = refund_of("A", &[1]);
    body["units"][0]["comment"] = json!("Too tight\nat the neck");
    let exchanged = exchange_of("A", &[2])["units"][0].take();
    body["units"].as_array_mut().unwrap().push(exchanged);
    body
}

fn overridden(mut body: Value) -> Value {
    body["override"] = json!({ "by": "Ann", "reason": "a good customer" });
    body
}

impl TestApp {
    async fn decide(&self, rma: &str, decision: &str, body: &Value) -> (StatusCode, Value) {
        self.post(&format!("/v1/returns/{rma}/{decision}"), "acme", body).await
    }

    /// Fails unless a second decision is refused with this message.
    async fn check_decided(&self, rma: &str, message: &str) {
        for decision in ["approve", "decline"] {
            let (status, refusal) = self.decide(rma, decision, &json!({})).await;
            assert_eq!(status, StatusCode::CONFLICT, "{refusal}");
            assert_eq!(refusal["message"], format!("return {rma}: {message}"));
        }
    }

    async fn entries(&self, rma: &str) -> Vec<Value> {
        let (_, timeline) = self.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
        timeline["entries"].as_array().unwrap().clone()
    }

    async fn in_review(&self) -> Vec<Value> {
        let (status, listed) = self.get("/v1/returns?status=REQUESTED", "acme").await;
        assert_eq!(status, StatusCode::OK, "{listed}");
        listed["returns"].as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn a_return_in_review_holds_its_units_and_nothing_else_happens() {
    let app = start("approve").await;
    let body = refund_and_exchange();
    assert_eq!(quote(&app, &body).await["review_rule"], "look");
    let rma = app.start_return(&body).await;
    let shown = app.show(&rma).await;
    assert_eq!((&shown["status"], &shown["send_by"]), (&json!("REQUESTED"), &Value::Null));
    assert_eq!(
        (&shown["review"]["rule"], &shown["review"]["then"]),
        (&json!("look"), &json!("approve"))
    );
    assert_eq!(shown["units"][0]["comment"], "Too tight\nat the neck");
    assert_eq!(shown["units"][1]["exchange_status"], Value::Null);
    let listed = app.in_review().await;
    assert_eq!((listed.len(), &listed[0]["rma_identifier"]), (1, &json!(rma)));
    // Its units are in no other return, and its order has no other exchange.
    let (status, refusal) =
        app.post("/v1/returns", "acme", &overridden(refund_of("A", &[1]))).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["ineligible"][0]["code"], "already_returned");
    let (status, refusal) =
        app.post("/v1/returns", "acme", &overridden(exchange_of("A", &[3]))).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["ineligible"][0]["code"], "already_exchanged");
    let (status, refusal) = app.carrier(&report("1", "label", Some(&rma), Some("1Z"))).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(refusal["message"], format!("return {rma}: the return waits for review"));
    assert_eq!(app.sent_messages().await, Vec::<String>::new());
    let deadlines =
        "SELECT count(*) AS n FROM return_deadlines WHERE merchant = 'acme' AND kind = 'review'";
    assert_eq!((app.number(deadlines).await, app.deadlines().await), (1, 1));
    let entries = app.entries(&rma).await;
    assert_eq!((entries.len(), &entries[0]["event"]), (1, &json!("request")));
    assert_eq!(entries[0]["detail"]["rule"], "look");
}

#[tokio::test]
async fn an_approval_gives_the_bonus_of_the_request() {
    let with_bonus = |acme: &mut Merchant, bonus_credit_amount_cents| {
        policy(acme, review_of_all("decline"));
        let sku = "GIFT".to_owned();
        let card = GiftCardOffer { sku, bonus_credit_amount_cents };
        acme.settings.returns.gift_card = Some(card);
    };
    let app = TestApp::with(|acme| with_bonus(acme, 500)).await;
    app.store("acme", &order("A", 1)).await;
    let card = choice("A", 1, &json!({ "resolution": "gift_card" }));
    let body = json!({ "return_method": "mail-back", "units": [card] });
    let rma = app.start_return(&body).await;
    assert_eq!(app.show(&rma).await["gift_card_bonus_amount_cents"], 500);
    app.change_acme(2, |acme| with_bonus(acme, 100)).await;
    eventually("the bonus is known", SOON, || async {
        let quoted = quote(&app, &body).await;
        (quoted["gift_card_bonus_amount_cents"] == 100).then_some(())
    })
    .await;
    let (status, approved) = app.decide(&rma, "approve", &json!({})).await;
    assert_eq!(status, StatusCode::OK, "{approved}");
    let confirmed = app.events("exchange.return.confirmed.v1", 1).await.remove(0);
    assert_eq!(confirmed["gift_card"]["bonus_credit_amount_cents"], 500);
}

#[tokio::test]
async fn an_approval_starts_a_return_once() {
    let app = start("decline").await;
    let rma = app.start_return(&refund_and_exchange()).await;
    let path = format!("/v1/returns/{rma}/approve");
    let note = json!({ "note": "A good customer" });
    let key = [("idempotency-key", "decision-1")];
    let approve =
        async |body: &Value| app.send_as(Method::POST, &path, "acme", &key, Some(body)).await;
    let (status, approved) = approve(&note).await;
    assert_eq!((status, &approved["status"]), (StatusCode::OK, &json!("CREATED")), "{approved}");
    assert_eq!(approve(&note).await, (status, approved.clone()), "a repeated request");
    assert_eq!(approve(&json!({})).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    app.check_decided(&rma, "the return was approved already").await;

    let decided = &approved["review"]["decided"];
    assert_eq!((&decided["decision"], &decided["note"]), (&json!("approve"), &note["note"]));
    assert_eq!(approved["units"][1]["exchange_status"], "pending");
    let at: chrono::DateTime<chrono::Utc> = decided["at"].as_str().unwrap().parse().unwrap();
    let day = at.date_naive() + chrono::Days::new(31);
    assert_eq!(approved["send_by"], format!("{day}T00:00:00Z"));
    let confirmed = app.events("exchange.return.confirmed.v1", 1).await.remove(0);
    assert_eq!(
        (&confirmed["rma_identifier"], &confirmed["confirmed_at"]),
        (&json!(rma), &decided["at"])
    );
    assert_eq!(confirmed["units"].as_array().unwrap().len(), 1);
    let arrivals = app.arrivals("acme").await;
    let [created] = &arrivals[..] else { panic!("{arrivals:?}") };
    assert_eq!((created.event.as_str(), created.sequence), ("rma.created", 1));
    assert_eq!(created.body["status"], "CREATED");
    assert_eq!(created.body["items"][0].get("comment"), None);
    let entries = app.entries(&rma).await;
    let entry = &entries[1];
    assert_eq!(
        (&entry["event"], &entry["detail"]["cause"]),
        (&json!("rma.created"), &json!("approval"))
    );
    assert_eq!(entry["detail"]["note"], "A good customer");
    assert_eq!((entries.len(), app.in_review().await.len()), (2, 0));
    // The deadline of the review is replaced by that of the parcel.
    let sends =
        "SELECT count(*) AS n FROM return_deadlines WHERE merchant = 'acme' AND kind = 'send'";
    assert_eq!((app.number(sends).await, app.deadlines().await), (1, 1));
}

#[tokio::test]
async fn a_decline_frees_the_units_and_their_exchange() {
    let app = start("approve").await;
    let rma = app.start_return(&refund_and_exchange()).await;
    let (status, declined) = app.decide(&rma, "decline", &json!({ "note": "Worn" })).await;
    assert_eq!((status, &declined["status"]), (StatusCode::OK, &json!("DECLINED")), "{declined}");
    assert_eq!(declined["review"]["decided"]["note"], "Worn");
    app.check_decided(&rma, "the return was declined").await;
    let (status, refusal) =
        app.post(&format!("/v1/returns/{rma}/cancel"), "acme", &json!({})).await;
    assert_eq!(status, StatusCode::CONFLICT, "{refusal}");
    assert_eq!(app.deadlines().await, 0);
    assert_eq!(app.entries(&rma).await[1]["event"], "decline");
    // Staff who override the policy have decided already.
    let second = app.start_return(&overridden(refund_and_exchange())).await;
    let shown = app.show(&second).await;
    assert_eq!((&shown["status"], shown.get("review")), (&json!("CREATED"), None));
    assert_eq!(app.entries(&second).await[0]["detail"]["override"]["review_rule"], "look");
    let confirmed = app.events("exchange.return.confirmed.v1", 1).await.remove(0);
    assert_eq!(confirmed["rma_identifier"], json!(second));
    let arrivals = app.arrivals("acme").await;
    let told: Vec<_> = arrivals.iter().map(|it| it.body["rma_identifier"].as_str()).collect();
    assert_eq!(told, [Some(second.as_str())]);
}

#[tokio::test]
async fn the_rule_approves_once_when_nobody_decides_in_time() {
    let app = start("approve").await;
    let rma = app.start_return(&refund_and_exchange()).await;
    app.pass_deadlines().await;
    let approved = app.until_status(&rma, "CREATED").await;
    let decided = &approved["review"]["decided"];
    assert_eq!((&decided["decision"], decided.get("by")), (&json!("approve"), None));
    app.check_decided(&rma, "the return was approved already").await;
    let entry = app.entries(&rma).await.remove(1);
    assert_eq!((&entry["event"], &entry["actor"]), (&json!("rma.created"), &json!("deadline")));
    let detail = &entry["detail"];
    assert_eq!((&detail["cause"], &detail["rule"]), (&json!("approval"), &json!("look")));
    assert_eq!(
        app.events("exchange.return.confirmed.v1", 1).await[0]["rma_identifier"],
        json!(rma)
    );
    // The parcel has its own deadline from now on.
    assert_eq!(app.deadlines().await, 1);
    app.pass_deadlines().await;
    eventually("the return expires", SOON, || async { (app.deadlines().await == 0).then_some(()) })
        .await;
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.expired"]);
}

#[tokio::test]
async fn the_rule_declines_when_nobody_decides_in_time() {
    let app = start("decline").await;
    let rma = app.start_return(&refund_and_exchange()).await;
    app.pass_deadlines().await;
    let declined = app.until_status(&rma, "DECLINED").await;
    assert_eq!(declined["review"]["decided"]["decision"], "decline");
    app.check_decided(&rma, "the return was declined").await;
    let entry = app.entries(&rma).await.remove(1);
    assert_eq!((&entry["event"], &entry["actor"]), (&json!("decline"), &json!("deadline")));
    assert_eq!((app.deadlines().await, app.sent_messages().await.len()), (0, 0));
    app.start_return(&overridden(refund_and_exchange())).await;
}

#[tokio::test]
async fn a_later_rule_does_not_change_a_review_that_waits() {
    let app = start("decline").await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.change_acme(1_000, |acme| acme.settings.returns.send_within_days = 7).await;
    let rules = "SELECT count(*) AS n FROM return_deadlines WHERE merchant = 'acme' AND days = 3";
    eventually("the settings are known", SOON, || async {
        (quote(&app, &refund_of("A", &[2])).await.get("review_rule").is_none()).then_some(())
    })
    .await;
    let other = app.start_return(&refund_of("A", &[2])).await;
    assert_eq!(app.show(&other).await["status"], "CREATED");
    assert_eq!(app.number(rules).await, 1);
    app.pass_deadlines().await;
    app.until_status(&rma, "DECLINED").await;
}

#[tokio::test]
async fn a_decision_and_its_deadline_at_the_same_time_have_one_effect() {
    let app = TestApp::with_settings(&[], |acme| policy(acme, review_of_all("approve"))).await;
    app.store("acme", &order("A", 2)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let other = app.start_return(&refund_of("A", &[2])).await;
    let mut lock = app.lock_return(&rma).await;
    // Neither gets the return: the deadline is tried again, and the decision waits.
    let due = async {
        app.pass_deadlines().await;
        eventually("the deadline has found the return locked", SOON, || async {
            let later = "SELECT count(*) AS n FROM return_deadlines \
                 WHERE merchant = 'acme' AND kind = 'review' AND due_at > now()";
            (app.number(later).await > 0).then_some(())
        })
        .await;
        lock.batch_execute("COMMIT").await.unwrap();
    };
    let note = json!({ "note": "Worn" });
    let ((status, declined), ()) = tokio::join!(app.decide(&rma, "decline", &note), due);
    let decided = &declined["review"]["decided"];
    let is_by_staff = status == StatusCode::OK && decided.get("by").is_some();
    assert!(is_by_staff || status == StatusCode::CONFLICT, "{declined}");
    app.change_rows(
        "UPDATE return_deadlines SET due_at = now() WHERE merchant = 'acme' AND kind = 'review'",
    )
    .await;
    app.until_status(&other, "CREATED").await;
    assert_eq!(app.entries(&rma).await.len(), 2);
    let expected = if is_by_staff { "DECLINED" } else { "CREATED" };
    assert_eq!(app.show(&rma).await["status"], expected);
    let messages = app.arrivals("acme").await;
    let own = messages.iter().filter(|it| it.body["rma_identifier"] == rma).count();
    assert_eq!(own, usize::from(!is_by_staff));
}

#[tokio::test]
async fn only_the_merchant_decides() {
    let app = start("approve").await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    for decision in ["approve", "decline"] {
        let path = format!("/v1/returns/{rma}/{decision}");
        assert_eq!(app.post(&path, "rival", &json!({})).await.0, StatusCode::NOT_FOUND);
        assert_eq!(app.decide("none", decision, &json!({})).await.0, StatusCode::NOT_FOUND);
        for scope in ["read", "shopper", "warehouse"] {
            let token = app.issuer.token(Some("acme"), scope);
            let (status, _) = app.send(Method::POST, &path, &token, &[], Some(&json!({}))).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{scope}");
        }
        for note in [String::new(), "x".repeat(1_001)] {
            let (status, _) = app.decide(&rma, decision, &json!({ "note": note })).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        }
    }
    assert_eq!(app.show(&rma).await["status"], "REQUESTED");
    let unreviewed = app.start_return(&overridden(refund_of("A", &[2]))).await;
    app.check_decided(&unreviewed, "the return does not wait for review").await;
}

#[tokio::test]
async fn a_refund_is_not_matched_with_a_return_in_review() {
    let app = start("approve").await;
    let rma = app.start_return(&refund_of("A", &[1, 2, 3])).await;
    app.store("acme", &refunded(&order("A", 3), "R1", 1, Some(&rma))).await;
    let (_, listed) = app.get("/v1/discrepancies?kind=refund_exceeds_return", "acme").await;
    assert_eq!(listed["discrepancies"][0]["detail"]["rma_identifier"], json!(rma), "{listed}");
    assert_eq!(app.show(&rma).await["status"], "REQUESTED");
    assert_eq!(app.sent_messages().await, Vec::<String>::new());
    // The refund covers a unit as soon as the units are free.
    assert_eq!(app.decide(&rma, "decline", &json!({})).await.0, StatusCode::OK);
    let (status, refusal) = app.post("/v1/returns", "acme", &refund_of("A", &[1, 2, 3])).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let refused = refusal["ineligible"].as_array().unwrap();
    let codes: Vec<_> = refused.iter().map(|it| it["code"].as_str()).collect();
    assert_eq!(codes, [Some("already_refunded")]);
}

#[tokio::test]
async fn declined_returns_are_not_counted() {
    let app = TestApp::with(|acme| {
        let rules = json!({ "rules": [
            { "id": "damaged", "when": { "reasons": ["DAMAGED"] },
              "then": { "review": { "within_days": 3, "then": "decline" } } },
            { "id": "often", "when": { "returns_of_shopper": { "days": 30, "min": 1 } },
              "then": { "returnable": false } },
        ] });
        policy(acme, rules);
    })
    .await;
    let mut order = order("A", 2);
    order.customer.email = Some("ada@shop.example".to_owned());
    app.store("acme", &order).await;
    let mut damaged = refund_of("A", &[1]);
    damaged["units"][0]["return_reason"] = json!("DAMAGED");
    let rma = app.start_return(&damaged).await;
    let (status, _) = app.post("/v1/returns", "acme", &refund_of("A", &[2])).await;
    assert_eq!(status, StatusCode::CONFLICT, "a return that waits counts");
    assert_eq!(app.decide(&rma, "decline", &json!({})).await.0, StatusCode::OK);
    app.start_return(&refund_of("A", &[2])).await;
}
