//! Carrier reports about parcels. The carrier's event identifier makes each report take effect
//! once. A parcel may hold units of several returns; the report is applied to each of them.
//!
//! See docs/decisions/parcels-and-receiving.md.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::json::Digest;
use domain::merchant::Merchant;
use domain::returns::{
    CarrierReport, Label, LabelKind, Rma, RmaUnit, TrackingEvent, TransitionError, UnitId,
};
use platform::Timestamp;
use platform::database::DatabaseError;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::error::Error;
use crate::return_changes::{Cause, ReturnChanges};
use crate::returns::refused;
use crate::returns::reopening::FreeUnits;
use crate::store::returns::RequestedReturn;

/// A carrier report. It names the return, the tracking number or both. Without `units` it applies
/// to all units with the tracking number, or to the whole return.
#[derive(Debug, Clone, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CarrierEvent)]
pub(crate) struct Reported {
    /// Chosen by the carrier. A repeated report gets the first response.
    #[schema(min_length = 1, max_length = 255)]
    pub(crate) event_identifier: String,
    pub(crate) event: TrackingEvent,
    #[schema(min_length = 1, max_length = 255)]
    pub(crate) rma_identifier: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    pub(crate) tracking_number: Option<String>,
    #[schema(min_items = 1, max_items = 1000)]
    pub(crate) units: Option<Vec<UnitId>>,
    /// With `label`: an http or https URL at which the shopper gets the label.
    #[schema(min_length = 1, max_length = 2048)]
    pub(crate) label_url: Option<String>,
    /// Defaults to `qr_code` for express returns and to `printable` for others.
    pub(crate) label_kind: Option<LabelKind>,
    /// Orders labels: the newest unused label replaces older ones.
    pub(crate) occurred_at: Option<DateTime<Utc>>,
    #[schema(max_length = 1000)]
    pub(crate) detail: Option<String>,
    /// Digest of the whole body.
    #[schema(ignore)]
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

/// Returns that carrier reports are about, locked and as they are after the reports so far.
pub(crate) struct ReportedReturns {
    returns: BTreeMap<(String, String), Rma>,
    /// Merchants with a return that is not loaded. It may be in a reported parcel.
    incomplete: BTreeSet<String>,
}

impl ReportedReturns {
    pub(crate) fn read(requested: &[RequestedReturn]) -> Result<Self, DatabaseError> {
        let mut returns = BTreeMap::new();
        let mut incomplete = BTreeSet::new();
        for row in requested {
            match row.read()? {
                Some(rma) => {
                    returns.insert((row.merchant.clone(), rma.rma_identifier.clone()), rma);
                }
                None => {
                    incomplete.insert(row.merchant.clone());
                }
            }
        }
        Ok(Self { returns, incomplete })
    }

    /// Whether all returns that a report is about are loaded.
    pub(crate) fn has_all_of(&self, merchant: &MerchantId, reported: &Reported) -> bool {
        let is_complete =
            reported.rma_identifier.is_some() || !self.incomplete.contains(merchant.as_str());
        is_complete && !self.of(merchant, reported).is_empty()
    }

    /// The returns that a report is about: the named one, or those with units in the parcel.
    fn of(&self, merchant: &MerchantId, reported: &Reported) -> Vec<&Rma> {
        let key = |name: &String| (merchant.to_string(), name.clone());
        match (&reported.rma_identifier, &reported.tracking_number) {
            (Some(name), _) => self.returns.get(&key(name)).into_iter().collect(),
            (None, Some(number)) => {
                let own = self.returns.range(key(&String::new())..);
                let own = own.take_while(|((owner, _), _)| owner == merchant.as_str());
                let is_in_parcel = |rma: &&Rma| {
                    let is_sent = |it: &&RmaUnit| it.canceled_at.is_none() || it.is_expired;
                    let mut units = rma.units.iter().filter(is_sent);
                    units.any(|unit| unit.tracking_number.as_ref() == Some(number))
                };
                own.map(|(_, rma)| rma).filter(is_in_parcel).collect()
            }
            (None, None) => Vec::new(),
        }
    }

    /// Whether a report may make expired units part of their returns again. Their orders must be locked before the
    /// returns.
    pub(crate) fn may_reopen(&self, merchant: &MerchantId, reported: &Reported) -> bool {
        let returns = self.of(merchant, reported).into_iter();
        reported.event.is_scan() && returns.flat_map(Rma::expired_units).next().is_some()
    }

    /// The returns of a label that a carrier reported, as they are after the report, with the tracking number.
    pub(crate) fn labeled<'a>(
        &'a self,
        merchant: &MerchantId,
        reported: &'a Reported,
    ) -> Vec<(&'a Rma, &'a str)> {
        let number = reported.tracking_number.as_deref();
        let Some(number) = number.filter(|_| reported.event == TrackingEvent::Label) else {
            return Vec::new();
        };
        self.of(merchant, reported).into_iter().map(|rma| (rma, number)).collect()
    }

    /// Applies a report. If it is refused, nothing changes. `free` has the orders of expired units.
    pub(crate) fn apply(
        &mut self,
        merchant: &Merchant,
        actor: &str,
        reported: &Reported,
        free: &FreeUnits,
        changes: &mut ReturnChanges,
        now: Timestamp,
    ) -> Result<Tracked, Error> {
        let returns: Vec<_> =
            self.of(&merchant.identifier, reported).into_iter().cloned().collect();
        if returns.is_empty() {
            return Err(reported.not_found());
        }
        let mut tracked = Tracked { applied: false, returns: Vec::new() };
        let mut refusal = None;
        for (mut rma, report) in reported.of_each(returns)? {
            free.check(&rma, report.event.is_scan())?;
            let is_free = |unit: &UnitId| free.has(&merchant.identifier, unit);
            let change = match rma.track_late(&report, is_free, now) {
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
            changes.add(&rma, &change, cause, now)?;
            self.returns.insert((merchant.identifier.to_string(), rma.rma_identifier.clone()), rma);
        }
        // The report succeeds if at least one return accepts it.
        refusal.filter(|_| tracked.returns.is_empty()).map_or(Ok(tracked), Err)
    }
}

impl Reported {
    fn not_found(&self) -> Error {
        match &self.rma_identifier {
            Some(name) => Error::NoReturn(name.clone()),
            None => Error::NoParcel(self.tracking_number.clone().unwrap_or_default()),
        }
    }

    /// The part of the report for each return. Returns without a reported unit are left out.
    fn of_each(&self, returns: Vec<Rma>) -> Result<Vec<(Rma, CarrierReport)>, Error> {
        let own = |rma: &Rma, units: &Vec<UnitId>| -> Vec<UnitId> {
            let known = || rma.active_units().chain(rma.expired_units());
            let is_own = |id: &&UnitId| known().any(|unit| unit.id == **id);
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
