//! Search for returns, newest or oldest first or in the order of their changes, in pages, in one merchant or in all.
//!
//! One index offers returns in the order of the list, and the other filters are checked for each of them: an index for
//! every filter would slow every return. A page reads a limited number of returns. It may then have few returns or
//! none, and its cursor continues the search.
//!
//! See docs/decisions/lists-of-returns.md.

mod filters;
mod parameters;
mod source;
mod times;

use api::delivery::State;
use api::returns::LastMessage;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::merchant::ReturnMethod;
use domain::returns::{ResolutionKind, Rma, RmaStatus, WorkList};
use platform::Timestamp;
use platform::database::{DatabaseError, is_truncated, limit_page_bytes, prepared};
use platform::http::ListOrder;
use uuid::Uuid;

use super::{read, unreadable};
use filters::Filters;
use parameters::Parameters;
use source::Source;

/// Limit on the returns that a page with filters without an index reads.
pub(crate) const MAX_SCANNED: i64 = 2_000;

/// The time of the last change of a return, that of the last entry of its timeline.
const CHANGED_AT: &str = "coalesce(( \
         SELECT entry.recorded_at FROM timeline AS entry \
         WHERE entry.merchant = returns.merchant AND entry.rma_identifier = returns.rma_identifier \
         ORDER BY entry.position DESC LIMIT 1 \
     ), returns.updated_at)";

/// Filters; `None` matches every return.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) merchant: Option<MerchantId>,
    pub(crate) rma_identifier: Option<String>,
    pub(crate) rma_identifier_prefix: Option<String>,
    pub(crate) order_identifier: Option<String>,
    pub(crate) status: Option<RmaStatus>,
    pub(crate) work_list: Option<WorkList>,
    /// Returns with units that are due.
    pub(crate) is_overdue: bool,
    /// In lower case.
    pub(crate) email: Option<String>,
    pub(crate) tracking_number: Option<String>,
    pub(crate) return_method: Option<ReturnMethod>,
    /// Returns with a unit with this resolution, this reason or this SKU.
    pub(crate) resolution: Option<ResolutionKind>,
    pub(crate) return_reason: Option<String>,
    pub(crate) sku: Option<String>,
    pub(crate) min_amount_cents: Option<i64>,
    pub(crate) max_amount_cents: Option<i64>,
    /// The state of the last message.
    pub(crate) message_state: Option<State>,
    /// Created at this time or later.
    pub(crate) from: Option<Timestamp>,
    /// Created before this time.
    pub(crate) to: Option<Timestamp>,
    /// Changed at this time or later. The list is in the order of the last changes, and does not search by identifiers.
    pub(crate) updated_from: Option<Timestamp>,
    /// Changed before this time.
    pub(crate) updated_to: Option<Timestamp>,
    pub(crate) order: ListOrder,
    /// The last return of the previous page.
    pub(crate) after: Option<Place>,
}

impl Search {
    /// The order of the list.
    fn order(&self) -> ListOrder {
        if self.updated_from.is_some() { ListOrder::Oldest } else { self.order }
    }
}

/// The place of a return in a list: its time of creation and its identifier, or the time of its last change and the
/// position in the timeline.
pub(crate) type Place = (Timestamp, String);

/// A return that was found.
#[derive(Debug)]
pub(crate) struct FoundReturn {
    pub(crate) rma: Rma,
    pub(crate) changed_at: Timestamp,
    pub(crate) last_message: Option<LastMessage>,
    pub(crate) place: Place,
}

/// The returns of a page.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) returns: Vec<FoundReturn>,
    /// Whether the byte limit cut the page.
    pub(crate) is_truncated: bool,
    /// The last return that was checked, if the search stopped at its limit.
    pub(crate) scanned_to: Option<Place>,
    /// The time before which no further change will appear, for a list of changes.
    pub(crate) horizon: Option<Timestamp>,
}

platform::rows! {
    struct FoundRow {
        /// `None` for the place of the last return that was checked.
        document: Option<String>,
        sorted_at: Timestamp,
        sorted_id: String,
        changed_at: Timestamp,
        last_delivery: Option<Uuid>,
        message_state: Option<String>,
        /// Number of matching rows before the page was cut to its byte limit.
        found: i64,
    }

    struct HorizonRow {
        horizon: Timestamp,
    }
}

impl FoundRow {
    fn read(self) -> Result<FoundReturn, DatabaseError> {
        let state = self.message_state.map(|state| state.parse::<State>());
        let state = state.transpose().map_err(unreadable)?;
        let last_message = self.last_delivery.map(|delivery| LastMessage { delivery, state });
        let document = self.document.ok_or_else(|| {
            DatabaseError::Internal(format!("return {} has no document", self.sorted_id))
        })?;
        Ok(FoundReturn {
            rma: read(&document)?,
            changed_at: self.changed_at,
            last_message,
            place: (self.sorted_at, self.sorted_id),
        })
    }
}

/// Finds up to `most` returns, fewer if they are large.
pub(crate) async fn search(
    conn: &mut AsyncPgConnection,
    search: &Search,
    most: i64,
) -> Result<Found, DatabaseError> {
    // In a statement of its own, so that the next one sees all changes before this time.
    let horizon = if search.updated_from.is_some() { Some(horizon(conn).await?) } else { None };
    let filters = Filters::new(search);
    // A list of changes has only the last one of each return.
    let is_scan = horizon.is_some() || !filters.is_empty();
    let mut parameters = Parameters::default();
    let checks = filters.conditions(&mut parameters);
    let scanned = if is_scan { MAX_SCANNED } else { most };
    let source = Source::new(search, horizon, &mut parameters, scanned);
    let most = parameters.add(most);
    let mut statement = page(search, &source, &checks, &most);
    if is_scan && let Some(place) = Source::place(search, horizon, &mut parameters, MAX_SCANNED) {
        statement = with_place(&statement, &place, &most);
    }
    let mut rows: Vec<FoundRow> = prepared(parameters.bind(statement)).load(conn).await?;
    let last = rows.pop_if(|row| row.document.is_none());
    let is_truncated = is_truncated(&rows, |row| row.found);
    let scanned_to = last.filter(|_| !is_truncated).map(|row| (row.sorted_at, row.sorted_id));
    let returns: Vec<_> = rows.into_iter().map(FoundRow::read).collect::<Result<_, _>>()?;
    Ok(Found { returns, is_truncated, scanned_to, horizon })
}

/// A query of the returns of a page.
fn page(search: &Search, source: &Source, checks: &str, most: &str) -> String {
    let Source { from, conditions, order, sorted: [time, id] } = source;
    let direction = search.order().direction();
    let (prefix, suffix) =
        limit_page_bytes(&format!("sorted_at {direction}, sorted_by {direction}"));
    let message_state = delivery::state_of("returns.last_delivery");
    format!(
        "{prefix}SELECT returns.document, {CHANGED_AT} AS changed_at, returns.last_delivery, \
             {time} AS sorted_at, {id} AS sorted_by, {id}::text AS sorted_id, \
             ({message_state}) AS message_state, octet_length(returns.document) AS weight \
         FROM {from} WHERE {checks} AND {conditions} ORDER BY {order} LIMIT {most}{suffix}"
    )
}

/// Adds a row without a document to a page that is not full: the place of the last return that was checked, if there are
/// as many as a page checks. In one statement, because returns may leave the list meanwhile.
fn with_place(page: &str, place: &str, most: &str) -> String {
    format!(
        "WITH page AS ({page}) \
         SELECT document, sorted_at, sorted_id, changed_at, last_delivery, message_state, found \
         FROM page \
         UNION ALL \
         SELECT NULL, sorted_at, sorted_id, sorted_at, NULL::uuid, NULL, 0 \
         FROM ({place}) AS place WHERE (SELECT count(*) FROM page) < {most}"
    )
}

/// The time before which all changes are committed.
async fn horizon(conn: &mut AsyncPgConnection) -> Result<Timestamp, DatabaseError> {
    let query = Parameters::default().bind(include_str!("search/horizon.sql").to_owned());
    let row: HorizonRow = prepared(query).get_result(conn).await?;
    Ok(row.horizon)
}
