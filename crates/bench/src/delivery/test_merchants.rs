//! Merchants with numbers, each with an endpoint for every message kind.

use std::{collections::BTreeMap, ops::Range};

use chrono::DateTime;
use diesel::sql_types::{Array, Jsonb, Text};
use diesel_async::RunQueryDsl as _;
use domain::{
    merchant::{Authentication, Endpoint, Interface, Merchant, Settings, SigningSecret},
    message_kind::MessageKind,
};
use platform::{
    config::List,
    database::Pool,
    sealing::{self, Sealer},
};
use testkit::sealing_keys;
use uuid::Uuid;

use crate::sandbox_process::Sandbox;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// Merchants that one statement inserts.
const BATCH_SIZE: usize = 1_000;

pub(super) fn name(number: usize) -> String {
    format!("m{number}")
}

/// Inserts merchants into the replica of the engine, with endpoints for these kinds.
pub(super) async fn create(
    pool: &Pool,
    sandbox: &Sandbox,
    numbers: Range<usize>,
    kinds: &[MessageKind],
) -> anyhow::Result<()> {
    let keys = List(vec![sealing_keys().into()]);
    let sealer = Sealer::new(&sealing::Settings { keys })?;
    let mut conn = pool.get().await?;
    let numbers: Vec<_> = numbers.collect();
    for batch in numbers.chunks(BATCH_SIZE) {
        let documents = batch.iter().map(|number| {
            let merchant = merchant(&sealer, *number, sandbox.merchant_url(*number), kinds)?;
            Ok(serde_json::to_value(merchant)?)
        });
        let documents = documents.collect::<anyhow::Result<Vec<_>>>()?;
        let names: Vec<_> = batch.iter().map(|number| name(*number)).collect();
        diesel::sql_query(
            "INSERT INTO replica_merchants (identifier, version, document, replicated_at) \
             SELECT identifier, 1, document, now() \
             FROM unnest($1, $2) AS new (identifier, document)",
        )
        .bind::<Array<Text>, _>(names)
        .bind::<Array<Jsonb>, _>(documents)
        .execute(&mut conn)
        .await?;
    }
    Ok(())
}

fn merchant(
    sealer: &Sealer,
    number: usize,
    base_url: String,
    kinds: &[MessageKind],
) -> anyhow::Result<Merchant> {
    let mut settings = Settings::new(name(number));
    settings.base_url = Some(base_url);
    let mut merchant = Merchant::new(name(number).parse()?, settings);
    for interface in kinds.iter().copied().map(Interface::Message) {
        let context = interface.sealing_context(&merchant.identifier);
        let secret = SigningSecret {
            id: Uuid::nil(),
            secret: sealer.seal(&context, SECRET)?,
            created_at: DateTime::UNIX_EPOCH,
            expires_at: None,
        };
        let endpoint = Endpoint {
            url: None,
            path: None,
            headers: BTreeMap::new(),
            authentication: Authentication::None,
            certificate_expires_at: None,
            timeout_ms: None,
            version: None,
            paused: false,
            signing_secrets: vec![secret],
        };
        merchant.endpoints.insert(interface, Box::new(endpoint));
    }
    Ok(merchant)
}
