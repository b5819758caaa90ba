//! Search for returns, newest first, in pages, in one merchant or in all.

use diesel::QueryableByName;
use diesel::pg::Pg;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::sql_types::{BigInt, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::returns::{Rma, RmaStatus};
use platform::Timestamp;
use platform::database::{DatabaseError, IndexRange, is_truncated, limit_page_bytes, prepared};

use super::{ALL_MERCHANTS, read};

const NEWEST_FIRST: &str = "created_at DESC, rma_identifier DESC";

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
    /// In lower case.
    pub(crate) email: Option<String>,
    pub(crate) tracking_number: Option<String>,
    /// Created at this time or later.
    pub(crate) from: Option<Timestamp>,
    /// Created before this time.
    pub(crate) to: Option<Timestamp>,
    /// Creation time and identifier of the last return of the previous page.
    pub(crate) after: Option<(Timestamp, String)>,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    document: String,
    /// Number of matching rows before the page was cut to its byte limit.
    #[diesel(sql_type = BigInt)]
    found: i64,
}

/// Finds up to `most` returns, fewer if they are large. The flag says whether the byte limit cut
/// the page.
pub(crate) async fn search(
    conn: &mut AsyncPgConnection,
    search: &Search,
    most: i64,
) -> Result<(Vec<Rma>, bool), DatabaseError> {
    let (prefix, suffix) = limit_page_bytes(NEWEST_FIRST);
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
    let (mut conditions, mut of_units, mut fixed) = (String::new(), String::new(), Vec::new());
    let mut prefix_range = None;
    for (place, (_, column)) in (1..).zip(&texts) {
        let condition = format!(" AND {column} = ${place}");
        match *column {
            "prefix_of_identifier" => prefix_range = Some(range_of_prefix(place)),
            "order_identifier" | "tracking_number" => of_units.push_str(&condition),
            "status" if search.email.is_some() => conditions.push_str(&condition),
            column if !is_by_identifier => fixed.push((column, format!("${place}"))),
            _ => conditions.push_str(&condition),
        }
    }
    let source = source(prefix_range, &of_units, merchant.is_some(), &mut conditions);
    if search.email.is_some() {
        // The condition of the index.
        conditions.push_str(" AND customer_email IS NOT NULL");
    }
    let times = Times::new(search, texts.len());
    let range = IndexRange { fixed: &fixed, sorted: &["created_at", "rma_identifier"] };
    // A scan of an index would not end at the earliest time, so returns before it are removed from the page.
    let mut query = diesel::sql_query(format!(
        "{prefix}SELECT * FROM ( \
             SELECT document, created_at, rma_identifier, octet_length(document) AS weight \
             FROM {} WHERE {}{conditions} AND {} ORDER BY {} LIMIT ${} \
         ) AS newest WHERE {}{suffix}",
        source,
        merchant.map_or(ALL_MERCHANTS, |_| "true"),
        range.condition(None, times.to()),
        range.order("DESC"),
        times.bound + 1,
        times.from()
    ))
    .into_boxed();
    query = texts.iter().fold(query, |query, (value, _)| query.bind::<Text, _>(*value));
    query = times.bind(query).bind::<BigInt, _>(most);
    let rows: Vec<Row> = prepared(query).load(conn).await?;
    let is_truncated = is_truncated(&rows, |row| row.found);
    let returns: Result<_, _> = rows.iter().map(|row| read(&row.document)).collect();
    Ok((returns?, is_truncated))
}

/// The returns to search: those of a prefix, or those with the units of a filter.
fn source(
    prefix_range: Option<String>,
    of_units: &str,
    is_of_merchant: bool,
    conditions: &mut String,
) -> String {
    match prefix_range {
        // The identifiers are random, so few begin with the same text.
        Some(range) if of_units.is_empty() => format!(
            "(SELECT * FROM returns WHERE {range} ORDER BY rma_identifier, merchant \
             LIMIT {MAX_OF_PREFIX}) AS returns"
        ),
        range => {
            conditions.extend(range.map(|range| format!(" AND {range}")));
            returns_with(of_units, is_of_merchant)
        }
    }
}

/// The condition of identifiers that begin with a parameter. The last character sorts behind all others.
fn range_of_prefix(place: usize) -> String {
    format!("rma_identifier >= ${place} AND rma_identifier < ${place} || chr(1114111)")
}

/// The returns, or those with units that match the conditions. `LATERAL` reads only the returns of these units:
/// PostgreSQL would read all returns by time if it took an order for a frequent one. The merchant is the first
/// parameter, if there is one.
fn returns_with(of_units: &str, has_merchant: bool) -> String {
    if of_units.is_empty() {
        return "returns".to_owned();
    }
    let of_merchant = if has_merchant { " AND merchant = $1" } else { "" };
    format!(
        "(SELECT DISTINCT rma_identifier AS rma, merchant AS owner FROM return_units \
         WHERE true{of_units}{of_merchant}) AS unit, LATERAL ( \
             SELECT * FROM returns WHERE rma_identifier = unit.rma AND merchant = unit.owner LIMIT 1 \
         ) AS returns"
    )
}

/// The bounds of the creation time: of the filters, and of the page.
struct Times {
    from: Option<(Timestamp, String)>,
    to: Option<((Timestamp, String), String)>,
    /// Number of parameters, with those of the filters.
    bound: usize,
}

impl Times {
    fn new(search: &Search, mut bound: usize) -> Self {
        let from = search.from.map(|from| {
            bound += 1;
            (from, format!("${bound}"))
        });
        let to = search.to.map(|to| (to, String::new()));
        let to = to.into_iter().chain(search.after.clone()).min().map(|to| {
            bound += 2;
            (to, format!("${}, ${bound}", bound - 1))
        });
        Self { from, to, bound }
    }

    /// The condition of the earliest time.
    fn from(&self) -> String {
        self.from.as_ref().map_or("true".to_owned(), |(_, place)| format!("created_at >= {place}"))
    }

    fn to(&self) -> Option<(&str, &str)> {
        self.to.as_ref().map(|(_, places)| ("<", places.as_str()))
    }

    fn bind<'a>(
        &self,
        mut query: BoxedSqlQuery<'a, Pg, SqlQuery>,
    ) -> BoxedSqlQuery<'a, Pg, SqlQuery> {
        if let Some((time, _)) = &self.from {
            query = query.bind::<Timestamptz, _>(*time);
        }
        if let Some(((time, identifier), _)) = self.to.clone() {
            query = query.bind::<Timestamptz, _>(time).bind::<Text, _>(identifier);
        }
        query
    }
}
