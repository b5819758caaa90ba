//! Erases personal data in messages and in the merchant's responses to them.

use std::sync::LazyLock;

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::MerchantId;
use domain::erasure::{ERASED, erase_text};
use platform::Timestamp;
use platform::database::{DatabaseError, parts_by_bytes, prepared, sql};
use serde_json::Value;
use uuid::Uuid;

use super::ordering_key::messages_of_key;

/// The messages among which an erasure looks for those of the shopper.
#[derive(Debug, Clone, Copy)]
pub struct ErasedMessages<'a> {
    pub ordering_keys: &'a [String],
    /// Later messages stay as they are.
    pub before: Option<Timestamp>,
}

platform::rows! {
    struct Size {
        id: Uuid,
        bytes: i32,
    }

    struct Row {
        id: Uuid,
        body: Vec<u8>,
    }
}

/// `LATERAL` uses the index on the ordering key for each of them.
static FIND: LazyLock<String> = LazyLock::new(|| {
    let condition = "AND merchant = $1 AND ($3 IS NULL OR created_at < $3)";
    format!(
        "SELECT message.* FROM unnest($2) AS wanted (ordering_key), LATERAL ({}) AS message",
        messages_of_key("id, octet_length(body) AS bytes", condition)
    )
});
const READ: &str = "SELECT message.* FROM unnest($1) AS wanted (id), LATERAL ( \
     SELECT id, body FROM delivery_messages AS own WHERE own.id = wanted.id LIMIT 1 \
 ) AS message";
/// Locks the messages, so that an attempt that is settled meanwhile is logged either before or as erased, see
/// `log_attempts`. Rows are found by their ids and not by the join, see `claim`.
const UPDATE_BODIES: &str = "UPDATE delivery_messages AS message \
 SET body = coalesce(new.body, message.body), is_erased = true \
 FROM unnest($1, $2) AS new (id, body) WHERE message.id = ANY ($1) AND message.id = new.id \
 AND (new.body IS NOT NULL OR NOT message.is_erased) IS TRUE";
/// A response may repeat texts of the message in its body or its headers.
const UPDATE_RESPONSES: &str = "UPDATE delivery_attempts \
 SET response_body = CASE WHEN response_body = '' THEN '' ELSE $2 END, response_headers = '' \
 WHERE delivery = ANY ($1) AND (response_body <> '' OR response_headers <> '')";

/// Applies `erase` to the bodies of the shopper's messages, and replaces the responses to them. Returns the
/// number of bodies that changed. Bodies are read in parts, because an ASN may have thousands of messages.
pub(crate) async fn erase(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    ErasedMessages { ordering_keys, before }: ErasedMessages<'_>,
    is_of_shopper: impl Fn(&Value) -> bool,
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let query = sql(FIND.as_str(), (merchant.as_str(), ordering_keys, before));
    let found: Vec<Size> = prepared(query).load(conn).await?;
    let mut changed = 0;
    for part in parts_by_bytes(&found, |row| usize::try_from(row.bytes).unwrap_or_default()) {
        let ids: Vec<_> = part.iter().map(|row| row.id).collect();
        let query = sql(READ, ids);
        let rows: Vec<Row> = prepared(query).load(conn).await?;
        changed += erase_part(conn, rows, &is_of_shopper, &erase).await?;
    }
    Ok(changed)
}

async fn erase_part(
    conn: &mut AsyncPgConnection,
    rows: Vec<Row>,
    is_of_shopper: impl Fn(&Value) -> bool,
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let mut ids = Vec::new();
    let mut bodies = Vec::new();
    for Row { id, body } in rows {
        let is_of_other = serde_json::from_slice(&body).is_ok_and(|value| !is_of_shopper(&value));
        if !is_of_other {
            ids.push(id);
            let erased = erase_text(&String::from_utf8_lossy(&body), &erase);
            bodies.push(erased.map(String::into_bytes));
        }
    }
    let changed = bodies.iter().flatten().count();
    let update = sql(UPDATE_BODIES, (&ids, bodies));
    prepared(update).execute(conn).await?;
    let update = sql(UPDATE_RESPONSES, (ids, ERASED));
    prepared(update).execute(conn).await?;
    Ok(changed)
}
