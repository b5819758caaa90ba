use expect_test::expect;
use serde_json::json;

use super::*;
use TrackingEvent::{Accepted, Delivered, Failure, InTransit, Label, NotDroppedOff};

/// The four rows of the table of transitions in the contract.
#[test]
fn a_mail_back_return_from_confirmation_to_refund() {
    for managed in [true, false] {
        let units = [("A/L1/1", Resolution::Refund)];
        let mut rma = rma_with("RMA-1", ReturnMethod::MailBack, &units, &settings(managed));
        let mut rows = Vec::new();
        let mut row = |rma: &Rma, event: &str| {
            let message = json!(rma.message());
            let item = &message["items"][0];
            let receiving = item.get("receiving_status");
            assert_eq!(receiving, managed.then_some(&json!("PENDING")));
            let number = &item["tracking_number"];
            let parcel = &item["package_tracking_status"];
            rows.push(format!("{event}: {} {number} {parcel}\n", message["status"]));
        };
        row(&rma, ServiceEvent::Created.as_str());
        let labeled = rma.track(&report(Label, Some("1Z")), minute(1));
        row(&rma, &summary(&labeled));
        let scanned = rma.track(&report(InTransit, Some("1Z")), minute(2));
        row(&rma, &summary(&scanned));
        let refunded = rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/1"]), minute(3));
        row(&rma, &summary(&refunded));
        expect![[r#"
            rma.created: "CREATED" null null
            rma.tracking_updated; changed A/L1/1: "CREATED" "1Z" "PRE_TRANSIT"
            rma.in_transit; changed A/L1/1: "CREATED" "1Z" "TRANSIT"
            rma.refunded; changed A/L1/1: "REFUNDED" "1Z" "TRANSIT"
        "#]]
        .assert_eq(&rows.concat());
    }
}

#[test]
fn carrier_reports_apply_once_and_in_order() {
    let mut rma = rma("RMA-1", &["A/L1/1", "A/L1/2"]);
    let second = CarrierReport { units: Some(vec![unit("A/L1/2")]), ..report(Label, Some("1Z-2")) };
    let unknown_unit =
        CarrierReport { units: Some(vec![unit("C/L1/1")]), ..report(Accepted, None) };
    let reports = [
        report(InTransit, None),
        report(Label, Some("1Z-1")),
        report(Label, Some("1Z-1")),
        second,
        report(NotDroppedOff, Some("1Z-2")),
        report(Label, Some("1Z-3")),
        report(Accepted, Some("1Z-3")),
        report(InTransit, Some("1Z-9")),
        report(Delivered, None),
        report(Failure, None),
        report(Label, Some("1Z-4")),
        unknown_unit,
    ];
    let mut log = String::new();
    for (report, minutes) in reports.iter().zip(1..) {
        let result = rma.track(report, minute(minutes));
        let units = rma.units.iter().map(|unit| {
            let status =
                unit.package_tracking_status.map_or("null".to_owned(), |it| it.to_string());
            format!("{} {status}", unit.tracking_number.as_deref().unwrap_or("-"))
        });
        let units: Vec<_> = units.collect();
        log += &format!("{}: {} [{}]\n", report.event, summary(&result), units.join(", "));
    }
    expect![[r#"
        in_transit: refused as no_tracking_number: the parcel has no tracking number [- null, - null]
        label: rma.tracking_updated; changed A/L1/1 A/L1/2 [1Z-1 PRE_TRANSIT, 1Z-1 PRE_TRANSIT]
        label: no message; late A/L1/1 A/L1/2 [1Z-1 PRE_TRANSIT, 1Z-1 PRE_TRANSIT]
        label: rma.tracking_updated; changed A/L1/2 [1Z-1 PRE_TRANSIT, 1Z-2 PRE_TRANSIT]
        not_dropped_off: rma.tracking_updated; changed A/L1/2 [1Z-1 PRE_TRANSIT, 1Z-2 NOT_DROPPED_OFF]
        label: rma.tracking_updated; changed A/L1/1 A/L1/2 [1Z-3 PRE_TRANSIT, 1Z-3 NOT_DROPPED_OFF]
        accepted: rma.dropped_off; changed A/L1/1 A/L1/2 [1Z-3 ACCEPTED, 1Z-3 ACCEPTED]
        in_transit: refused as unknown_parcel: no parcel of this return has that tracking number [1Z-3 ACCEPTED, 1Z-3 ACCEPTED]
        delivered: rma.tracking_updated; changed A/L1/1 A/L1/2 [1Z-3 DELIVERED, 1Z-3 DELIVERED]
        failure: no message; late A/L1/1 A/L1/2 [1Z-3 DELIVERED, 1Z-3 DELIVERED]
        label: refused as unknown_parcel: no parcel of this return has that tracking number [1Z-3 DELIVERED, 1Z-3 DELIVERED]
        accepted: refused as unknown_unit: the return has no such unit [1Z-3 DELIVERED, 1Z-3 DELIVERED]
    "#]].assert_eq(&log);
}

#[test]
fn an_older_label_changes_nothing() {
    let mut rma = rma("RMA-1", &["A/L1/1"]);
    let label = |number, minutes: Option<i64>| CarrierReport {
        occurred_at: minutes.map(minute),
        ..report(Label, Some(number))
    };
    let mut track = |report: &CarrierReport| {
        let summary = summary(&rma.track(report, minute(20)));
        format!("{summary} [{}]", rma.units[0].tracking_number.as_deref().unwrap_or("-"))
    };
    let late = "no message; late A/L1/1 [1Z-2]";
    assert_eq!(track(&label("1Z-2", Some(5))), "rma.tracking_updated; changed A/L1/1 [1Z-2]");
    assert_eq!(track(&label("1Z-1", Some(0))), late);
    // A label without a time counts as newer, and the known time of the last label stays.
    assert_eq!(track(&label("1Z-3", None)), "rma.tracking_updated; changed A/L1/1 [1Z-3]");
    assert_eq!(track(&label("1Z-2", Some(5))), "rma.tracking_updated; changed A/L1/1 [1Z-2]");
    assert_eq!(track(&label("1Z-1", Some(4))), late);
    assert_eq!(track(&report(InTransit, Some("1Z-2"))), "rma.in_transit; changed A/L1/1 [1Z-2]");
}

#[test]
fn after_a_failure_before_any_scan_the_return_can_be_canceled() {
    let mut failed = rma("RMA-1", &["A/L1/1"]);
    failed.track(&report(Label, Some("1Z-1")), minute(1)).unwrap();
    failed.track(&report(Failure, Some("1Z-1")), minute(2)).unwrap();
    let mut canceled = failed.clone();
    assert_eq!(summary(&canceled.cancel(None, minute(3))), "rma.canceled; changed A/L1/1");
    let relabeled = failed.track(&report(Label, Some("1Z-2")), minute(3));
    assert_eq!(summary(&relabeled), "rma.tracking_updated; changed A/L1/1");
    // A scan keeps the failure status, but the merchant learns of the first.
    let scan = report(InTransit, Some("1Z-2"));
    assert_eq!(summary(&failed.track(&scan, minute(4))), "rma.in_transit; changed A/L1/1");
    assert_eq!(summary(&failed.track(&scan, minute(5))), "no message; late A/L1/1");
    assert_eq!(failed.units[0].package_tracking_status, Some(TrackingStatus::Failure));
    assert_eq!(failed.cancel(None, minute(6)), Err(TransitionError::Scanned));
    let other = failed.track(&report(Label, Some("1Z-3")), minute(6));
    assert_eq!(other, Err(TransitionError::UnknownParcel));
}

#[test]
fn the_first_scan_after_a_failure_sends_a_message() {
    let scans = [(Accepted, "rma.dropped_off"), (InTransit, "rma.in_transit")];
    for (scan, message) in scans {
        let mut rma = rma("RMA-1", &["A/L1/1"]);
        let failed = rma.track(&report(Failure, Some("1Z")), minute(1));
        assert_eq!(summary(&failed), "rma.tracking_updated; changed A/L1/1");
        let scanned = rma.track(&report(scan, Some("1Z")), minute(2));
        assert_eq!(summary(&scanned), format!("{message}; changed A/L1/1"));
        assert_eq!(rma.updated_at, minute(2));
        // Only the first scan is news: the status stays FAILURE.
        let again = rma.track(&report(InTransit, Some("1Z")), minute(3));
        assert_eq!(summary(&again), "no message; late A/L1/1");
    }
}

#[test]
fn a_stored_failure_without_the_scan_field_counts_as_scanned() {
    let mut rma = rma("RMA-1", &["A/L1/1"]);
    rma.track(&report(Failure, Some("1Z")), minute(1)).unwrap();
    let mut old = json!(rma);
    old["units"][0].as_object_mut().unwrap().remove("failed_before_scan").unwrap();
    let mut old: Rma = serde_json::from_value(old).unwrap();
    assert_eq!(old.cancel(None, minute(2)), Err(TransitionError::Scanned));
}

#[test]
fn a_drop_off_needs_no_label_and_a_kept_unit_has_no_parcel() {
    let refund = [("A/L1/1", Resolution::Refund)];
    let mut express = rma_with("RMA-1", ReturnMethod::ExpressReturns, &refund, &settings(false));
    assert_eq!(
        summary(&express.track(&report(Accepted, None), minute(1))),
        "rma.dropped_off; changed A/L1/1"
    );
    let unnumbered = express.track(&report(Label, None), minute(2));
    assert_eq!(unnumbered, Err(TransitionError::NoTrackingNumber));
    // A tracking number that comes after the drop-off is sent and identifies the parcel from then on.
    for late in [Label, Accepted] {
        let mut express = express.clone();
        let numbered = express.track(&report(late, Some("1Z")), minute(3));
        assert_eq!(summary(&numbered), "rma.tracking_updated; changed A/L1/1");
        let item = &express.message().items[0];
        assert_eq!(item.tracking_number.as_deref(), Some("1Z"));
        assert_eq!(item.package_tracking_status, Some(TrackingStatus::Accepted));
        let again = express.track(&report(late, Some("1Z")), minute(4));
        assert_eq!(summary(&again), "no message; late A/L1/1");
        let other = express.track(&report(late, Some("1Z-2")), minute(5));
        assert_eq!(other, Err(TransitionError::UnknownParcel));
    }
    let mut kept = rma_with("RMA-2", ReturnMethod::CustomerKeep, &refund, &settings(false));
    for event in TrackingEvent::ALL.iter().copied() {
        assert_eq!(
            kept.track(&report(event, Some("1Z")), minute(1)),
            Err(TransitionError::CustomerKeeps)
        );
    }
    assert_eq!(kept.units[0].tracking_number, None);
}

#[test]
fn a_return_can_be_canceled_until_a_unit_comes_back() {
    let all = ["A/L1/1", "A/L1/2", "A/L2/1"];
    let check = |event: &dyn Fn(&mut Rma), cancel: Option<&[UnitId]>| {
        let mut rma = rma("RMA-1", &all);
        event(&mut rma);
        let result = rma.cancel(cancel, minute(9));
        let left: Vec<_> = rma.active_units().map(|unit| unit.id.clone()).collect();
        format!("{}: {} [{}]\n", summary(&result), rma.status, paths(&left))
    };
    let one = [unit("A/L1/1")];
    let label = |rma: &mut Rma| drop(rma.track(&report(Label, Some("1Z")), minute(1)).unwrap());
    let scan = |rma: &mut Rma| drop(rma.track(&report(Accepted, Some("1Z")), minute(1)).unwrap());
    let arrive = |rma: &mut Rma| {
        let findings = vec![Finding::Received { unit: unit("A/L1/2") }];
        rma.receive(&Receipt { findings }, minute(1)).unwrap();
    };
    let cancel_one = |rma: &mut Rma| drop(rma.cancel(Some(&one), minute(1)).unwrap());
    let refund_one = |rma: &mut Rma| {
        drop(rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/1"]), minute(1)).unwrap())
    };
    let refund_others = |rma: &mut Rma| {
        rma.refund(&refunded_units("R1", "RMA-1", &["A/L1/2", "A/L2/1"]), minute(1)).unwrap();
    };
    let log = [
        check(&|_| (), None),
        check(&label, None),
        check(&label, Some(&one)),
        check(&cancel_one, Some(&one)),
        check(&cancel_one, None),
        check(&refund_one, Some(&one)),
        check(&refund_others, Some(&one)),
        check(&scan, None),
        check(&arrive, Some(&one)),
        check(&|_| (), Some(&[unit("B/L1/1")])),
        check(&|rma| drop(rma.cancel(None, minute(1)).unwrap()), None),
    ];
    expect![[r#"
        rma.canceled; changed A/L1/1 A/L1/2 A/L2/1: CANCELED [A/L1/1 A/L1/2 A/L2/1]
        rma.canceled; changed A/L1/1 A/L1/2 A/L2/1: CANCELED [A/L1/1 A/L1/2 A/L2/1]
        rma.canceled; changed A/L1/1: CREATED [A/L1/2 A/L2/1]
        no message; late A/L1/1: CREATED [A/L1/2 A/L2/1]
        rma.canceled; changed A/L1/2 A/L2/1: CANCELED [A/L1/2 A/L2/1]
        refused as refunded: already refunded: CREATED [A/L1/1 A/L1/2 A/L2/1]
        rma.refunded; changed A/L1/1: REFUNDED [A/L1/2 A/L2/1]
        refused as scanned: the carrier already has the parcel: CREATED [A/L1/1 A/L1/2 A/L2/1]
        refused as received: the warehouse already received some of its units: CREATED [A/L1/1 A/L1/2 A/L2/1]
        refused as unknown_unit: the return has no such unit: CREATED [A/L1/1 A/L1/2 A/L2/1]
        no message; late A/L1/1 A/L1/2 A/L2/1: CANCELED [A/L1/1 A/L1/2 A/L2/1]
    "#]].assert_eq(&log.concat());
}

#[test]
fn an_exchange_is_placed_or_becomes_a_refund() {
    let units = [
        ("A/L1/1", variant(1000)),
        ("A/L1/2", Resolution::GiftCard),
        ("A/L1/3", Resolution::Refund),
    ];
    let mut rma = rma_with("RMA-1", ReturnMethod::MailBack, &units, &settings(false));
    let first = [unit("A/L1/1")];
    let second = [unit("A/L1/2")];
    let third = [unit("A/L1/3")];
    let mut steps = vec![
        summary(&rma.cancel(Some(&first), minute(1))),
        summary(&rma.cancel(Some(&third), minute(2))),
        summary(&rma.exchange_undeliverable(&first)),
        summary(&rma.exchange_undeliverable(&first)),
        summary(&rma.exchange_placed(&placed_units(&first), "X-1", minute(5))),
        summary(&rma.exchange_placed(&placed_units(&first), "X-1", minute(6))),
        summary(&rma.exchange_failed(&first, minute(7))),
        summary(&rma.exchange_failed(&second, minute(8))),
        summary(&rma.exchange_failed(&second, minute(9))),
        summary(&rma.exchange_placed(&placed_units(&third), "X-1", minute(10))),
        summary(&rma.exchange_placed(&placed_units(&[unit("B/L1/1")]), "X-1", minute(11))),
    ];
    steps.extend(rma.message().items.iter().map(|item| {
        let financials = item.refund_financials;
        format!(
            "{} exchange {} {:?} service {} shopper {}",
            item.refund_type,
            item.is_exchange,
            item.exchange_order_identifier,
            financials.service_refund_amount_cents,
            financials.shopper_refund_amount_cents
        )
    }));
    expect![[r#"
        refused as exchange_in_progress: an exchange order for the unit was already placed or is in progress
        rma.canceled; changed A/L1/3
        no message; changed A/L1/1
        no message; late A/L1/1
        rma.exchange_placed; changed A/L1/1
        no message; late A/L1/1
        no message; late A/L1/1
        rma.exchange_failed; changed A/L1/2
        no message; late A/L1/2
        refused as not_exchanged: the unit is not exchanged
        refused as unknown_unit: the return has no such unit
        EVEN_EXCHANGE exchange true Some("X-1") service 980 shopper 0
        REFUND exchange false None service 0 shopper 980
    "#]]
    .assert_eq(&(steps.join("\n") + "\n"));
}

#[test]
fn the_refund_type_follows_the_price_at_the_time_of_the_exchange_order() {
    let units = [("A/L1/1", variant(1000)), ("A/L1/2", variant(1200))];
    let mut rma = rma_with("RMA-1", ReturnMethod::MailBack, &units, &settings(false));
    let types = |rma: &Rma| rma.units.iter().map(|unit| unit.refund_type).collect::<Vec<_>>();
    assert_eq!(types(&rma), [RefundType::EvenExchange, RefundType::UnevenExchange]);
    let placed = BTreeMap::from([
        (unit("A/L1/1"), RefundType::UnevenExchange),
        (unit("A/L1/2"), RefundType::EvenExchange),
    ]);
    let change = rma.exchange_placed(&placed, "X-1", minute(1)).unwrap();
    assert_eq!(change.event, Some(ServiceEvent::ExchangePlaced));
    assert_eq!(types(&rma), [RefundType::UnevenExchange, RefundType::EvenExchange]);
    assert_eq!(rma.message().items[0].refund_type, RefundType::UnevenExchange);
}

#[test]
fn a_bonus_is_for_another_price_and_at_most_the_price() {
    let bonus = |resolution: &Resolution, is_gift| {
        let units = [("A/L1/1", resolution.clone())];
        let mut rma = rma_with("RMA-1", ReturnMethod::MailBack, &units, &settings(false));
        rma.units.remove(0).with_bonus(Some(50), is_gift).bonus_amount_cents
    };
    // The unit of 1000 was paid with 980.
    let cases = [
        (Resolution::Refund, None),
        (Resolution::GiftCard, Some(490)),
        (variant(1000), None),
        (variant(1200), Some(490)),
        (variant(100), Some(100)),
    ];
    for (resolution, expected) in cases {
        assert_eq!(bonus(&resolution, false), expected, "{resolution:?}");
    }
    let mut unpriced = variant(0);
    if let Resolution::Exchange { variant } = &mut unpriced {
        variant.unit_price_amount_cents = None;
    }
    // The merchant's price decides about the bonus of a giftee.
    assert_eq!((bonus(&unpriced, false), bonus(&unpriced, true)), (None, Some(490)));
}

#[test]
fn an_exchange_that_became_even_or_failed_has_no_bonus() {
    let units = [("A/L1/1", variant(1200)), ("A/L1/2", variant(1200)), ("A/L1/3", variant(1200))];
    let mut rma = rma_with("RMA-1", ReturnMethod::MailBack, &units, &settings(false));
    for unit in &mut rma.units {
        *unit = unit.clone().with_bonus(Some(50), false);
    }
    let placed = BTreeMap::from([
        (unit("A/L1/1"), RefundType::UnevenExchange),
        (unit("A/L1/2"), RefundType::EvenExchange),
    ]);
    rma.exchange_placed(&placed, "X-1", minute(1)).unwrap();
    rma.exchange_failed(&[unit("A/L1/3")], minute(1)).unwrap();
    let bonuses: Vec<_> = rma.units.iter().map(|unit| unit.bonus_amount_cents).collect();
    assert_eq!(bonuses, [Some(490), None, None]);
}
