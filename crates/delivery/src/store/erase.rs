//! Erases personal data in messages and in the merchant's responses to them.

use std::sync::LazyLock;

use diesel::sql_types::{Array, Binary, Text};
use diesel::{QueryableByName, sql_query};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::MerchantId;
use domain::erasure::{ERASED, erase_text};
use platform::database::{DatabaseError, prepared};
use serde_json::Value;
use uuid::Uuid;

use super::ordering_key::messages_of_key;

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = diesel::sql_types::Uuid)]
    id: Uuid,
    #[diesel(sql_type = Binary)]
    body: Vec<u8>,
}

/// `LATERAL` uses the index on the ordering key for each of them.
static FIND: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT message.* FROM unnest($2) AS wanted (ordering_key), LATERAL ({}) AS message",
        messages_of_key("id, body", "AND merchant = $1")
    )
});
const UPDATE_BODIES: &str = "UPDATE delivery_messages AS message SET body = new.body, is_erased = true \
 FROM unnest($1, $2) AS new (id, body) WHERE message.id = new.id";
/// A response may repeat texts of the message in its body or its headers.
const UPDATE_RESPONSES: &str = "UPDATE delivery_attempts \
 SET response_body = CASE WHEN response_body = '' THEN '' ELSE $2 END, response_headers = '' \
 WHERE delivery = ANY ($1) AND (response_body <> '' OR response_headers <> '')";

/// Applies `erase` to the bodies of messages, and replaces the responses to all of them. Returns the number
/// of changed messages.
pub(crate) async fn erase(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    ordering_keys: &[String],
    erase: impl Fn(&mut Value),
) -> Result<usize, DatabaseError> {
    let query = sql_query(FIND.as_str())
        .bind::<Text, _>(merchant.as_str())
        .bind::<Array<Text>, _>(ordering_keys);
    let found: Vec<Row> = prepared(query).load(conn).await?;
    let ids: Vec<_> = found.iter().map(|row| row.id).collect();
    let (mut changed, mut bodies) = (Vec::new(), Vec::new());
    for Row { id, body } in found {
        if let Some(erased) = erase_text(&String::from_utf8_lossy(&body), &erase) {
            changed.push(id);
            bodies.push(erased.into_bytes());
        }
    }
    let update = sql_query(UPDATE_BODIES)
        .bind::<Array<diesel::sql_types::Uuid>, _>(changed)
        .bind::<Array<Binary>, _>(bodies);
    let changed = prepared(update).execute(conn).await?;
    let update = sql_query(UPDATE_RESPONSES)
        .bind::<Array<diesel::sql_types::Uuid>, _>(ids)
        .bind::<Text, _>(ERASED);
    prepared(update).execute(conn).await?;
    Ok(changed)
}
