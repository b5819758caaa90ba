//! Erases personal data in stored responses.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::{access::MerchantId, erasure::erase_text};
use serde_json::Value;

use crate::database::{DatabaseError, prepared, sql};

crate::rows! {
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
        "SELECT operation, key, response FROM idempotency_keys \
         WHERE merchant = $1 AND rma_identifier = ANY ($2) FOR UPDATE",
        (merchant.as_str(), rma_identifiers),
    );
    // Planned each time: a plan that was made while the table was small would read all keys of the merchant.
    let found: Vec<StoredResponse> = query.load(conn).await?;
    for StoredResponse { operation, key, response } in found {
        let Some(erased) = erase_text(&response, &erase) else { continue };
        let statement = sql(
            "UPDATE idempotency_keys SET response = $4 \
             WHERE merchant = $1 AND operation = $2 AND key = $3",
            (merchant.as_str(), operation, key, erased),
        );
        prepared(statement).execute(conn).await?;
    }
    Ok(())
}
