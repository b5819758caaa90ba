//! Reasons why a delivery has not been sent yet.

use std::collections::HashMap;

use api::delivery::{State, Waiting, WaitingReason};
use chrono::SecondsFormat;
use diesel_async::AsyncPgConnection;
use domain::message_kind::MessageKind;
use platform::{Timestamp, database::DatabaseError};
use uuid::Uuid;

use crate::engine::Engine;
use crate::store::{self, DeliveryRow, UnsettledDelivery};
use crate::window::Window;

/// Returns the reason of each pending delivery among `rows`.
pub(super) async fn waiting(
    engine: &Engine,
    conn: &mut AsyncPgConnection,
    rows: &[DeliveryRow],
) -> Result<HashMap<Uuid, Waiting>, DatabaseError> {
    let pending = || rows.iter().filter(|row| row.state() == State::Pending);
    let ids: Vec<_> = pending().map(|row| row.id).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let initial_window = Window::new(engine.settings.windows()).size();
    let unsettled =
        store::unsettled(conn, &ids, initial_window.try_into().unwrap_or(i32::MAX)).await?;
    let paused: HashMap<_, _> = pending()
        .map(|row| {
            let kind = row.kind.parse::<MessageKind>().ok();
            (row.id, kind.is_some_and(|kind| engine.is_paused(&row.merchant, kind)))
        })
        .collect();
    let now = engine.clock.now();
    let with_reason = |delivery: &UnsettledDelivery| {
        let is_paused = paused.get(&delivery.id).copied().unwrap_or_default();
        (delivery.id, reason(delivery, is_paused, now))
    };
    Ok(unsettled.iter().map(with_reason).collect())
}

fn reason(delivery: &UnsettledDelivery, is_paused: bool, now: Timestamp) -> Waiting {
    let time = |at: Timestamp| at.to_rfc3339_opts(SecondsFormat::Secs, true);
    let later = |at: &Timestamp| *at > now;
    let (reason, detail) = if delivery.state == "queued" {
        (WaitingReason::Sending, "it is being sent".to_owned())
    } else if is_paused {
        (WaitingReason::EndpointPaused, "the endpoint is paused".to_owned())
    } else if delivery.state == "blocked" {
        let detail = "an earlier message of its ordering key is not settled";
        (WaitingReason::BehindAnother, detail.to_owned())
    } else if later(&delivery.next_attempt_at) {
        let at = time(delivery.next_attempt_at);
        (WaitingReason::NextAttempt, format!("the next attempt is at {at}"))
    } else if let Some(at) = delivery.not_before.filter(later) {
        let detail = format!("the endpoint fails and is probed again at {}", time(at));
        (WaitingReason::EndpointFailing, detail)
    } else if delivery.is_window_full {
        (WaitingReason::WindowFull, "the window of the endpoint is full".to_owned())
    } else {
        (WaitingReason::Due, "it is due and is sent next".to_owned())
    };
    Waiting { reason, detail }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn now() -> Timestamp {
        "2026-11-16T09:30:00Z".parse().unwrap()
    }

    fn due() -> UnsettledDelivery {
        UnsettledDelivery {
            id: Uuid::nil(),
            state: "ready".to_owned(),
            next_attempt_at: now(),
            not_before: None,
            is_window_full: false,
        }
    }

    #[track_caller]
    fn check(delivery: &UnsettledDelivery, is_paused: bool, expected: WaitingReason, detail: &str) {
        let waiting = reason(delivery, is_paused, now());
        assert_eq!((waiting.reason, waiting.detail.as_str()), (expected, detail));
    }

    #[test]
    fn each_waiting_delivery_has_its_reason() {
        use WaitingReason::*;
        let later = now() + TimeDelta::seconds(30);
        check(&due(), false, Due, "it is due and is sent next");
        let full = UnsettledDelivery { is_window_full: true, ..due() };
        check(&full, false, WindowFull, "the window of the endpoint is full");
        let failing = UnsettledDelivery { not_before: Some(later), ..full };
        let detail = "the endpoint fails and is probed again at 2026-11-16T09:30:30Z";
        check(&failing, false, EndpointFailing, detail);
        let retried = UnsettledDelivery { next_attempt_at: later, ..failing };
        check(&retried, false, NextAttempt, "the next attempt is at 2026-11-16T09:30:30Z");
        let blocked = UnsettledDelivery { state: "blocked".to_owned(), ..retried };
        let detail = "an earlier message of its ordering key is not settled";
        check(&blocked, false, BehindAnother, detail);
        check(&blocked, true, EndpointPaused, "the endpoint is paused");
        let queued = UnsettledDelivery { state: "queued".to_owned(), ..blocked };
        check(&queued, true, Sending, "it is being sent");
    }
}
