//! The labels of a return as its shopper sees them.

use std::collections::BTreeMap;

use api::labels::LabelRequestView;
use diesel_async::AsyncPgConnection;
use domain::labels::{LabelFormat, LabelState, RefusalReason};
use domain::returns::{Rma, UnitId};
use platform::sealing::Sealer;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::error::Error;
use crate::labels::requests::qr_code;
use crate::labels::retries::MAX_REQUESTS_OF_SHOPPER;
use crate::store::label_request_search::{LabelRequestSearch, search};

/// Far above the parcels and retries of a return.
const MAX_REQUESTS: i64 = 100;

/// The newest label request of a parcel as the shopper sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShopperLabel {
    label_request_id: Uuid,
    /// The number of the parcel in the return, from 1.
    parcel: i32,
    /// The units in the parcel.
    units: Vec<UnitId>,
    state: LabelState,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking_number: Option<String>,
    /// The format of a label at `/v1/label_requests/{id}/document`.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<LabelFormat>,
    /// The text of the QR code that the carrier scans on the shopper's screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    qr_code: Option<String>,
    /// Whether the shopper can request an expired label again.
    is_renewable: bool,
    /// The reason why no label is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<RefusalReason>,
}

/// The label requests of a return.
#[derive(Debug, Default)]
pub(crate) struct ReturnLabels {
    /// Newest first.
    requests: Vec<LabelRequestView>,
    /// By the number of the parcel.
    pub(super) shown: Vec<ShopperLabel>,
}

impl ReturnLabels {
    pub(crate) async fn load(
        conn: &mut AsyncPgConnection,
        sealer: &Sealer,
        rma: &Rma,
    ) -> Result<Self, Error> {
        let wanted = LabelRequestSearch {
            merchant: Some(rma.merchant.clone()),
            rma_identifier: Some(rma.rma_identifier.clone()),
            ..LabelRequestSearch::default()
        };
        let (requests, _) = search(conn, &wanted, MAX_REQUESTS).await?;
        let mut newest = BTreeMap::new();
        for request in &requests {
            newest.entry(request.parcel).or_insert(request);
        }
        let mut shown = Vec::new();
        for request in newest.into_values() {
            let qr_code = qr_code(conn, sealer, request).await?;
            let of_parcel = requests.iter().filter(|it| it.parcel == request.parcel).count();
            let is_renewable =
                request.state == LabelState::Expired && of_parcel < MAX_REQUESTS_OF_SHOPPER;
            shown.push(ShopperLabel { is_renewable, ..ShopperLabel::new(request, qr_code) });
        }
        Ok(Self { requests, shown })
    }

    /// Whether the label with a tracking number was canceled or has expired.
    pub(super) fn is_unusable(&self, tracking_number: &str) -> bool {
        let has_number =
            |it: &&LabelRequestView| it.tracking_number.as_deref() == Some(tracking_number);
        let mut own = self.requests.iter().filter(has_number).peekable();
        own.peek().is_some() && own.all(|it| !it.state.is_live())
    }
}

impl ShopperLabel {
    fn new(request: &LabelRequestView, qr_code: Option<String>) -> Self {
        Self {
            label_request_id: request.label_request_id,
            parcel: request.parcel,
            units: request.units.clone(),
            state: request.state,
            tracking_number: request.tracking_number.clone(),
            document: request.document,
            qr_code,
            is_renewable: false,
            refusal: request.refusal,
        }
    }
}
