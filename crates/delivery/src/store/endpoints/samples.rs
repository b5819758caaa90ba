//! Samples: the requests to send them, and the last one that each endpoint accepted.

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::{
    Timestamp,
    database::{DatabaseError, column, sql},
};
use uuid::Uuid;

platform::rows! {
    /// A request to send samples to a merchant's endpoints.
    #[derive(Debug)]
    pub(crate) struct SampleRequest {
        pub(crate) id: Uuid,
        pub(crate) merchant: String,
        pub(crate) requested_by: String,
        pub(crate) event: String,
        pub(crate) kinds: Vec<String>,
        pub(crate) requested_at: Timestamp,
    }
}

/// Records a request to send samples.
pub(crate) async fn insert_sample_request(
    conn: &mut AsyncPgConnection,
    request: &SampleRequest,
) -> Result<(), DatabaseError> {
    sql("INSERT INTO delivery_sample_requests (id, merchant, requested_by, event, kinds, requested_at) \
         VALUES ($1, $2, $3, $4, $5, $6)", (request.id, &request.merchant, &request.requested_by, &request.event, &request.kinds, request.requested_at))
    .execute(conn)
    .await?;
    Ok(())
}

/// The newest requests, of one merchant or of all, after a request.
pub(crate) async fn newest_sample_requests(
    conn: &mut AsyncPgConnection,
    merchant: Option<&str>,
    after: Option<Uuid>,
    limit: i64,
) -> Result<Vec<SampleRequest>, DatabaseError> {
    let of_merchant = merchant.map_or("$1 IS NULL", |_| "merchant = $1");
    let query = sql(
        format!(
            "SELECT id, merchant, requested_by, event, kinds, requested_at FROM delivery_sample_requests \
         WHERE {of_merchant} AND id < $2 ORDER BY id DESC LIMIT $3"
        ),
        (merchant, after.unwrap_or(Uuid::max()), limit),
    );
    Ok(query.load(conn).await?)
}

/// Records the kinds of sample that a merchant accepted, each with the status of the response.
pub(crate) async fn record_samples(
    conn: &mut AsyncPgConnection,
    merchant: &str,
    accepted: &[(String, i32)],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    sql(
        "INSERT INTO delivery_samples (merchant, kind, accepted_at, status) \
         SELECT $1, kind, $4, status FROM unnest($2, $3) AS accepted (kind, status) \
         ON CONFLICT (merchant, kind) DO UPDATE \
         SET accepted_at = excluded.accepted_at, status = excluded.status",
        (
            merchant,
            column(accepted, |(kind, _)| kind),
            column(accepted, |(_, status)| *status),
            now,
        ),
    )
    .execute(conn)
    .await?;
    Ok(())
}
