//! The labels of parcels that are not at the warehouse yet, or the reasons why there are none.

use domain::labels::{LabelState, RefusalReason};
use domain::returns::LabelKind;

use super::model::{LabelRequest, Return, Unit};

/// The labels of a return, as its page shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Labels {
    /// Labels at their carrier.
    pub(super) links: Vec<ParcelLabel>,
    pub(super) files: Vec<LabelFile>,
    pub(super) codes: Vec<LabelCode>,
    /// The ids of the reasons why parcels have no label.
    pub(super) refusals: Vec<&'static str>,
    /// The id of the text about a label that is not there yet.
    pub(super) waiting: Option<&'static str>,
    /// The id of the text about labels that have expired.
    pub(super) expired: Option<&'static str>,
    /// Whether the shopper can request them again.
    pub(super) is_renewable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParcelLabel {
    pub(super) url: String,
    /// Whether the carrier scans a code on the shopper's screen.
    pub(super) is_code: bool,
    pub(super) tracking_number: String,
}

/// A label to save and to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LabelFile {
    pub(super) id: String,
    /// For example `PDF`.
    pub(super) format: String,
    pub(super) tracking_number: String,
    pub(super) contents: Contents,
}

/// A code that the carrier scans on the shopper's screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LabelCode {
    pub(super) text: String,
    pub(super) tracking_number: String,
    pub(super) contents: Contents,
}

/// The titles in a parcel, each with its number of units. Empty for the only parcel of a return.
pub(super) type Contents = Vec<(usize, String)>;

impl Labels {
    /// The labels of a return, which the shopper may still have to send back.
    pub(super) fn of(rma: &Return, needs_drop_off: bool) -> Self {
        let mut labels = Self { links: links(rma), ..Self::default() };
        if !needs_drop_off {
            return labels;
        }
        for request in &rma.labels {
            let tracking_number = request.tracking_number.clone().unwrap_or_default();
            let contents = contents(rma, request);
            if let Some(text) = request.qr_code.clone() {
                let (tracking_number, contents) = (tracking_number.clone(), contents.clone());
                labels.codes.push(LabelCode { text, tracking_number, contents });
            }
            if let Some(format) = request.document {
                let (id, format) = (request.label_request_id.clone(), format.as_str());
                let format = format.to_uppercase();
                labels.files.push(LabelFile { id, format, tracking_number, contents });
            }
        }
        labels.refusals = refusals(&rma.labels);
        let mut expired = rma.labels.iter().filter(|it| it.state == LabelState::Expired).peekable();
        labels.expired = expired.peek().map(|_| "return-label-expired");
        labels.is_renewable = expired.any(|it| it.is_renewable);
        labels.waiting = labels.waiting_for(rma);
        labels
    }

    /// The id of the text about a label that is not there yet.
    fn waiting_for(&self, rma: &Return) -> Option<&'static str> {
        if rma.labels.iter().any(|request| request.state.is_open()) {
            return Some("return-label-made");
        }
        let has_label = !self.links.is_empty() || !self.files.is_empty() || !self.codes.is_empty();
        let has_ended = !self.refusals.is_empty() || self.expired.is_some();
        // A drop-off without a box can do without a label.
        let can_wait = !has_label && !has_ended && rma.return_method == "mail-back";
        can_wait.then_some("return-label-waits")
    }
}

/// The contents of a parcel, if the return has several.
fn contents(rma: &Return, request: &LabelRequest) -> Contents {
    let mut contents: Contents = Vec::new();
    let titles = request.units.iter().filter_map(|id| {
        let is_own = |unit: &&Unit| {
            unit.order_identifier == id.order_identifier
                && unit.order_line_item_identifier == id.order_line_item_identifier
        };
        rma.active_units().find(is_own).map(|unit| &unit.title)
    });
    for title in titles.filter(|_| rma.labels.len() > 1) {
        match contents.iter_mut().find(|(_, known)| known == title) {
            Some((count, _)) => *count += 1,
            None => contents.push((1, title.clone())),
        }
    }
    contents
}

fn links(rma: &Return) -> Vec<ParcelLabel> {
    let mut labels: Vec<ParcelLabel> = Vec::new();
    let waiting = rma.active_units().filter(|unit| rma.is_open() && unit.progress() < 3);
    for unit in waiting {
        let Some(label) = &unit.label else { continue };
        if labels.iter().all(|known| known.url != label.url) {
            labels.push(ParcelLabel {
                url: label.url.clone(),
                is_code: label.kind == LabelKind::QrCode,
                tracking_number: unit.tracking_number.clone().unwrap_or_default(),
            });
        }
    }
    labels
}

fn refusals(requests: &[LabelRequest]) -> Vec<&'static str> {
    let mut ids = Vec::new();
    for request in requests.iter().filter(|it| it.state == LabelState::Refused) {
        let id = refusal_text(request.refusal.unwrap_or(RefusalReason::Other));
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

fn refusal_text(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::InvalidAddress => "return-no-label-address",
        RefusalReason::NotServed => "return-no-label-not-served",
        RefusalReason::TooHeavy => "return-no-label-too-heavy",
        RefusalReason::TooLarge => "return-no-label-too-large",
        RefusalReason::Prohibited => "return-no-label-prohibited",
        RefusalReason::Other => "return-no-label-other",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::model::tests::rma;
    use super::*;

    #[test]
    fn a_parcel_has_one_label_until_it_arrives() {
        let label = json!({ "url": "https://carrier.example/1", "kind": "printable" });
        let unit = json!({ "label": label, "tracking_number": "1Z" });
        let code = json!({ "label": { "url": "https://carrier.example/2", "kind": "qr_code" } });
        let mut return_ = rma(&[unit.clone(), unit.clone(), code, json!({})]);
        let found: Vec<_> = links(&return_).into_iter().map(|it| (it.url, it.is_code)).collect();
        let expected = [("https://carrier.example/1", false), ("https://carrier.example/2", true)];
        assert_eq!(found, expected.map(|(url, is_code)| (url.to_owned(), is_code)));
        return_.status = domain::returns::RmaStatus::Canceled;
        assert!(links(&return_).is_empty());
        let mut arrived = unit;
        arrived["package_tracking_status"] = json!("DELIVERED");
        assert!(links(&rma(&[arrived])).is_empty());
    }

    #[test]
    fn a_return_says_what_it_waits_for() {
        let of = |requests: Value, method: &str| {
            let mut waiting = rma(&[json!({})]);
            method.clone_into(&mut waiting.return_method);
            waiting.labels = serde_json::from_value(requests).unwrap();
            let Labels { refusals, waiting, .. } = Labels::of(&waiting, true);
            (refusals, waiting)
        };
        assert_eq!(of(json!([]), "mail-back"), (vec![], Some("return-label-waits")));
        assert_eq!(of(json!([]), "express-returns"), (vec![], None));
        let open = |state: &str| json!([{ "parcel": 1, "state": state }]);
        for method in ["mail-back", "express-returns"] {
            assert_eq!(of(open("requested"), method), (vec![], Some("return-label-made")));
            assert_eq!(of(open("accepted"), method), (vec![], Some("return-label-made")));
        }
        assert_eq!(of(open("canceled"), "mail-back"), (vec![], Some("return-label-waits")));
        let refused = json!([
            { "parcel": 1, "state": "refused", "refusal": "too_heavy" },
            { "parcel": 2, "state": "refused", "refusal": "too_heavy" },
            { "parcel": 3, "state": "requested" },
        ]);
        let too_heavy = vec!["return-no-label-too-heavy"];
        assert_eq!(of(refused.clone(), "mail-back"), (too_heavy, Some("return-label-made")));
        let mut on_its_way = rma(&[json!({})]);
        on_its_way.labels = serde_json::from_value(refused).unwrap();
        assert_eq!(Labels::of(&on_its_way, false), Labels::default());
    }

    #[test]
    fn an_expired_label_can_be_requested_again() {
        let of = |requests: Value| {
            let mut waiting = rma(&[json!({})]);
            waiting.labels = serde_json::from_value(requests).unwrap();
            let Labels { waiting, expired, is_renewable, .. } = Labels::of(&waiting, true);
            (waiting, expired.is_some(), is_renewable)
        };
        let expired =
            |is_renewable: bool| json!({ "state": "expired", "is_renewable": is_renewable });
        assert_eq!(of(json!([expired(false)])), (None, true, false));
        assert_eq!(of(json!([expired(false), expired(true)])), (None, true, true));
        let requested = json!([expired(true), { "state": "requested" }]);
        assert_eq!(of(requested), (Some("return-label-made"), true, true));
    }

    #[test]
    fn a_label_is_a_file_or_a_code() {
        let mut sent = rma(&[json!({ "tracking_number": "1Z" })]);
        sent.labels = serde_json::from_value(json!([
            { "label_request_id": "a", "state": "bought", "tracking_number": "1Z", "document": "pdf",
              "units": [
                { "order_identifier": "A-1", "order_line_item_identifier": "10", "unit": 1 },
                { "order_identifier": "A-1", "order_line_item_identifier": "10", "unit": 2 },
              ] },
            { "label_request_id": "b", "state": "bought", "tracking_number": "2Z", "qr_code": "Q" },
        ]))
        .unwrap();
        let labels = Labels::of(&sent, true);
        assert_eq!((labels.waiting, labels.links.len()), (None, 0));
        let file = LabelFile {
            id: "a".to_owned(),
            format: "PDF".to_owned(),
            tracking_number: "1Z".to_owned(),
            contents: vec![(2, "Tee, L".to_owned())],
        };
        let code = LabelCode {
            text: "Q".to_owned(),
            tracking_number: "2Z".to_owned(),
            contents: Vec::new(),
        };
        assert_eq!((labels.files, labels.codes), (vec![file], vec![code]));
        // The carrier has the parcel.
        assert_eq!(Labels::of(&sent, false), Labels::default());
    }
}
