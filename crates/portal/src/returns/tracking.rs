//! The steps of a return from the request to the refund.

use chrono::{DateTime, Utc};
use domain::returns::{ExchangeStatus, RmaStatus, TrackingStatus};

use super::model::{Return, Unit};
use super::timeline::{Entry, EntryStep};
use crate::draft::Resolution;

/// A step as the page shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// The id of its name.
    pub(super) name: &'static str,
    pub(super) state: State,
    pub(super) at: Option<DateTime<Utc>>,
    pub(super) is_current: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Done,
    /// Done for some units.
    Partly,
    Open,
}

impl Step {
    fn new(name: &'static str, state: State, at: Option<DateTime<Utc>>) -> Self {
        Self { name, state, at, is_current: false }
    }

    /// Whether some units have come to this step.
    pub(super) fn is_reached(&self) -> bool {
        self.state != State::Open
    }
}

/// The steps of a return. The current one is the last before the first that is still open.
pub(super) fn steps(rma: &Return, timeline: &[Entry]) -> Vec<Step> {
    let requested = first(timeline, &[EntryStep::Requested]).or(Some(rma.created_at));
    let mut steps = vec![Step::new("track-requested", State::Done, requested)];
    let ended = match rma.status {
        RmaStatus::Declined => Some(("track-declined", EntryStep::Declined)),
        RmaStatus::Canceled if rma.is_expired() => Some(("track-expired", EntryStep::Expired)),
        RmaStatus::Canceled => Some(("track-canceled", EntryStep::Canceled)),
        _ => None,
    };
    if rma.review.is_some() && ended.is_none() {
        let state = if rma.is_in_review() { State::Open } else { State::Done };
        steps.push(Step::new("track-approved", state, last(timeline, EntryStep::Approved)));
    }
    if let Some((name, entry)) = ended {
        steps.push(Step::new(name, State::Done, last(timeline, entry)));
    } else {
        if !rma.is_kept() {
            steps.extend(parcel_steps(rma, timeline));
        }
        steps.extend(resolution_steps(rma, timeline));
    }
    let reached = steps.iter().take_while(|step| step.is_reached()).count();
    for (index, step) in steps.iter_mut().enumerate() {
        step.is_current = index + 1 == reached;
    }
    steps
}

fn first(timeline: &[Entry], steps: &[EntryStep]) -> Option<DateTime<Utc>> {
    timeline.iter().filter(|entry| steps.contains(&entry.step)).map(|entry| entry.at).min()
}

fn last(timeline: &[Entry], step: EntryStep) -> Option<DateTime<Utc>> {
    timeline.iter().filter(|entry| entry.step == step).map(|entry| entry.at).max()
}

/// The steps of the parcel. A step that the carrier did not report is done when a later one is.
fn parcel_steps(rma: &Return, timeline: &[Entry]) -> Vec<Step> {
    let all: [(u8, &'static str, &[EntryStep]); 3] = [
        (1, "track-dropped-off", &[EntryStep::DroppedOff]),
        (2, "track-on-its-way", &[EntryStep::InTransit]),
        (3, "track-arrived", &[EntryStep::Arrived, EntryStep::Received]),
    ];
    let reported = all.iter().filter(|(_, _, steps)| first(timeline, steps).is_some());
    let reported = reported.map(|(progress, ..)| *progress).max().unwrap_or_default();
    let units = rma.active_units().count();
    let step = |(progress, name, entries): (u8, &'static str, &[EntryStep])| {
        let there = rma.active_units().filter(|unit| unit.progress() >= progress).count();
        let state = if there == 0 && reported < progress {
            State::Open
        } else if there > 0 && there < units {
            State::Partly
        } else {
            State::Done
        };
        Step::new(name, state, first(timeline, entries).filter(|_| state != State::Open))
    };
    all.into_iter().map(step).collect()
}

/// The refund and the replacements that the shopper gets.
fn resolution_steps(rma: &Return, timeline: &[Entry]) -> Vec<Step> {
    let is_placed = |unit: &Unit| unit.exchange_status == Some(ExchangeStatus::Placed);
    let is_refunded = |unit: &Unit| unit.is_refunded;
    let refund = (Resolution::Refund, "track-refunded", EntryStep::Refunded);
    let exchange = (Resolution::Exchange, "track-exchange-placed", EntryStep::ExchangePlaced);
    let card = (Resolution::GiftCard, "track-gift-card-issued", EntryStep::GiftCardIssued);
    let step = |(resolution, name, entry)| {
        let units: Vec<_> =
            rma.active_units().filter(|unit| unit.resolution() == resolution).collect();
        let is_done = |unit: &&&Unit| match resolution {
            Resolution::Refund => is_refunded(unit),
            Resolution::Exchange | Resolution::GiftCard => is_placed(unit),
        };
        let state = match units.iter().filter(is_done).count() {
            _ if units.is_empty() => return None,
            0 => State::Open,
            done if done < units.len() => State::Partly,
            _ => State::Done,
        };
        let at = last(timeline, entry).filter(|_| state != State::Open);
        Some(Step::new(name, state, at))
    };
    [exchange, card, refund].into_iter().filter_map(step).collect()
}

/// The ids of sentences about parcels that need the shopper's attention.
pub(super) fn problems(rma: &Return) -> Vec<&'static str> {
    let has = |status| {
        rma.is_open() && rma.active_units().any(|unit| unit.package_tracking_status == Some(status))
    };
    [
        (TrackingStatus::NotDroppedOff, "track-problem-not-dropped-off"),
        (TrackingStatus::Failure, "track-problem-failure"),
        (TrackingStatus::Returned, "track-problem-returned"),
    ]
    .into_iter()
    .filter_map(|(status, text)| has(status).then_some(text))
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::model::tests::rma;
    use super::*;

    fn timeline(steps: &[(&str, &str)]) -> Vec<Entry> {
        let entry = |(step, at): &(&str, &str)| json!({ "step": step, "at": at });
        serde_json::from_value(Value::Array(steps.iter().map(entry).collect())).unwrap()
    }

    /// The names with the states, the current one with `*`, and the hours.
    fn shown(rma: &Return, entries: &[(&str, &str)]) -> Vec<String> {
        let text = |step: Step| {
            let state = match step.state {
                State::Done => "done",
                State::Partly => "partly",
                State::Open => "open",
            };
            let at = step.at.map_or_else(String::new, |at| at.format(" %H").to_string());
            let mark = if step.is_current { "*" } else { "" };
            format!("{} {state}{at}{mark}", step.name.trim_start_matches("track-"))
        };
        steps(rma, &timeline(entries)).into_iter().map(text).collect()
    }

    const REQUESTED: (&str, &str) = ("requested", "2026-11-16T09:30:00Z");
    const LABEL: (&str, &str) = ("label_ready", "2026-11-16T10:00:00Z");
    const IN_TRANSIT: (&str, &str) = ("in_transit", "2026-11-17T11:00:00Z");
    const ARRIVED: (&str, &str) = ("arrived", "2026-11-18T12:00:00Z");
    const REFUNDED: (&str, &str) = ("refunded", "2026-11-19T13:00:00Z");

    #[test]
    fn a_new_return_waits_for_the_drop_off() {
        let expected = [
            "requested done 09*",
            "dropped-off open",
            "on-its-way open",
            "arrived open",
            "refunded open",
        ];
        assert_eq!(shown(&rma(&[json!({})]), &[REQUESTED, LABEL]), expected);
        assert_eq!(shown(&rma(&[json!({})]), &[]), expected);
    }

    #[test]
    fn a_later_step_completes_the_earlier_ones() {
        let moving = rma(&[json!({ "package_tracking_status": "TRANSIT" })]);
        let expected = [
            "requested done 09",
            "dropped-off done",
            "on-its-way done 11*",
            "arrived open",
            "refunded open",
        ];
        assert_eq!(shown(&moving, &[REQUESTED, IN_TRANSIT]), expected);
        let refunded =
            rma(&[json!({ "package_tracking_status": "DELIVERED", "is_refunded": true })]);
        let all = shown(&refunded, &[REQUESTED, IN_TRANSIT, ARRIVED, REFUNDED]);
        assert_eq!(all.last().unwrap(), "refunded done 13*");
        // The warehouse can receive a unit that the carrier never reported.
        let received =
            shown(&rma(&[json!({})]), &[REQUESTED, ("received", "2026-11-18T14:00:00Z")]);
        assert_eq!(received[3], "arrived done 14*");
    }

    #[test]
    fn some_parcels_and_some_refunds_are_partial_steps() {
        let units = [
            json!({ "package_tracking_status": "DELIVERED", "is_refunded": true }),
            json!({ "package_tracking_status": "ACCEPTED" }),
            json!({ "canceled_at": "2026-11-16T10:00:00Z" }),
        ];
        let all = shown(&rma(&units), &[REQUESTED, IN_TRANSIT, ARRIVED, REFUNDED]);
        let expected = [
            "requested done 09",
            "dropped-off done",
            "on-its-way partly 11",
            "arrived partly 12",
            "refunded partly 13*",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn replacements_are_steps_of_their_own() {
        let units = [
            json!({ "resolution": "exchange", "exchange_status": "placed" }),
            json!({ "resolution": "gift_card", "exchange_status": "pending" }),
            json!({ "resolution": "exchange", "exchange_status": "failed" }),
        ];
        let all = shown(&rma(&units), &[REQUESTED, ("exchange_placed", "2026-11-16T15:00:00Z")]);
        let replaced = ["exchange-placed done 15", "gift-card-issued open", "refunded open"];
        assert_eq!(all[4..], replaced);
        assert_eq!(all[0], "requested done 09*");
    }

    #[test]
    fn kept_and_canceled_returns_have_no_parcel() {
        let mut kept = rma(&[json!({})]);
        "customer-keep".clone_into(&mut kept.return_method);
        assert_eq!(shown(&kept, &[REQUESTED]), ["requested done 09*", "refunded open"]);
        kept.status = RmaStatus::Canceled;
        let canceled = shown(&kept, &[REQUESTED, ("canceled", "2026-11-16T16:00:00Z")]);
        assert_eq!(canceled, ["requested done 09", "canceled done 16*"]);
    }

    #[test]
    fn a_review_is_a_step_before_the_parcel() {
        use super::super::model::tests::reviewed;
        let waiting = shown(&reviewed("REQUESTED", &json!({})), &[REQUESTED]);
        assert_eq!(waiting[..3], ["requested done 09*", "approved open", "dropped-off open"]);
        let approved = reviewed("CREATED", &json!({ "decision": "approve" }));
        let entries = [REQUESTED, ("approved", "2026-11-16T15:00:00Z")];
        let approved = shown(&approved, &entries);
        assert_eq!(approved[..3], ["requested done 09", "approved done 15*", "dropped-off open"]);
        let declined = reviewed("DECLINED", &json!({ "decision": "decline" }));
        let entries = [REQUESTED, ("declined", "2026-11-16T15:00:00Z")];
        assert_eq!(shown(&declined, &entries), ["requested done 09", "declined done 15*"]);
    }

    #[test]
    fn problems_of_parcels_are_named() {
        let problem = |status| problems(&rma(&[json!({ "package_tracking_status": status })]));
        assert_eq!(problem("FAILURE"), ["track-problem-failure"]);
        assert_eq!(problem("RETURNED"), ["track-problem-returned"]);
        assert!(problem("TRANSIT").is_empty());
    }
}
