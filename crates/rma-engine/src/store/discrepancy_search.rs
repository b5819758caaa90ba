//! Search for discrepancies, newest or oldest first, in one merchant or in all.

use api::returns::DiscrepancyResolution;
use diesel::OptionalExtension as _;
use diesel::sql_types::{BigInt, Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use platform::Timestamp;
use platform::database::{DatabaseError, IndexRange, SqlStatement, prepared};
use platform::http::ListOrder;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::discrepancies::Recorded;
use super::{ALL_MERCHANTS, unreadable};

const COLUMNS: &str = "merchant, position, at, detail, resolved_at, resolved_by, resolution_note, \
     assigned_rma_identifier";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DiscrepancyState {
    Open,
    Resolved,
}

impl DiscrepancyState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Resolved => "resolved",
        }
    }
}

/// Filters; `None` matches every discrepancy.
#[derive(Debug, Default)]
pub(crate) struct DiscrepancySearch {
    pub(crate) merchant: Option<MerchantId>,
    pub(crate) kind: Option<String>,
    pub(crate) order_identifier: Option<String>,
    pub(crate) rma_identifier: Option<String>,
    pub(crate) state: Option<DiscrepancyState>,
    pub(crate) order: ListOrder,
    /// The last position of the previous page.
    pub(crate) after: Option<i64>,
}

platform::rows! {
    struct DiscrepancyRow {
        merchant: String,
        position: i64,
        at: Timestamp,
        detail: Value,
        resolved_at: Option<Timestamp>,
        resolved_by: Option<String>,
        resolution_note: Option<String>,
        assigned_rma_identifier: Option<String>,
    }
}

impl DiscrepancyRow {
    fn read(self) -> Result<Recorded, DatabaseError> {
        // A constraint lets the three be NULL only together.
        let resolution = match (self.resolved_at, self.resolved_by, self.resolution_note) {
            (Some(at), Some(by), Some(note)) => {
                let rma_identifier = self.assigned_rma_identifier;
                Some(DiscrepancyResolution { at, by, note, rma_identifier })
            }
            (None, None, None) => None,
            _ => {
                let position = self.position;
                let case = format!("discrepancy {position} is resolved only in part");
                return Err(DatabaseError::Internal(case));
            }
        };
        Ok(Recorded {
            merchant: self.merchant.parse().map_err(unreadable)?,
            position: self.position,
            at: self.at,
            discrepancy: serde_json::from_value(self.detail).map_err(unreadable)?,
            resolution,
        })
    }
}

/// Finds discrepancies.
pub(crate) async fn search(
    conn: &mut AsyncPgConnection,
    search: &DiscrepancySearch,
    most: i64,
) -> Result<Vec<Recorded>, DatabaseError> {
    let (first, is_newest) = match search.order {
        ListOrder::Newest => (i64::MAX, true),
        ListOrder::Oldest => (i64::MIN, false),
    };
    let merchant = search.merchant.as_ref().map(MerchantId::as_str);
    let mut query = select(merchant).bind::<BigInt, _>(search.after.unwrap_or(first));
    let mut bound = 1;
    let mut fixed = Vec::new();
    let is_by_identifier = search.order_identifier.is_some() || search.rma_identifier.is_some();
    // Unused filters are not in the query, so that PostgreSQL picks the right index.
    let texts = [
        (merchant, "merchant"),
        (search.kind.as_deref(), "kind"),
        (search.order_identifier.as_deref(), "order_identifier"),
        (search.rma_identifier.as_deref(), "rma_identifier"),
        (search.state.map(DiscrepancyState::as_str), "state"),
    ];
    for (value, column) in texts {
        let Some(value) = value else { continue };
        bound += 1;
        query = query.bind::<Text, _>(value);
        if is_by_identifier {
            query = query.sql(format!(" AND {column} = ${bound}"));
        } else {
            fixed.push((column, format!("${bound}")));
        }
    }
    let range = IndexRange { fixed: &fixed, sorted: &["position"] };
    query = query
        .sql(format!(
            " AND {} ORDER BY {} LIMIT ${}",
            range.condition((!is_newest).then_some((">", "$1")), is_newest.then_some(("<", "$1"))),
            range.order(search.order.direction()),
            bound + 1
        ))
        .bind::<BigInt, _>(most);
    let rows: Vec<DiscrepancyRow> = prepared(query).load(conn).await?;
    rows.into_iter().map(DiscrepancyRow::read).collect()
}

/// Finds a discrepancy, of the merchant if one is given.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    position: i64,
) -> Result<Option<Recorded>, DatabaseError> {
    let merchant = merchant.map(MerchantId::as_str);
    let mut query = select(merchant).bind::<BigInt, _>(position).sql(" AND position = $1");
    if let Some(merchant) = merchant {
        query = query.bind::<Text, _>(merchant).sql(" AND merchant = $2");
    }
    let row: Option<DiscrepancyRow> = prepared(query).get_result(conn).await.optional()?;
    row.map(DiscrepancyRow::read).transpose()
}

/// The start of a query about one merchant or all.
fn select<'a>(merchant: Option<&str>) -> SqlStatement<'a> {
    let merchants = merchant.map_or(ALL_MERCHANTS, |_| "true");
    diesel::sql_query(format!("SELECT {COLUMNS} FROM discrepancies WHERE {merchants}")).into_boxed()
}
