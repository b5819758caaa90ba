//! Search for returns, newest or oldest first, in pages, in one merchant or in all.

use diesel::sql_types::{BigInt, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::returns::{Rma, RmaStatus};
use platform::Timestamp;
use platform::database::{
    DatabaseError, IndexRange, SqlStatement, is_truncated, limit_page_bytes, prepared,
};
use platform::http::ListOrder;

use super::{ALL_MERCHANTS, read};

/// The columns that sort returns.
const SORTED: &[&str] = &["created_at", "rma_identifier"];

/// Returns whose identifier begins with a text, of all merchants, that a search reads.
const MAX_OF_PREFIX: u32 = 50;

/// Filters; `None` matches every return.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) merchant: Option<MerchantId>,
    pub(crate) rma_identifier: Option<String>,
    pub(crate) rma_identifier_prefix: Option<String>,
    pub(crate) order_identifier: Option<String>,
    pub(crate) status: Option<RmaStatus>,
    /// Returns with units that are due.
    pub(crate) is_overdue: bool,
    /// In lower case.
    pub(crate) email: Option<String>,
    pub(crate) tracking_number: Option<String>,
    /// Created at this time or later.
    pub(crate) from: Option<Timestamp>,
    /// Created before this time.
    pub(crate) to: Option<Timestamp>,
    pub(crate) order: ListOrder,
    /// Creation time and identifier of the last return of the previous page.
    pub(crate) after: Option<(Timestamp, String)>,
}

platform::rows! {
    struct ReturnRow {
        document: String,
        /// Number of matching rows before the page was cut to its byte limit.
        found: i64,
    }
}

/// Finds up to `most` returns, fewer if they are large. The flag says whether the byte limit cut
/// the page.
pub(crate) async fn search(
    conn: &mut AsyncPgConnection,
    search: &Search,
    most: i64,
) -> Result<(Vec<Rma>, bool), DatabaseError> {
    let range = IndexRange { fixed: &[], sorted: SORTED };
    let (prefix, suffix) = limit_page_bytes(&range.order(search.order.direction()));
    let merchant = search.merchant.as_ref().map(MerchantId::as_str);
    let status = search.status.map(RmaStatus::as_str);
    // Unused filters are not in the query, so that PostgreSQL picks the right index.
    let texts = [
        (merchant, "merchant"),
        (search.email.as_deref(), "customer_email"),
        (status, "status"),
        (search.rma_identifier.as_deref(), "rma_identifier"),
        (search.rma_identifier_prefix.as_deref(), "prefix_of_identifier"),
        (search.order_identifier.as_deref(), "order_identifier"),
        (search.tracking_number.as_deref(), "tracking_number"),
    ];
    let texts: Vec<_> =
        texts.into_iter().filter_map(|(value, column)| Some((value?, column))).collect();
    let is_by_identifier = texts.iter().any(|(_, column)| column.ends_with("_identifier"))
        || search.tracking_number.is_some();
    let mut conditions = String::new();
    let mut unit_conditions = String::new();
    let mut fixed = Vec::new();
    let mut identifier_conditions = Vec::new();
    for (place, (_, column)) in (1..).zip(&texts) {
        let condition = format!(" AND {column} = ${place}");
        match *column {
            "rma_identifier" => identifier_conditions.push(format!("rma_identifier = ${place}")),
            "prefix_of_identifier" => identifier_conditions.push(range_of_prefix(place)),
            "order_identifier" | "tracking_number" => unit_conditions.push_str(&condition),
            "status" if search.email.is_some() => conditions.push_str(&condition),
            column if !is_by_identifier => fixed.push((column, format!("${place}"))),
            _ => conditions.push_str(&condition),
        }
    }
    let source =
        source(&identifier_conditions, &unit_conditions, merchant.is_some(), &mut conditions);
    conditions.extend(index_conditions(search));
    let times = Times::new(search, texts.len());
    let range = IndexRange { fixed: &fixed, sorted: SORTED };
    let (from, to) = times.start();
    // A scan of an index would not end at the last time, so returns behind it are removed from the page.
    let mut query = diesel::sql_query(format!(
        "{prefix}SELECT * FROM ( \
             SELECT document, created_at, rma_identifier, octet_length(document) AS weight \
             FROM {} WHERE {}{conditions} AND {} ORDER BY {} LIMIT ${} \
         ) AS page WHERE {}{suffix}",
        source,
        merchant.map_or(ALL_MERCHANTS, |_| "true"),
        range.condition(from, to),
        range.order(search.order.direction()),
        times.bound + 1,
        times.end()
    ))
    .into_boxed();
    query = texts.iter().fold(query, |query, (value, _)| query.bind::<Text, _>(*value));
    query = times.bind(query).bind::<BigInt, _>(most);
    let rows: Vec<ReturnRow> = prepared(query).load(conn).await?;
    let returns: Result<_, _> = rows.iter().map(|row| read(&row.document)).collect();
    Ok((returns?, is_truncated(&rows, |row| row.found)))
}

/// The conditions of the partial indexes of a search.
fn index_conditions(search: &Search) -> impl Iterator<Item = &'static str> {
    let email = search.email.is_some().then_some(" AND customer_email IS NOT NULL");
    let overdue = search.is_overdue.then_some(" AND overdue");
    [email, overdue].into_iter().flatten()
}

/// The returns to search: those with the identifier or prefix, or those with the units of a filter.
fn source(
    identifier_conditions: &[String],
    unit_conditions: &str,
    is_of_merchant: bool,
    conditions: &mut String,
) -> String {
    let identifiers = identifier_conditions.join(" AND ");
    if identifiers.is_empty() {
        return returns_of_units(unit_conditions, is_of_merchant);
    }
    if unit_conditions.is_empty() {
        // The identifiers are random, so few are the same or begin with the same text. With `LIMIT`, this is planned
        // on its own: by the statistics of an empty table, a scan of all returns by time seems to cost as little.
        return format!(
            "(SELECT * FROM returns WHERE {identifiers} ORDER BY rma_identifier, merchant \
             LIMIT {MAX_OF_PREFIX}) AS returns"
        );
    }
    conditions.push_str(" AND ");
    conditions.push_str(&identifiers);
    returns_of_units(unit_conditions, is_of_merchant)
}

/// The condition of identifiers that begin with a parameter. The last character sorts behind all others.
fn range_of_prefix(place: usize) -> String {
    format!("rma_identifier >= ${place} AND rma_identifier < ${place} || chr(1114111)")
}

/// The returns, or those with units that match the conditions. `LATERAL` reads only the returns of these units: with a
/// join, PostgreSQL reads all returns by time if it overestimates the rows of an order. The merchant is the first
/// parameter, if there is one.
fn returns_of_units(unit_conditions: &str, has_merchant: bool) -> String {
    if unit_conditions.is_empty() {
        return "returns".to_owned();
    }
    let of_merchant = if has_merchant { " AND merchant = $1" } else { "" };
    format!(
        "(SELECT DISTINCT rma_identifier AS rma, merchant AS owner FROM return_units \
         WHERE true{unit_conditions}{of_merchant}) AS unit, LATERAL ( \
             SELECT * FROM returns WHERE rma_identifier = unit.rma AND merchant = unit.owner LIMIT 1 \
         ) AS returns"
    )
}

/// The bounds of the creation time: of the filters, and of the page.
struct Times {
    order: ListOrder,
    /// The page starts behind this return. No identifier is empty, so a time alone is the one before all returns
    /// of that time.
    start: Option<((Timestamp, String), String)>,
    /// The time at which the returns end.
    end: Option<(Timestamp, String)>,
    /// Number of parameters, with those of the filters.
    bound: usize,
}

/// An operator and its operands.
type Bound<'a> = (&'a str, &'a str);

impl Times {
    fn new(search: &Search, mut bound: usize) -> Self {
        let (first, last) = match search.order {
            ListOrder::Newest => (search.to, search.from),
            ListOrder::Oldest => (search.from, search.to),
        };
        let starts = first.map(|first| (first, String::new())).into_iter();
        let starts = starts.chain(search.after.clone());
        let start = match search.order {
            ListOrder::Newest => starts.min(),
            ListOrder::Oldest => starts.max(),
        };
        let end = last.map(|last| {
            bound += 1;
            (last, format!("${bound}"))
        });
        let start = start.map(|start| {
            bound += 2;
            (start, format!("${}, ${bound}", bound - 1))
        });
        Self { order: search.order, start, end, bound }
    }

    /// The bounds of the index: the lower and the upper one.
    fn start(&self) -> (Option<Bound<'_>>, Option<Bound<'_>>) {
        let places = self.start.as_ref().map(|(_, places)| places.as_str());
        match self.order {
            ListOrder::Newest => (None, places.map(|places| ("<", places))),
            ListOrder::Oldest => (places.map(|places| (">", places)), None),
        }
    }

    /// The condition of the returns that are not behind the last time.
    fn end(&self) -> String {
        let operator = match self.order {
            ListOrder::Newest => ">=",
            ListOrder::Oldest => "<",
        };
        let condition = |(_, place): &(_, String)| format!("created_at {operator} {place}");
        self.end.as_ref().map_or("true".to_owned(), condition)
    }

    fn bind<'a>(&self, mut query: SqlStatement<'a>) -> SqlStatement<'a> {
        if let Some((time, _)) = &self.end {
            query = query.bind::<Timestamptz, _>(*time);
        }
        if let Some(((time, identifier), _)) = self.start.clone() {
            query = query.bind::<Timestamptz, _>(time).bind::<Text, _>(identifier);
        }
        query
    }
}
