//! The end of the merchants: it notes each message that arrives and responds at once. One merchant hangs.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context as _;
use tokio::task::JoinSet;

use super::merchants::HANGING;
use crate::http::{Connection, Message};

const ACCEPTED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
/// The variants of every product.
const VARIANTS: &str = r#"[{"sku":"TEE-M","title":"Tee, M","attributes":[{"name":"size","value":"M"}],"unit_price_amount_cents":1999,"quantity_in_stock":5,"product_identifier":"tee","image_url":"https://images.shop.example/tee.jpg"}]"#;
/// Members of a body that name the return or the unit that the message is about.
const SUBJECTS: [&str; 2] = ["\"rma_identifier\":\"", "\"unit_identifier\":\""];

/// A message that arrived.
#[derive(Clone)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    /// The header `webhook-id`.
    pub(crate) id: String,
    /// The return or the unit that the message is about.
    pub(crate) subject: String,
    /// The header `X-Service-Sequence`, which counts the messages about the subject.
    pub(crate) sequence: i64,
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
}

impl Receiver {
    /// Starts to receive, in a thread of its own.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let url = format!("http://{}", listener.local_addr()?);
        let arrivals = Arc::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        std::thread::spawn({
            let arrivals = Arc::clone(&arrivals);
            move || runtime.block_on(accept(listener, arrivals))
        });
        Ok(Self { url, arrivals })
    }

    /// The number of messages that arrived since they were last taken.
    pub(crate) fn number(&self) -> usize {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn take(&self) -> Vec<Arrival> {
        std::mem::take(&mut *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn accept(listener: TcpListener, arrivals: Arc<Mutex<Vec<Arrival>>>) -> anyhow::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        let connection = Connection::new(listener.accept().await?.0)?;
        connections.spawn(serve(connection, arrivals.clone()));
    }
}

async fn serve(
    mut connection: Connection,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
) -> anyhow::Result<()> {
    while let Some(message) = connection.read().await? {
        let at = Instant::now();
        let request = message.first_line();
        if request.contains(HANGING) {
            return connection.closed().await;
        }
        if request.starts_with("GET") {
            let length = VARIANTS.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
            );
            connection.write((head + VARIANTS).as_bytes()).await?;
            continue;
        }
        connection.write(ACCEPTED).await?;
        // The bare loop sends messages without an id.
        if let Some(id) = message.header("webhook-id") {
            let arrival = arrival(at, id, &message)?;
            arrivals.lock().unwrap_or_else(PoisonError::into_inner).push(arrival);
        }
    }
    Ok(())
}

fn arrival(at: Instant, id: &str, message: &Message) -> anyhow::Result<Arrival> {
    let sequence = message.header("x-service-sequence").context("a message has no sequence")?;
    let body = str::from_utf8(&message.body)?;
    let subject = SUBJECTS.iter().find_map(|member| body.split_once(member));
    let subject = subject.and_then(|(_, rest)| rest.split_once('"')).context("no subject")?.0;
    Ok(Arrival { at, id: id.to_owned(), subject: subject.to_owned(), sequence: sequence.parse()? })
}
