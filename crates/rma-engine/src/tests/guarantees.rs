//! Exchanged units, and those that do not come back.

use domain::merchant::Interface;
use domain::message_kind::{MessageKind, MessageVersion};

use super::erasing::erased;
use super::exchanging::{exchange_of, placed, until_progress};
use super::moving::report;
use super::projecting::{order, refunded};
use super::*;

impl TestApp {
    /// A return of exchanged units of a new order, whose exchange order the merchant accepted.
    pub(super) async fn exchanged_return(&self, name: &str, units: &[i32]) -> String {
        self.store("acme", &order(name, 2)).await;
        let rma = self.start_return(&exchange_of(name, units)).await;
        self.publish_event(placed(&rma, name, &format!("EX-{name}"), units)).await;
        until_progress(self, &rma, &vec!["placed"; units.len()]).await;
        rma
    }

    /// Waits until the guarantees of the units of a return have these states.
    pub(super) async fn until_guarantees(&self, rma: &str, states: &[&str]) -> Value {
        eventually("the guarantees have the states", SOON, || async {
            let shown = self.show(rma).await;
            let units = shown["units"].as_array().unwrap().iter();
            let found: Vec<_> = units.map(|it| it["guarantee"]["state"].as_str()).collect();
            let wanted: Vec<_> = states.iter().map(|it| Some(*it)).collect();
            (found == wanted).then_some(shown)
        })
        .await
    }

    /// The units of this month by state, and the amount that is due.
    async fn guarantees(&self) -> (String, Value) {
        let (status, report) = self.get("/v1/guarantees", "acme").await;
        assert_eq!(status, StatusCode::OK, "{report}");
        let months = report["months"].as_array().unwrap();
        assert_eq!(months.len(), 1, "{report}");
        let month = &months[0];
        let units = |state: &str| month[state]["units"].as_i64().unwrap();
        let states = ["open", "met", "due", "waived"].map(|it| format!("{it} {}", units(it)));
        (states.join(", "), month["due"]["amount_cents"].clone())
    }

    async fn overdue(&self) -> usize {
        let (_, listed) = self.get("/v1/returns?overdue=true", "acme").await;
        listed["returns"].as_array().unwrap().len()
    }
}

#[tokio::test]
async fn a_unit_that_does_not_come_back_is_reported_once_with_its_amount() {
    let app = TestApp::with(|acme| {
        let rma = acme.endpoints.get_mut(&Interface::Message(MessageKind::Rma)).unwrap();
        rma.version = Some(MessageVersion(4));
    })
    .await;
    let rma = app.exchanged_return("A", &[1]).await;
    let shown = app.until_guarantees(&rma, &["open"]).await;
    assert_eq!(shown["units"][0]["guarantee"]["amount_cents"], 2165);
    assert_eq!((app.deadlines().await, app.overdue().await), (1, 0));
    assert_eq!(app.guarantees().await, ("open 1, met 0, due 0, waived 0".to_owned(), json!(0)));
    app.pass_deadlines().await;
    app.until_guarantees(&rma, &["due"]).await;
    assert_eq!((app.deadlines().await, app.overdue().await), (0, 1));
    assert_eq!(app.guarantees().await, ("open 0, met 0, due 1, waived 0".to_owned(), json!(2165)));
    // A later scan meets the guarantee.
    app.carrier(&report("scan", "in_transit", Some(&rma), Some("1Z"))).await;
    app.until_guarantees(&rma, &["met"]).await;
    assert_eq!(app.overdue().await, 0);
    assert_eq!(app.guarantees().await, ("open 0, met 1, due 0, waived 0".to_owned(), json!(0)));
    let arrivals = app.arrivals("acme").await;
    let shown: Vec<_> = arrivals
        .iter()
        .map(|it| (it.event.as_str(), it.body["items"][0]["guarantee"].as_str()))
        .collect();
    let expected = [
        ("rma.created", None),
        ("rma.exchange_placed", Some("open")),
        ("rma.exchange_unreturned", Some("due")),
        ("rma.in_transit", Some("met")),
    ];
    assert_eq!(shown, expected);
    assert_eq!(arrivals[2].body["items"][0]["guarantee_amount_cents"], 2165);
    assert_eq!(app.get("/v1/guarantees", "rival").await.1["months"], json!([]));
}

#[tokio::test]
async fn the_message_of_the_contract_reports_the_event_without_new_fields() {
    let app = TestApp::start().await;
    let rma = app.exchanged_return("A", &[1, 2]).await;
    app.pass_deadlines().await;
    app.until_guarantees(&rma, &["due", "due"]).await;
    let last = app.arrivals("acme").await.pop().unwrap();
    assert_eq!(last.event, "rma.exchange_unreturned");
    let fields: Vec<_> = last.body["items"][0].as_object().unwrap().keys().cloned().collect();
    let is_new = |field: &&String| field.starts_with("guarantee");
    assert_eq!(fields.iter().find(is_new), None);
    // The exchanged units stay in their return.
    assert_eq!((&last.body["status"], app.overdue().await), (&json!("CREATED"), 1));
    assert_eq!(app.guarantees().await.1, json!(4330));
}

#[tokio::test]
async fn a_refund_ends_the_deadline_of_an_exchanged_unit() {
    let app = TestApp::start().await;
    let rma = app.exchanged_return("A", &[1]).await;
    app.store("acme", &refunded(&order("A", 2), "R1", 1, Some(&rma))).await;
    app.until_guarantees(&rma, &["met"]).await;
    assert_eq!(app.deadlines().await, 0);
}

#[tokio::test]
async fn a_waived_unit_is_not_reported() {
    let app = TestApp::start().await;
    let rma = app.exchanged_return("A", &[1, 2]).await;
    let path = format!("/v1/returns/{rma}/waive");
    let note = json!({ "note": "The carrier lost it", "units": [unit("A", 1)] });
    assert_eq!(app.post(&path, "rival", &note).await.0, StatusCode::NOT_FOUND);
    let portal = app.issuer.token(None, "shopper");
    let acme = [("x-service-id", "acme")];
    let (status, _) = app.send(Method::POST, &path, &portal, &acme, Some(&note)).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert_eq!(app.post(&path, "acme", &json!({})).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    for _ in 0..2 {
        let (status, waived) = app.post(&path, "acme", &note).await;
        assert_eq!(status, StatusCode::OK, "{waived}");
        let guarantee = &waived["units"][0]["guarantee"];
        assert_eq!(
            (&guarantee["state"], &guarantee["waiver"]["by"]),
            (&json!("waived"), &json!("client"))
        );
    }
    app.pass_deadlines().await;
    app.until_guarantees(&rma, &["waived", "due"]).await;
    assert_eq!(app.guarantees().await, ("open 0, met 0, due 1, waived 1".to_owned(), json!(2165)));
    // A unit that is due can be waived too.
    assert_eq!(app.post(&path, "acme", &json!({ "note": "Goodwill" })).await.0, StatusCode::OK);
    assert_eq!(app.overdue().await, 0);
    assert_eq!(app.guarantees().await, ("open 0, met 0, due 0, waived 2".to_owned(), json!(0)));
    let events = app.sent_messages().await;
    let expected = [
        "rma.created",
        "rma.exchange_placed",
        "rma.guarantee_waived",
        "rma.exchange_unreturned",
        "rma.guarantee_waived",
    ];
    assert_eq!(events, expected);
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    assert_eq!(timeline["entries"][2]["detail"]["note"], "The carrier lost it");
}

#[tokio::test]
async fn only_a_replaced_unit_can_be_waived() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let path = format!("/v1/returns/{rma}/waive");
    let (status, refusal) = app.post(&path, "acme", &json!({ "note": "n" })).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let message = refusal["message"].as_str().unwrap();
    assert!(message.contains("no exchange order was accepted"), "{refusal}");
}

#[tokio::test]
async fn the_note_of_a_waiver_is_erased_with_the_shopper() {
    let app = TestApp::start().await;
    let rma = app.exchanged_return("A", &[1]).await;
    let note = json!({ "note": "PLANTED" });
    let (status, _) = app.post(&format!("/v1/returns/{rma}/waive"), "acme", &note).await;
    assert_eq!(status, StatusCode::OK);
    let notes = "SELECT (SELECT count(*) FROM returns WHERE merchant = 'acme' AND document LIKE '%PLANTED%') \
                     + (SELECT count(*) FROM timeline WHERE merchant = 'acme' AND detail::text LIKE '%PLANTED%') AS n";
    assert_eq!(app.number(notes).await, 2);
    app.publish_event_at(erased(&["A"], true), Some(i64::MAX)).await;
    eventually("the notes are erased", SOON, || async {
        (app.number(notes).await == 0).then_some(())
    })
    .await;
    assert_eq!(app.show(&rma).await["units"][0]["guarantee"]["state"], "waived");
}

#[tokio::test]
async fn a_sum_that_is_too_large_stops_no_other() {
    let app = TestApp::start().await;
    let rma = app.exchanged_return("A", &[1]).await;
    let currency = app.show(&rma).await["currency"].as_str().unwrap().to_owned();
    app.change_rows(&format!(
        "INSERT INTO guarantee_changes (merchant, month, currency, state, units, amount_cents) \
         SELECT 'acme', date_trunc('month', now() AT TIME ZONE 'utc'), '{currency}', 'due', 1, {} \
         FROM generate_series(1, 3)",
        i64::MAX
    ))
    .await;
    eventually("all changes are added to the sums", SOON, || async {
        let left = "SELECT count(*) AS n FROM guarantee_changes WHERE merchant = 'acme'";
        (app.number(left).await == 0).then_some(())
    })
    .await;
    let expected = ("open 1, met 0, due 3, waived 0".to_owned(), json!(i64::MAX));
    assert_eq!(app.guarantees().await, expected);
}

#[tokio::test]
async fn a_report_is_about_the_months_of_one_merchant() {
    let app = TestApp::start().await;
    app.exchanged_return("A", &[1]).await;
    for (query, status) in [
        ("?from=2020-01&to=2020-12", StatusCode::OK),
        ("?from=2020-13", StatusCode::BAD_REQUEST),
        ("?from=2020-1", StatusCode::BAD_REQUEST),
        ("?from=2020-02&to=2020-01", StatusCode::BAD_REQUEST),
        ("?from=2000-01&to=2020-01", StatusCode::BAD_REQUEST),
    ] {
        let (found, report) = app.get(&format!("/v1/guarantees{query}"), "acme").await;
        assert_eq!(found, status, "{query}: {report}");
        assert!(found != StatusCode::OK || report["months"] == json!([]), "{report}");
    }
    let reader = app.issuer.token(None, "read");
    let (status, _) = app.send(Method::GET, "/v1/guarantees", &reader, &[], None).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let acme = [("x-service-id", "acme")];
    let (_, report) = app.send(Method::GET, "/v1/guarantees", &reader, &acme, None).await;
    assert_eq!(report["months"][0]["open"]["units"], 1);
}
