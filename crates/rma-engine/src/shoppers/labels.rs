//! The labels of a return as its shopper sees them.

use std::collections::BTreeMap;

use api::labels::LabelRequestView;
use diesel_async::AsyncPgConnection;
use domain::labels::{LabelState, RefusalReason};
use domain::returns::Rma;
use platform::database::DatabaseError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::store::label_request_search::{LabelRequestSearch, search};

/// Far above the parcels and retries of a return.
const MAX_REQUESTS: i64 = 100;

/// The newest label request of a parcel as the shopper sees it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShopperLabel {
    /// The number of the parcel in the return, from 1.
    parcel: i32,
    state: LabelState,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking_number: Option<String>,
    /// The reason why no label is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<RefusalReason>,
}

/// The label requests of a return.
#[derive(Debug, Default)]
pub(crate) struct ReturnLabels {
    /// Newest first.
    requests: Vec<LabelRequestView>,
}

impl ReturnLabels {
    pub(crate) async fn load(
        conn: &mut AsyncPgConnection,
        rma: &Rma,
    ) -> Result<Self, DatabaseError> {
        let wanted = LabelRequestSearch {
            merchant: Some(rma.merchant.clone()),
            rma_identifier: Some(rma.rma_identifier.clone()),
            ..LabelRequestSearch::default()
        };
        let (requests, _) = search(conn, &wanted, MAX_REQUESTS).await?;
        Ok(Self { requests })
    }

    /// Whether the label with a tracking number was canceled or has expired.
    pub(super) fn is_unusable(&self, tracking_number: &str) -> bool {
        let has_number =
            |it: &&LabelRequestView| it.tracking_number.as_deref() == Some(tracking_number);
        let mut own = self.requests.iter().filter(has_number).peekable();
        own.peek().is_some() && own.all(|it| !it.state.is_live())
    }

    /// The newest request of each parcel, by the number of the parcel.
    pub(super) fn newest(&self) -> Vec<ShopperLabel> {
        let mut newest = BTreeMap::new();
        for request in &self.requests {
            newest.entry(request.parcel).or_insert(request);
        }
        newest.into_values().map(ShopperLabel::new).collect()
    }
}

impl ShopperLabel {
    fn new(request: &LabelRequestView) -> Self {
        Self {
            parcel: request.parcel,
            state: request.state,
            tracking_number: request.tracking_number.clone(),
            refusal: request.refusal,
        }
    }
}
