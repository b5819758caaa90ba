//! Search for label requests, newest or oldest first, in one merchant or in all.

use api::labels::LabelRequestView;
use diesel::sql_types::{self, BigInt, Text};
use diesel::{OptionalExtension as _, QueryableByName};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::labels::{LabelFormat, LabelState, RefusalReason};
use platform::Timestamp;
use platform::database::{
    DatabaseError, IndexRange, SqlStatement, is_truncated, limit_page_bytes, prepared,
};
use platform::http::ListOrder;
use uuid::Uuid;

use super::{ALL_MERCHANTS, read, unreadable};

const COLUMNS: &str = "merchant, id, rma_identifier, parcel, state, units, requested_at, updated_at, \
     tracking_number, carrier, service, label_url, document_format, qr_code IS NOT NULL AS has_qr_code, \
     cost_cents, currency, expires_at, refusal, detail, undeliverable_since, cancellation";

/// Filters; `None` matches every request.
#[derive(Debug, Default)]
pub(crate) struct LabelRequestSearch {
    pub(crate) merchant: Option<MerchantId>,
    pub(crate) rma_identifier: Option<String>,
    pub(crate) state: Option<LabelState>,
    pub(crate) order: ListOrder,
    /// The last request of the previous page.
    pub(crate) after: Option<Uuid>,
}

platform::rows! {
    struct ViewRow {
        merchant: String,
        id: Uuid,
        rma_identifier: String,
        parcel: i32,
        state: String,
        units: String,
        requested_at: Timestamp,
        updated_at: Timestamp,
        tracking_number: Option<String>,
        carrier: Option<String>,
        service: Option<String>,
        label_url: Option<String>,
        document_format: Option<String>,
        has_qr_code: bool,
        cost_cents: Option<i64>,
        currency: Option<String>,
        expires_at: Option<Timestamp>,
        refusal: Option<String>,
        detail: Option<String>,
        undeliverable_since: Option<Timestamp>,
        cancellation: Option<Uuid>,
    }

    struct FoundRow {
        #[diesel(embed)]
        view: ViewRow,
        /// Number of matching rows before the page was cut to its byte limit.
        found: i64,
    }
}

impl ViewRow {
    fn read(self) -> Result<LabelRequestView, DatabaseError> {
        let refusal: Option<RefusalReason> =
            self.refusal.map(|word| word.parse().map_err(unreadable)).transpose()?;
        let document: Option<LabelFormat> =
            self.document_format.map(|word| word.parse().map_err(unreadable)).transpose()?;
        Ok(LabelRequestView {
            label_request_id: self.id,
            merchant: self.merchant.parse().map_err(unreadable)?,
            rma_identifier: self.rma_identifier,
            parcel: self.parcel,
            state: self.state.parse().map_err(unreadable)?,
            units: read(&self.units)?,
            requested_at: self.requested_at,
            updated_at: self.updated_at,
            tracking_number: self.tracking_number,
            carrier: self.carrier,
            service: self.service,
            label_url: self.label_url,
            document,
            has_qr_code: self.has_qr_code,
            cost_cents: self.cost_cents,
            currency: self.currency,
            expires_at: self.expires_at,
            refusal,
            detail: self.detail,
            undeliverable_since: self.undeliverable_since,
            cancellation: self.cancellation,
        })
    }
}

/// Finds label requests: up to `most`, fewer if they are large. The flag says whether the byte limit cut the page.
pub(crate) async fn search(
    conn: &mut AsyncPgConnection,
    search: &LabelRequestSearch,
    most: i64,
) -> Result<(Vec<LabelRequestView>, bool), DatabaseError> {
    let (first, is_newest) = match search.order {
        ListOrder::Newest => (Uuid::max(), true),
        ListOrder::Oldest => (Uuid::nil(), false),
    };
    let merchant = search.merchant.as_ref().map(MerchantId::as_str);
    // The requests of a return are few, and have an index that is the same for one merchant and for all.
    let is_of_all = merchant.is_none() && search.rma_identifier.is_none();
    let (prefix, suffix) = limit_page_bytes(&format!("id {}", search.order.direction()));
    let select = format!("{prefix}{}", select(is_of_all));
    let query: SqlStatement<'_> = diesel::sql_query(select).into_boxed();
    let mut query = query.bind::<sql_types::Uuid, _>(search.after.unwrap_or(first));
    let mut bound = 1;
    let mut fixed = Vec::new();
    // Unused filters are not in the query, so that PostgreSQL picks the right index.
    let texts = [
        (merchant, "merchant"),
        (search.rma_identifier.as_deref(), "rma_identifier"),
        (search.state.map(LabelState::as_str), "state"),
    ];
    for (value, column) in texts {
        let Some(value) = value else { continue };
        bound += 1;
        query = query.bind::<Text, _>(value);
        match (&search.rma_identifier, column) {
            // `IS TRUE` keeps PostgreSQL from reading all requests of a merchant.
            (Some(_), "rma_identifier") => query = query.sql(format!(" AND {column} = ${bound}")),
            (Some(_), _) => query = query.sql(format!(" AND ({column} = ${bound}) IS TRUE")),
            (None, _) => fixed.push((column, format!("${bound}"))),
        }
    }
    let range = IndexRange { fixed: &fixed, sorted: &["id"] };
    query = query
        .sql(format!(
            " AND {} ORDER BY {} LIMIT ${}{suffix}",
            range.condition((!is_newest).then_some((">", "$1")), is_newest.then_some(("<", "$1"))),
            range.order(search.order.direction()),
            bound + 1
        ))
        .bind::<BigInt, _>(most);
    let rows: Vec<FoundRow> = prepared(query).load(conn).await?;
    let is_truncated = is_truncated(&rows, |row| row.found);
    let views = rows.into_iter().map(|row| row.view.read()).collect::<Result<_, _>>();
    Ok((views?, is_truncated))
}

/// Shows a label request, of the merchant if one is given.
pub(crate) async fn show(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    id: Uuid,
) -> Result<Option<LabelRequestView>, DatabaseError> {
    let merchant = merchant.map(MerchantId::as_str);
    let query: SqlStatement<'_> = diesel::sql_query(select(merchant.is_none())).into_boxed();
    let mut query = query.bind::<sql_types::Uuid, _>(id).sql(" AND id = $1");
    if let Some(merchant) = merchant {
        query = query.bind::<Text, _>(merchant).sql(" AND merchant = $2");
    }
    let row: Option<ViewRow> = prepared(query).get_result(conn).await.optional()?;
    row.map(ViewRow::read).transpose()
}

/// The start of a query about all merchants, or about one merchant or one return.
fn select(is_of_all: bool) -> String {
    let merchants = if is_of_all { ALL_MERCHANTS } else { "true" };
    format!("SELECT {COLUMNS}, octet_length(units) AS weight FROM label_requests WHERE {merchants}")
}
