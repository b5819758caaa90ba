//! A discrepancy as pages show it.

use pages::text::Moment;

use super::{Discrepancy, DiscrepancyPage, url};
use crate::{Page, error::sentence, listing::words};

/// A discrepancy in a list.
pub(crate) struct DiscrepancyRow {
    pub(crate) url: String,
    pub(crate) kind: String,
    pub(crate) sentence: String,
    pub(crate) at: Moment,
    /// Identifier and URL.
    pub(crate) order: Option<(String, String)>,
    pub(crate) rma: Option<(String, String)>,
    pub(crate) resolution: Option<ResolutionView>,
    pub(crate) discrepancy: Discrepancy,
}

/// The resolution of a discrepancy.
pub(crate) struct ResolutionView {
    pub(crate) at: Moment,
    pub(crate) by: String,
    pub(crate) note: String,
    pub(crate) rma_identifier: Option<String>,
}

impl DiscrepancyRow {
    pub(super) fn is_assignable(&self) -> bool {
        self.discrepancy.detail.is_assignable()
    }

    /// Whether there is something to decide. A refund can still be assigned after a note.
    pub(super) fn can_be_resolved(&self) -> bool {
        match &self.resolution {
            None => true,
            Some(resolution) => self.is_assignable() && resolution.rma_identifier.is_none(),
        }
    }
}

impl DiscrepancyPage {
    pub(crate) fn rows(self, page: &Page) -> Vec<DiscrepancyRow> {
        self.discrepancies.into_iter().map(|one| one.row(page)).collect()
    }
}

impl Discrepancy {
    pub(super) fn row(mut self, page: &Page) -> DiscrepancyRow {
        let linked = |kind: &str, identifier: &str| {
            let url = pages::path!("merchants", self.merchant, kind, identifier);
            (identifier.to_owned(), format!("/{url}"))
        };
        let order = self.detail.order().map(|order| linked("orders", order));
        let rma = self.detail.existing_return().map(|rma| linked("returns", rma));
        let resolution = self.resolution.take().map(|resolution| ResolutionView {
            at: page.moment(resolution.at),
            by: resolution.by,
            note: resolution.note,
            rma_identifier: resolution.rma_identifier,
        });
        DiscrepancyRow {
            url: url(&self.merchant, self.position),
            kind: words(&self.detail.kind),
            sentence: sentence(&self.message),
            at: page.moment(self.at),
            order,
            rma,
            resolution,
            discrepancy: self,
        }
    }
}
