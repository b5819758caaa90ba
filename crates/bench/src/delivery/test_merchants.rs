//! Ten merchants, some of which may hang, and the messages to them.

use std::{collections::HashMap, sync::LazyLock, time::Duration};

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use delivery::{Deliveries, NewMessage};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Jsonb, Text},
};
use diesel_async::{AsyncConnection as _, RunQueryDsl as _};
use domain::{
    merchant::{Authentication, Endpoint, Interface, Merchant, Settings, SigningSecret},
    message_kind::MessageKind,
};
use platform::{
    config::List,
    database::Pool,
    sealing::{self, Sealer},
};
use reqwest::Client;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::{Database, eventually, sealing_keys};
use uuid::Uuid;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const MERCHANTS: usize = 10;
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Messages per transaction.
const BATCH_SIZE: usize = 100;

/// Messages to be written.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct WriteRequest {
    pub(crate) messages: usize,
    /// The range of merchants; `to` is exclusive.
    pub(crate) from: usize,
    pub(crate) to: usize,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct WriteResponse {
    pub(crate) last: Uuid,
    pub(crate) committed_at: DateTime<Utc>,
}

impl WriteRequest {
    pub(crate) fn healthy(messages: usize, hanging: usize) -> Self {
        Self { messages, from: hanging, to: MERCHANTS }
    }

    pub(crate) fn hanging(messages: usize, hanging: usize) -> Self {
        Self { messages, from: 0, to: hanging }
    }
}

fn name(number: usize) -> String {
    format!("m{number}")
}

/// Placeholder of the message number.
const NUMBER: &str = "{number}";

/// A message of about 1.2 KB. It is created once, because its creation is not part of the engine.
fn template() -> &'static str {
    static TEMPLATE: LazyLock<String> = LazyLock::new(|| {
        let item = json!({
            "order_line_item_identifier": "line-1", "order_identifier": format!("order-{NUMBER}"),
            "exchange_order_identifier": null, "original_order_identifier": null,
            "return_reason": "Does not fit", "is_exchange": false, "sku": "SHIRT-BLUE-M",
            "tracking_number": null, "package_tracking_status": null,
            "receiving_status": "PENDING",
            "refund_financials": {"estimated_refund_amount_cents": 4999,
                "service_refund_amount_cents": 0, "shopper_refund_amount_cents": 4999},
            "refund_type": "REFUND",
        });
        let message = json!({
            "rma_identifier": format!("RMA-{NUMBER}"), "status": "CREATED",
            "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
            "items": [item, item], "return_method": "mail-back",
            "return_shipping_cost_cents": 0, "gift_refund_only": false,
        });
        message.to_string()
    });
    &TEMPLATE
}

pub(crate) fn body(number: usize) -> String {
    template().replace(NUMBER, &number.to_string())
}

/// Writes messages as a service does. Runs in the process of the engine.
pub(crate) async fn write(
    pool: &Pool,
    deliveries: &Deliveries,
    request: WriteRequest,
) -> anyhow::Result<WriteResponse> {
    let numbers: Vec<_> = (0..request.messages).collect();
    let mut last = Uuid::nil();
    let mut conn = pool.get().await?;
    for batch in numbers.chunks(BATCH_SIZE) {
        let message = |number: &usize| -> anyhow::Result<NewMessage> {
            let merchant = request.from + number % (request.to - request.from);
            Ok(NewMessage {
                merchant: name(merchant).parse()?,
                kind: MessageKind::Rma,
                ordering_key: Some(format!("rma:{}", Uuid::now_v7())),
                event: "rma.created".to_owned(),
                body: body(*number).into(),
            })
        };
        let batch = batch.iter().map(message).collect::<anyhow::Result<Vec<_>>>()?;
        let now = platform::Clock::system().now();
        let ids = conn.transaction(async |conn| deliveries.append(conn, now, &batch).await).await?;
        last = ids.last().copied().unwrap_or(last);
    }
    Ok(WriteResponse { last, committed_at: platform::Clock::system().now() })
}

/// Inserts the merchants into the replica of the engine.
pub(crate) async fn create(database: &Database, sandbox: &str) -> anyhow::Result<()> {
    let keys = List(vec![sealing_keys().into()]);
    let sealer = Sealer::new(&sealing::Settings { keys })?;
    let interface = Interface::Message(MessageKind::Rma);
    let mut conn = database.pool().get().await?;
    for number in 0..MERCHANTS {
        let mut settings = Settings::new(name(number));
        settings.base_url = Some(format!("{sandbox}/{}", name(number)));
        let mut merchant = Merchant::new(name(number).parse()?, settings);
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
            headers: std::collections::BTreeMap::new(),
            authentication: Authentication::None,
            timeout_ms: None,
            paused: false,
            signing_secrets: vec![secret],
        };
        merchant.endpoints.insert(interface, endpoint);
        diesel::sql_query("INSERT INTO replica_merchants VALUES ($1, 1, $2, now())")
            .bind::<Text, _>(merchant.identifier.as_str())
            .bind::<Jsonb, _>(serde_json::to_value(&merchant)?)
            .execute(&mut conn)
            .await?;
    }
    Ok(())
}

/// Makes the first `hanging` merchants accept requests without responding.
pub(crate) async fn hang(client: &Client, sandbox: &str, hanging: usize) -> anyhow::Result<()> {
    for number in 0..hanging {
        let rule = json!({"path": format!("/{}/*", name(number)),
            "steps": [{"do": "hang", "times": "always"}]});
        let response = client.put(format!("{sandbox}/behaviour")).json(&rule).send().await?;
        response.error_for_status()?;
    }
    Ok(())
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Waits until all messages to the healthy merchants are settled. The query reads one row, because its
/// CPU time counts as the engine's.
pub(crate) async fn await_settled(
    pool: &Pool,
    hanging: usize,
    timeout: Duration,
) -> anyhow::Result<()> {
    let hanging: Vec<_> = (0..hanging).map(name).collect();
    let settled = async {
        let mut conn = pool.get().await?;
        loop {
            let left = diesel::sql_query(
                "SELECT count(*) AS n FROM \
                 (SELECT FROM deliveries WHERE NOT merchant = ANY ($1) LIMIT 1) AS one",
            );
            let left = left.bind::<diesel::sql_types::Array<Text>, _>(&hanging);
            if left.get_result::<Count>(&mut conn).await?.n == 0 {
                return anyhow::Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(timeout, settled).await.context("the deliveries are not settled")?
}

/// Waits until the engine sends only probes to the hanging merchants.
pub(crate) async fn await_probing(pool: &Pool, hanging: usize, timeout: Duration) {
    let hanging = i64::try_from(hanging).unwrap_or(i64::MAX);
    eventually("the hanging endpoints are probed", timeout, async || {
        let mut conn = pool.get().await.ok()?;
        let known =
            diesel::sql_query("SELECT count(*) AS n FROM delivery_endpoints WHERE window_size = 1");
        (known.get_result::<Count>(&mut conn).await.ok()?.n >= hanging).then_some(())
    })
    .await;
}

/// The arrival times in the journal of the sandbox.
pub(crate) async fn arrivals(
    client: &Client,
    sandbox: &str,
) -> anyhow::Result<HashMap<Uuid, DateTime<Utc>>> {
    let (mut arrived, mut after) = (HashMap::new(), 0);
    loop {
        let url = format!("{sandbox}/journal?after={after}&limit=1000");
        let page: Value = client.get(url).send().await?.error_for_status()?.json().await?;
        let entries =
            page.get("entries").and_then(Value::as_array).context("the journal has no entries")?;
        if entries.is_empty() {
            return Ok(arrived);
        }
        for entry in entries {
            let text = |pointer| entry.pointer(pointer).and_then(Value::as_str);
            after = entry
                .get("number")
                .and_then(Value::as_u64)
                .context("a journal entry has no number")?;
            if let (Some(id), Some(at)) = (text("/headers/webhook-id"), text("/at")) {
                arrived.insert(id.parse()?, at.parse()?);
            }
        }
    }
}
