//! Discrepancies that people have to look at, and their resolutions.

use chrono::{DateTime, Utc};
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::json::{FieldError, ValidationError};
use domain::merchant::Merchant;
use domain::returns::Discrepancy;
use platform::http::PageLimit;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::App;
use crate::error::Error;
use crate::refunds::{self, RefundAssignment};
use crate::return_changes::Cause;
use crate::store::discrepancies::{self, DiscrepancyResolution, Recorded, Search};

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Discrepancies {
    /// Newest first.
    discrepancies: Vec<RecordedDiscrepancy>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A recorded discrepancy.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordedDiscrepancy {
    position: i64,
    /// When the discrepancy was first recorded.
    at: DateTime<Utc>,
    /// Description of `detail` for people.
    message: String,
    detail: Discrepancy,
    /// Absent while the discrepancy is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: Option<DiscrepancyResolution>,
}

/// A person's decision about a discrepancy.
pub(crate) struct Decision {
    pub(crate) note: String,
    /// The return of a refund that names an unknown one.
    pub(crate) rma_identifier: Option<String>,
}

impl From<Recorded> for RecordedDiscrepancy {
    fn from(Recorded { position, at, discrepancy, resolution }: Recorded) -> Self {
        Self { position, at, message: discrepancy.to_string(), detail: discrepancy, resolution }
    }
}

pub(crate) async fn list(
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    search: &Search,
    limit: PageLimit,
) -> Result<Discrepancies, Error> {
    let id = &merchant.identifier;
    let mut found = discrepancies::search(conn, id, search, limit.rows()).await?;
    let next = limit.next(&mut found, |last| last.position.to_string());
    Ok(Discrepancies { discrepancies: found.into_iter().map(Into::into).collect(), next })
}

/// Resolves a discrepancy. Resolving it again changes nothing.
#[tracing::instrument(skip_all, fields(position))]
pub(crate) async fn resolve(
    app: &App,
    merchant: &Merchant,
    actor: &str,
    position: i64,
    decision: &Decision,
) -> Result<RecordedDiscrepancy, Error> {
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let (now, id) = (app.clock.now(), &merchant.identifier);
        let missing = || Error::NoDiscrepancy(position);
        let found = discrepancies::find(conn, id, position).await?.ok_or_else(missing)?;
        if found.resolution.is_some() {
            return Ok(found.into());
        }
        if let Some(rma_identifier) = &decision.rma_identifier {
            let assignment = assignment(&found.discrepancy, rma_identifier)?;
            let detail =
                json!({ "refund_identifier": assignment.refund_identifier, "note": decision.note });
            let cause = Cause { actor, action: "refund assigned", detail };
            refunds::assign(app, conn, merchant, &assignment, &cause, now).await?;
        }
        let note = decision.note.clone();
        let resolution = DiscrepancyResolution { at: now, by: actor.to_owned(), note };
        discrepancies::resolve(conn, id, position, &resolution).await?;
        let resolved = discrepancies::find(conn, id, position).await?;
        Ok(resolved.ok_or_else(missing)?.into())
    })
    .await
}

/// Only a refund that names an unknown return can be assigned to another one.
fn assignment<'a>(
    discrepancy: &'a Discrepancy,
    rma_identifier: &'a str,
) -> Result<RefundAssignment<'a>, ValidationError> {
    match discrepancy {
        Discrepancy::RefundOfUnknownReturn { refund_identifier, order_identifier, .. } => {
            Ok(RefundAssignment { order_identifier, refund_identifier, rma_identifier })
        }
        _ => {
            let detail = "only a refund of an unknown return can be assigned to a return";
            Err(FieldError::invalid("$.rma_identifier", detail).into())
        }
    }
}
