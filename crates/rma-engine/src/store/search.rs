//! Search for returns, newest first, in pages, in one merchant or in all.

use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::returns::{Rma, RmaStatus};
use platform::Timestamp;
use platform::database::{DatabaseError, is_truncated, limit_page_bytes, prepared};

use super::{ALL_MERCHANTS, read};

const NEWEST_FIRST: &str = "created_at DESC, rma_identifier DESC";

/// Filters; `None` matches every return.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) merchant: Option<MerchantId>,
    pub(crate) rma_identifier: Option<String>,
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
    let mut query = diesel::sql_query(prefix).into_boxed().sql(format!(
        "SELECT document, created_at, rma_identifier, octet_length(document) AS weight \
         FROM returns WHERE {}",
        merchant.map_or(ALL_MERCHANTS, |_| "true")
    ));
    let mut bound = 0;
    // The merchant is the first parameter, if there is one.
    let of_merchant = merchant.map_or("", |_| " AND merchant = $1");
    let of_unit = |column: &str, place: i32| {
        format!(
            "(rma_identifier, merchant) IN (SELECT rma_identifier, merchant FROM return_units \
             WHERE {column} = ${place}{of_merchant})"
        )
    };
    let status = search.status.map(RmaStatus::as_str);
    // Unused filters are not in the query, so that PostgreSQL picks the right index.
    let texts = [
        (merchant, "merchant"),
        (search.rma_identifier.as_deref(), "rma_identifier"),
        (search.order_identifier.as_deref(), "order_identifier"),
        (search.tracking_number.as_deref(), "tracking_number"),
        (status, "status"),
        (search.email.as_deref(), "customer_email"),
    ];
    for (value, column) in texts {
        let Some(value) = value else { continue };
        bound += 1;
        let condition = match column {
            "order_identifier" | "tracking_number" => of_unit(column, bound),
            column => format!("{column} = ${bound}"),
        };
        query = query.sql(format!(" AND {condition}")).bind::<Text, _>(value);
    }
    for (time, comparison) in [(search.from, ">="), (search.to, "<")] {
        let Some(time) = time else { continue };
        bound += 1;
        query = query
            .sql(format!(" AND created_at {comparison} ${bound}"))
            .bind::<Timestamptz, _>(time);
    }
    if let Some((time, identifier)) = &search.after {
        let places = (bound + 1, bound + 2);
        bound += 2;
        query = query
            .sql(format!(" AND (created_at, rma_identifier) < (${}, ${})", places.0, places.1))
            .bind::<Timestamptz, _>(*time)
            .bind::<Text, _>(identifier);
    }
    query = query
        .sql(format!(" ORDER BY {NEWEST_FIRST} LIMIT ${}{suffix}", bound + 1))
        .bind::<BigInt, _>(most);
    let rows: Vec<Row> = prepared(query).load(conn).await?;
    let is_truncated = is_truncated(&rows, |row| row.found);
    let returns: Result<_, _> = rows.iter().map(|row| read(&row.document)).collect();
    Ok((returns?, is_truncated))
}
