//! The label of a unit's parcel.

use super::*;

fn label(number: &str, minutes: i64, url: Option<&str>) -> CarrierReport {
    CarrierReport {
        occurred_at: Some(minute(minutes)),
        label: url.map(printable),
        ..report(TrackingEvent::Label, Some(number))
    }
}

#[test]
fn a_unit_has_its_newest_label() {
    let mut rma = rma("RMA-1", &["A/L1/1"]);
    let mut track = |report: &CarrierReport| {
        let summary = summary(&rma.track(report, minute(20)));
        let label = rma.units[0].label.as_ref().map_or("-", |label| label.url.as_str());
        format!("{summary} [{label}]")
    };
    let (first, second) = (Some("https://l.example/1"), Some("https://l.example/2"));
    let log = [
        track(&label("1Z-1", 1, first)),
        // The carrier prints the label again, under the same number.
        track(&label("1Z-1", 2, second)),
        track(&label("1Z-1", 2, second)),
        track(&label("1Z-1", 0, first)),
        track(&label("1Z-1", 3, None)),
        // The label of the first number does not apply to the second.
        track(&label("1Z-2", 4, None)),
        track(&label("1Z-2", 5, first)),
        track(&report(TrackingEvent::InTransit, Some("1Z-2"))),
        track(&label("1Z-2", 6, second)),
    ];
    let expected = [
        "rma.tracking_updated; changed A/L1/1 [https://l.example/1]",
        "no message; changed A/L1/1 [https://l.example/2]",
        "no message; late A/L1/1 [https://l.example/2]",
        "no message; late A/L1/1 [https://l.example/2]",
        "no message; late A/L1/1 [https://l.example/2]",
        "rma.tracking_updated; changed A/L1/1 [-]",
        "no message; changed A/L1/1 [https://l.example/1]",
        "rma.in_transit; changed A/L1/1 [https://l.example/1]",
        "no message; late A/L1/1 [https://l.example/1]",
    ];
    assert_eq!(log, expected);
}

#[test]
fn only_an_express_drop_off_needs_no_printer() {
    let kinds = [ReturnMethod::MailBack, ReturnMethod::ExpressReturns].map(LabelKind::usual_for);
    assert_eq!(kinds, [LabelKind::Printable, LabelKind::QrCode]);
}

#[test]
fn a_label_has_a_web_address() {
    for url in ["https://carrier.example/label.pdf?id=1", "http://localhost:9/qr"] {
        assert_eq!(Label::parse_url(url).as_deref(), Ok(url));
    }
    for url in
        ["javascript:alert(1)", "data:text/html,x", "ftp://carrier.example/1", "label.pdf", ""]
    {
        assert!(Label::parse_url(url).is_err(), "{url}");
    }
}
