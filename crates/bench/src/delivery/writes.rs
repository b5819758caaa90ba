//! Messages that the engine process writes on request, as a service does.

use std::{ops::Range, sync::LazyLock};

use chrono::TimeDelta;
use delivery::{Deliveries, NewMessage};
use diesel_async::AsyncPgConnection;
use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use platform::{
    Clock, ErrorKind, Failure, Timestamp,
    batching::{BatchHandler, BatchResults, Batches, Job, Processing, SubmitError},
    database::DatabaseError,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::test_merchants;

/// Messages per transaction of a batch.
const BATCH_SIZE: usize = 100;
/// Time until a waiting message is due.
const WAITING: TimeDelta = TimeDelta::hours(1);

/// Messages to be written, to the merchants in turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WriteRequest {
    pub(crate) numbers: Range<usize>,
    pub(crate) merchants: Range<usize>,
    /// Send all kinds in turn, instead of only the first.
    pub(crate) all_kinds: bool,
    /// The messages are due in an hour, as after a failed attempt.
    pub(crate) is_waiting: bool,
    /// An empty body, for messages that are not sent.
    pub(crate) is_empty: bool,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct WriteResponse {
    /// In the order of the numbers.
    pub(crate) ids: Vec<Uuid>,
    pub(crate) committed_at: Timestamp,
}

impl WriteRequest {
    pub(crate) fn new(numbers: Range<usize>, merchants: Range<usize>) -> Self {
        Self { numbers, merchants, all_kinds: false, is_waiting: false, is_empty: false }
    }

    /// The kind of a message.
    pub(crate) fn kind(&self, number: usize) -> MessageKind {
        let turn = if self.all_kinds { number / self.merchants.len() } else { 0 };
        let kinds = MessageKind::ALL;
        kinds.get(turn % kinds.len()).copied().unwrap_or(MessageKind::Rma)
    }

    fn message(&self, number: usize) -> anyhow::Result<NewMessage> {
        let merchant = self.merchants.start + number % self.merchants.len();
        let body = if self.is_empty { "{}".to_owned() } else { body(number) };
        let kind = self.kind(number);
        Ok(NewMessage {
            merchant: test_merchants::name(merchant).parse()?,
            kind,
            version: Interface::Message(kind).default_version(),
            ordering_key: Some(format!("rma:{}", Uuid::now_v7())),
            event: "rma.created".to_owned(),
            body: body.into(),
        })
    }
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

pub(super) fn body(number: usize) -> String {
    template().replace(NUMBER, &number.to_string())
}

/// Messages that one request writes at once.
pub(super) struct WriteJob {
    messages: Vec<NewMessage>,
    is_waiting: bool,
}

impl Job for WriteJob {
    fn owner(&self) -> &str {
        self.messages.first().map_or("", |message| message.merchant.as_str())
    }

    fn weight(&self) -> usize {
        self.messages.len()
    }
}

/// Why messages were not written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<diesel::result::Error> for WriteError {
    fn from(error: diesel::result::Error) -> Self {
        DatabaseError::from(error).into()
    }
}

impl Failure for WriteError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Unavailable
    }
}

/// Writes messages in batches, as the services do.
pub(super) struct WriteHandler(pub(super) Deliveries);

impl BatchHandler for WriteHandler {
    type Job = WriteJob;
    type Response = Vec<Uuid>;
    type Error = WriteError;

    async fn process(
        &self,
        conn: &mut AsyncPgConnection,
        jobs: &[&WriteJob],
        _: Processing,
    ) -> Result<BatchResults<Vec<Uuid>, WriteError>, WriteError> {
        let is_waiting = jobs.first().is_some_and(|job| job.is_waiting);
        let is_included = |job: &WriteJob| job.is_waiting == is_waiting;
        let included = jobs.iter().filter(|job| is_included(job));
        let messages: Vec<_> = included.flat_map(|job| job.messages.clone()).collect();
        let due = Clock::system().now() + if is_waiting { WAITING } else { TimeDelta::zero() };
        let mut ids = self.0.append(conn, due, &messages).await?.into_iter();
        let result = |job: &&WriteJob| {
            is_included(job).then(|| Ok(ids.by_ref().take(job.messages.len()).collect()))
        };
        Ok(jobs.iter().map(result).collect())
    }

    fn is_conflict(_: &WriteError) -> bool {
        false
    }
}

/// Writes messages as a service does. Runs in the process of the engine.
pub(super) async fn write(
    batches: &Batches<WriteHandler>,
    request: WriteRequest,
) -> anyhow::Result<WriteResponse> {
    let numbers: Vec<_> = request.numbers.clone().collect();
    let mut ids = Vec::with_capacity(numbers.len());
    for batch in numbers.chunks(BATCH_SIZE) {
        let messages = batch.iter().map(|number| request.message(*number));
        let messages = messages.collect::<anyhow::Result<Vec<_>>>()?;
        ids.extend(batches.run(WriteJob { messages, is_waiting: request.is_waiting }).await?);
    }
    Ok(WriteResponse { ids, committed_at: Clock::system().now() })
}
