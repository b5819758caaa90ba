//! Carrier reports about parcels. The carrier's event identifier makes each report take effect
//! once. A parcel may hold units of several returns; the report is applied to each of them.

use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::json::Digest;
use domain::merchant::Merchant;
use domain::returns::{
    CarrierReport, Label, LabelKind, Rma, TrackingEvent, TransitionError, UnitId,
};
use platform::Timestamp;
use platform::idempotency::{self, IdempotencyKey};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::App;
use crate::error::Error;
use crate::return_changes::{self, Cause};
use crate::returns::{lock, refused};
use crate::store;

/// A carrier's report as it was received.
#[derive(Debug)]
pub(crate) struct Reported {
    pub(crate) event_identifier: String,
    pub(crate) event: TrackingEvent,
    pub(crate) rma_identifier: Option<String>,
    pub(crate) tracking_number: Option<String>,
    pub(crate) units: Option<Vec<UnitId>>,
    pub(crate) label_url: Option<String>,
    pub(crate) label_kind: Option<LabelKind>,
    pub(crate) occurred_at: Option<Timestamp>,
    pub(crate) detail: Option<String>,
    /// Digest of the whole body.
    pub(crate) digest: Digest,
}

/// Result of a carrier report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tracked {
    /// Whether the report changed any unit.
    applied: bool,
    returns: Vec<TrackedReturn>,
}

/// Result of a carrier report for one return.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TrackedReturn {
    rma_identifier: String,
    /// Units that the report changed.
    units: Vec<UnitId>,
    /// Units for which the report came too late. The timeline records the report anyway.
    late: Vec<UnitId>,
}

/// Applies a report and returns the response. A repeated report gets the first response.
#[tracing::instrument(skip_all, fields(event = %reported.event))]
pub(crate) async fn track(
    app: &App,
    merchant: &Merchant,
    actor: &str,
    reported: &Reported,
) -> Result<String, Error> {
    // Event identifiers are unique for each carrier only.
    let key = json!([actor, reported.event_identifier]).to_string();
    let key = IdempotencyKey {
        merchant: &merchant.identifier,
        operation: "carrier_events",
        key: &key,
        name: "event_identifier",
        request: reported.digest,
    };
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let now = app.clock.now();
        idempotency::run(conn, Some(&key), now, async |conn| {
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
    let mut refusal = None;
    for (mut rma, report) in reported.of_each(returns)? {
        let change = match rma.track(&report, now) {
            Ok(change) => change,
            Err(it) => {
                refusal = refusal.or(Some(refused(&rma.rma_identifier, it)));
                continue;
            }
        };
        tracked.applied |= !change.is_empty();
        tracked.returns.push(TrackedReturn {
            rma_identifier: rma.rma_identifier.clone(),
            units: change.units.clone(),
            late: change.late.clone(),
        });
        let cause = Cause { actor, action: "carrier report", detail: reported.detail() };
        return_changes::record(conn, &app.deliveries, id, &rma, &change, cause, now).await?;
    }
    // The report succeeds if at least one return accepts it.
    refusal.filter(|_| tracked.returns.is_empty()).map_or(Ok(tracked), Err)
}

impl Reported {
    /// The part of the report for each return. Returns without a reported unit are left out.
    fn of_each(&self, returns: Vec<Rma>) -> Result<Vec<(Rma, CarrierReport)>, Error> {
        let own = |rma: &Rma, units: &Vec<UnitId>| -> Vec<UnitId> {
            let is_own = |id: &&UnitId| rma.active_units().any(|unit| unit.id == **id);
            units.iter().filter(is_own).cloned().collect()
        };
        let mut reports = Vec::with_capacity(returns.len());
        let mut found = 0;
        for rma in returns {
            let units = self.units.as_ref().map(|units| own(&rma, units));
            if units.as_ref().is_some_and(Vec::is_empty) {
                continue;
            }
            found += units.as_ref().map_or(0, Vec::len);
            let Self { event, occurred_at, .. } = *self;
            let tracking_number = self.tracking_number.clone();
            let label = self.label(&rma);
            let report = CarrierReport { event, tracking_number, units, occurred_at, label };
            reports.push((rma, report));
        }
        // A unit is active in at most one return, so each known unit was found once.
        if found < self.units.as_ref().map_or(0, Vec::len) {
            let rma = self.rma_identifier.as_deref().unwrap_or_default();
            return Err(refused(rma, TransitionError::UnknownUnit));
        }
        Ok(reports)
    }

    fn label(&self, rma: &Rma) -> Option<Label> {
        let url = self.label_url.clone().filter(|_| self.event == TrackingEvent::Label)?;
        let usual = LabelKind::usual_for(rma.return_method);
        Some(Label { url, kind: self.label_kind.unwrap_or(usual) })
    }

    fn detail(&self) -> serde_json::Value {
        json!({
            "event": self.event,
            "event_identifier": self.event_identifier,
            "tracking_number": self.tracking_number,
            "label_url": self.label_url,
            "label_kind": self.label_kind,
            "occurred_at": self.occurred_at,
            "detail": self.detail,
        })
    }
}
