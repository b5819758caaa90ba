//! Discrepancies that people have to resolve, and their resolutions.

use api::returns::{DiscrepancyResolution, RecordedDiscrepancy};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::json::{FieldError, ValidationError};
use domain::returns::Discrepancy;
use platform::http::PageLimit;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::App;
use crate::error::Error;
use crate::refunds::{self, RefundAssignment};
use crate::return_changes::Cause;
use crate::store::discrepancies::{self, Recorded};
use crate::store::discrepancy_search::{self, DiscrepancySearch};

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Discrepancies {
    /// Newest first.
    discrepancies: Vec<RecordedDiscrepancy>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The resolution of a discrepancy.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewResolution)]
pub(crate) struct Decision {
    /// The reason for the record.
    #[schema(min_length = 1, max_length = 1000)]
    pub(crate) note: String,
    /// The return to which a refund of an unknown return belongs. The refund is then matched with it.
    #[schema(min_length = 1, max_length = 255)]
    pub(crate) rma_identifier: Option<String>,
}

impl From<Recorded> for RecordedDiscrepancy {
    fn from(Recorded { merchant, position, at, discrepancy, resolution }: Recorded) -> Self {
        let message = discrepancy.to_string();
        Self { merchant, position, at, message, detail: discrepancy, resolution }
    }
}

pub(crate) async fn list(
    conn: &mut AsyncPgConnection,
    search: &DiscrepancySearch,
    limit: PageLimit,
) -> Result<Discrepancies, Error> {
    let mut found = discrepancy_search::search(conn, search, limit.rows()).await?;
    let next = limit.next(&mut found, |last| last.position.to_string());
    Ok(Discrepancies { discrepancies: found.into_iter().map(Into::into).collect(), next })
}

/// Resolves a discrepancy, of the merchant if one is given. The same decision again changes nothing, and one
/// with another note is refused. A refund can still be assigned after its discrepancy was resolved with only a
/// note.
#[tracing::instrument(skip_all, fields(position))]
pub(crate) async fn resolve(
    app: &App,
    merchant: Option<&MerchantId>,
    actor: &str,
    position: i64,
    decision: &Decision,
) -> Result<RecordedDiscrepancy, Error> {
    let owner = merchant.map_or("", MerchantId::as_str);
    app.pool
        .transaction_of(owner, async |conn| {
            let missing = || Error::NoDiscrepancy(position);
            let found = discrepancy_search::find(conn, merchant, position).await?;
            let found = found.ok_or_else(missing)?;
            if let Some(made) = decision.made(&found) {
                if made.note != decision.note {
                    return Err(Error::AlreadyResolved(position, made.by.clone()));
                }
                return Ok(found.into());
            }
            let resolution = DiscrepancyResolution {
                at: app.clock.now(),
                by: actor.to_owned(),
                note: decision.note.clone(),
                rma_identifier: decision.rma_identifier.clone(),
            };
            if let Some(rma_identifier) = &decision.rma_identifier {
                assign(app, conn, &found, rma_identifier, &resolution).await?;
            }
            discrepancies::resolve(conn, &found.merchant, position, &resolution).await?;
            let resolved = discrepancy_search::find(conn, merchant, position).await?;
            Ok(resolved.ok_or_else(missing)?.into())
        })
        .await
}

impl Decision {
    /// The resolution after which this decision has nothing to change: the refund was assigned to its return
    /// if it names one.
    fn made<'a>(&self, found: &'a Recorded) -> Option<&'a DiscrepancyResolution> {
        found.resolution.as_ref().filter(|resolution| {
            self.rma_identifier.is_none() || resolution.rma_identifier == self.rma_identifier
        })
    }
}

/// Assigns the refund to a return, and resolves the refund's other discrepancies. The timeline records a
/// resolution that the assignment replaces.
async fn assign(
    app: &App,
    conn: &mut AsyncPgConnection,
    found: &Recorded,
    rma_identifier: &str,
    resolution: &DiscrepancyResolution,
) -> Result<(), Error> {
    let Recorded { merchant, discrepancy, .. } = found;
    let assignment = assignment(discrepancy, rma_identifier)?;
    let RefundAssignment { order_identifier, refund_identifier, .. } = assignment;
    let detail = json!({
        "refund_identifier": refund_identifier,
        "note": resolution.note,
        "earlier_resolution": found.resolution,
    });
    let cause = Cause { actor: &resolution.by, action: "refund assigned", detail };
    refunds::assign(app, conn, merchant, &assignment, &cause, resolution.at).await?;
    let refunds = [refund_identifier];
    discrepancies::resolve_refunds(conn, merchant, order_identifier, &refunds, resolution).await?;
    Ok(())
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
