//! Merchants of the tests.

use diesel::sql_types::{BigInt, Jsonb, Text};
use diesel_async::RunQueryDsl;
use domain::merchant::{Interface, Merchant, SigningSecret, SupportContact};
use domain::message_kind::MessageKind;
use platform::database::Pool;
use uuid::Uuid;

use super::deliverer::sealer;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Builds a merchant with one endpoint below `base_url`, for messages of kind `rma`.
pub(crate) fn merchant(id: &str, version: i64, base_url: &str) -> Merchant {
    let mut merchant = testkit::merchant(id);
    merchant.settings.base_url = Some(base_url.to_owned());
    merchant.settings.support_contact =
        Some(SupportContact { email: format!("help@{id}.example"), name: None, phone: None });
    merchant.version = version;
    let interface = Interface::Message(MessageKind::Rma);
    merchant.endpoints.retain(|it, _| *it == interface);
    let context = interface.sealing_context(&merchant.identifier);
    for endpoint in merchant.endpoints.values_mut() {
        endpoint.signing_secrets = vec![SigningSecret {
            id: Uuid::nil(),
            secret: sealer().seal(&context, SECRET).unwrap(),
            created_at: chrono::DateTime::UNIX_EPOCH,
            expires_at: None,
        }];
    }
    merchant
}

/// Writes a merchant to the service's replica of the merchants.
pub(crate) async fn store_merchant(pool: &Pool, merchant: &Merchant) {
    diesel::sql_query(
        "INSERT INTO replica_merchants (identifier, version, document, replicated_at) \
         VALUES ($1, $2, $3, now()) ON CONFLICT (identifier) DO UPDATE \
         SET version = excluded.version, document = excluded.document, replicated_at = now()",
    )
    .bind::<Text, _>(merchant.identifier.as_str())
    .bind::<BigInt, _>(merchant.version)
    .bind::<Jsonb, _>(serde_json::to_value(merchant).unwrap())
    .execute(&mut pool.get().await.unwrap())
    .await
    .unwrap();
}
