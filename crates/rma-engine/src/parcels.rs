//! What carriers report of parcels. A report is known by the identifier that its carrier gave it,
//! and has its effect once.

use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::merchant::Merchant;
use domain::order::Digest;
use domain::returns::{CarrierReport, Change, Rma, TrackingEvent, UnitId};
use platform::Timestamp;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::App;
use crate::chronicle::{self, Cause};
use crate::error::Error;
use crate::once::once;
use crate::returns::{lock, refused};
use crate::store;
use crate::store::answers::Keyed;

/// A carrier's report as it came.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) event_identifier: String,
    pub(crate) event: TrackingEvent,
    pub(crate) rma_identifier: Option<String>,
    pub(crate) tracking_number: Option<String>,
    pub(crate) units: Option<Vec<UnitId>>,
    pub(crate) label_url: Option<String>,
    pub(crate) occurred_at: Option<Timestamp>,
    pub(crate) detail: Option<String>,
    /// Of the whole body.
    pub(crate) digest: Digest,
}

/// What came of a report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tracked {
    /// Whether it changed something.
    applied: bool,
    returns: Vec<TrackedReturn>,
}

/// What came of a report for one return.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TrackedReturn {
    rma_identifier: String,
    /// The units that it changed.
    units: Vec<UnitId>,
    /// The units for which it came too late; it is recorded all the same.
    late: Vec<UnitId>,
}

/// Applies a report and gives the answer, as it was given the first time.
#[tracing::instrument(skip_all, fields(event = %reported.event))]
pub(crate) async fn track(
    app: &App,
    merchant: &Merchant,
    actor: &str,
    reported: &Reported,
) -> Result<String, Error> {
    let keyed = Keyed {
        merchant: &merchant.identifier,
        operation: "carrier_events",
        key: &reported.event_identifier,
        name: "event_identifier",
        request: reported.digest,
    };
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let now = app.clock.now();
        once(conn, Some(&keyed), now, async |conn| {
            apply(app, conn, merchant, actor, reported, now).await
        })
        .await
    })
    .await
}

async fn apply(
    app: &App,
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    actor: &str,
    reported: &Reported,
    now: Timestamp,
) -> Result<Tracked, Error> {
    let id = &merchant.identifier;
    let returns = match (&reported.rma_identifier, &reported.tracking_number) {
        (Some(rma), _) => vec![lock(conn, merchant, rma).await?],
        (None, Some(number)) => store::returns::lock_by_tracking_number(conn, id, number).await?,
        (None, None) => Vec::new(),
    };
    if returns.is_empty() {
        return Err(Error::NoParcel(reported.tracking_number.clone().unwrap_or_default()));
    }
    let mut tracked = Tracked { applied: false, returns: Vec::new() };
    for mut rma in returns {
        let change = reported.apply(&mut rma, now)?;
        tracked.applied |= !change.is_empty();
        tracked.returns.push(TrackedReturn {
            rma_identifier: rma.rma_identifier.clone(),
            units: change.units.clone(),
            late: change.late.clone(),
        });
        let cause = Cause { actor, what: "carrier report", detail: reported.note() };
        chronicle::record(conn, &app.deliveries, id, &rma, &change, cause, now).await?;
    }
    Ok(tracked)
}

impl Reported {
    fn apply(&self, rma: &mut Rma, now: Timestamp) -> Result<Change, Error> {
        let report = CarrierReport {
            event: self.event,
            tracking_number: self.tracking_number.clone(),
            units: self.units.clone(),
        };
        rma.track(&report, now).map_err(|refusal| refused(&rma.rma_identifier, refusal))
    }

    fn note(&self) -> serde_json::Value {
        json!({
            "event": self.event,
            "event_identifier": self.event_identifier,
            "tracking_number": self.tracking_number,
            "label_url": self.label_url,
            "occurred_at": self.occurred_at,
            "detail": self.detail,
        })
    }
}
