//! Erases personal data in stored responses.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::{access::MerchantId, erasure::erase_text};
use serde_json::Value;

use crate::database::{DatabaseError, column, parts_by_bytes, prepared, sql};

crate::rows! {
    struct ResponseSize {
        operation: String,
        key: String,
        bytes: i32,
    }

    struct StoredResponse {
        operation: String,
        key: String,
        response: String,
    }
}

/// Applies `erase` to the stored responses about these returns, so that a repeated request does not return a
/// shopper's data after it was erased.
pub async fn erase_responses(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifiers: &[String],
    erase: impl Fn(&mut Value),
) -> Result<(), DatabaseError> {
    if rma_identifiers.is_empty() {
        return Ok(());
    }
    let query = sql(
        "SELECT operation, key, octet_length(response) AS bytes FROM idempotency_keys \
         WHERE merchant = $1 AND rma_identifier = ANY ($2) FOR UPDATE",
        (merchant.as_str(), rma_identifiers),
    );
    // Planned each time: a plan that was made while the table was small would read all keys of the merchant.
    let found: Vec<ResponseSize> = query.load(conn).await?;
    // Together, the responses may have hundreds of megabytes.
    for part in parts_by_bytes(&found, |row| usize::try_from(row.bytes).unwrap_or_default()) {
        let query = sql(
            "SELECT own.* FROM unnest($2, $3) AS wanted (operation, key), LATERAL ( \
                 SELECT operation, key, response FROM idempotency_keys AS stored \
                 WHERE stored.merchant = $1 AND stored.operation = wanted.operation \
                     AND stored.key = wanted.key LIMIT 1 \
             ) AS own",
            (merchant.as_str(), column(part, |row| &row.operation), column(part, |row| &row.key)),
        );
        let stored: Vec<StoredResponse> = query.load(conn).await?;
        for StoredResponse { operation, key, response } in stored {
            let Some(erased) = erase_text(&response, &erase) else { continue };
            let statement = sql(
                "UPDATE idempotency_keys SET response = $4 \
                 WHERE merchant = $1 AND operation = $2 AND key = $3",
                (merchant.as_str(), operation, key, erased),
            );
            prepared(statement).execute(conn).await?;
        }
    }
    Ok(())
}
