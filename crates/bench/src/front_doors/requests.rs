//! The requests of the front doors, each of which causes one message.

use anyhow::Context as _;
use ctl::service_urls::{ORDERS, RETURNS, WAREHOUSE};
use domain::order::sample::{Orders, message};
use domain::order::{Order, OrderStatus};
use domain::warehouse::sample::{inbound_asn, receipt};
use platform::{Clock, Timestamp};
use serde_json::{Value, json};

use crate::http;
use crate::load::{Response, send_all};
use crate::poll::poll;
use crate::stack::merchants::Merchant;
use crate::stack::{Group, Stack, TIMEOUT};

/// ASNs of each merchant. The service stores one request per ASN at a time.
const ASNS: usize = 200;
/// Units that each ASN announces.
const ANNOUNCED: usize = 100_000;
const ORDERS_PER_REQUEST: usize = 100;
/// Reports of a carrier about a parcel, in this order.
const CARRIER_EVENTS: [&str; 4] = ["label", "accepted", "in_transit", "delivered"];

/// A request and the message that it causes.
pub(super) struct Request {
    pub(super) bytes: Vec<u8>,
    /// `None` if the message goes to the merchant that hangs.
    pub(super) expected: Option<Expected>,
}

pub(super) struct Expected {
    /// The return or the unit. `None` for the return that the response names.
    pub(super) subject: Option<String>,
    pub(super) sequence: i64,
}

impl Request {
    fn new(merchant: &Merchant, bytes: Vec<u8>, subject: Option<String>, sequence: i64) -> Self {
        let expected = (!merchant.hangs()).then_some(Expected { subject, sequence });
        Self { bytes, expected }
    }
}

/// Announces the units of receipts, for all merchants.
pub(crate) async fn announce_units(stack: &Stack) -> anyhow::Result<()> {
    let address = stack.address(WAREHOUSE)?;
    let mut requests = Vec::new();
    let merchants = stack.merchants(Group::Ten).into_iter();
    for merchant in merchants.chain(stack.merchants(Group::OneHangs).pop()) {
        for number in 0..ASNS {
            let mut asn = inbound_asn(&asn_number(number), 1);
            // Without a return, which would get an event too.
            let kind = asn.pointer_mut("/cartons/0/reference/type").context("no reference")?;
            *kind = json!("ForwardOrder");
            let quantity = asn.pointer_mut("/cartons/0/details/0/quantity").context("no line")?;
            *quantity = json!(ANNOUNCED);
            requests.push(post(&address, "/v1/inbound_asns", merchant, &asn));
        }
    }
    send_all(&address, requests, None).await.map(drop)
}

fn asn_number(number: usize) -> String {
    format!("IN-{number}")
}

/// Receipts of one new unit each.
pub(super) fn receipts(
    stack: &Stack,
    merchants: &[&Merchant],
    number: usize,
) -> anyhow::Result<Vec<Request>> {
    let address = stack.address(WAREHOUSE)?;
    let first = stack.unused(number);
    let requests = merchants.iter().cycle().zip(first..first + number).map(|(merchant, number)| {
        let unit = format!("unit-{number}");
        let mut body = receipt(&asn_number(number / merchants.len() % ASNS), 1);
        let fields = body.as_object_mut().context("a receipt is no object")?;
        fields.insert("unit_identifier".to_owned(), json!(unit));
        let bytes = post(&address, "/v1/receipts", merchant, &body);
        Ok(Request::new(merchant, bytes, Some(unit), 1))
    });
    requests.collect()
}

/// Returns of the first unit of a new order each.
pub(super) async fn returns(
    stack: &Stack,
    merchants: &[&Merchant],
    number: usize,
) -> anyhow::Result<Vec<Request>> {
    let address = stack.address(RETURNS)?;
    let orders = publish_orders(stack, merchants, number).await?;
    let requests = merchants.iter().cycle().zip(&orders).map(|(merchant, order)| {
        let line = order.items.first().map(|line| line.identifier.as_str());
        let body = json!({
            "return_method": "mail-back",
            "units": [{
                "order_identifier": order.identifier, "order_line_item_identifier": line,
                "unit": 1, "return_reason": "CHANGED_MIND", "resolution": "refund",
            }],
        });
        let bytes = post(&address, "/v1/returns", merchant, &body);
        Request::new(merchant, bytes, None, 1)
    });
    Ok(requests.collect())
}

/// Reports about the parcels of new returns: first one about each of them, then the next one.
pub(super) async fn carrier_events(
    stack: &Stack,
    merchants: &[&Merchant],
    number: usize,
) -> anyhow::Result<Vec<Request>> {
    let address = stack.address(RETURNS)?;
    let events = CARRIER_EVENTS.len();
    let starts = returns(stack, merchants, number.div_ceil(events)).await?;
    let starts = starts.into_iter().map(|request| request.bytes).collect();
    let started = send_all(&address, starts, None).await?;
    let started = started.iter().map(named_return).collect::<anyhow::Result<Vec<_>>>()?;
    stack.await_settled("rma-engine").await?;
    stack.receiver.take();
    let mut requests = Vec::new();
    for (event, sequence) in CARRIER_EVENTS.iter().zip(2..) {
        for (merchant, name) in merchants.iter().cycle().zip(&started) {
            let body = json!({
                "event_identifier": format!("{event}-{name}"), "event": event,
                "rma_identifier": name, "tracking_number": format!("1Z-{name}"),
            });
            let bytes = post(&address, "/v1/carrier_events", merchant, &body);
            requests.push(Request::new(merchant, bytes, Some(name.clone()), sequence));
        }
    }
    Ok(requests)
}

/// The return that a response names.
pub(super) fn named_return(response: &Response) -> anyhow::Result<String> {
    let body: Value = serde_json::from_slice(&response.body)?;
    let name = body.get("rma_identifier").and_then(Value::as_str);
    Ok(name.context("a response names no return")?.to_owned())
}

/// Publishes new shipped orders, to the merchants in turn, and waits until rma-engine has them.
async fn publish_orders(
    stack: &Stack,
    merchants: &[&Merchant],
    number: usize,
) -> anyhow::Result<Vec<Order>> {
    let now = Clock::system().now();
    let all = Orders::new(1, now);
    let first = u64::try_from(stack.unused(number))?;
    let orders: Vec<_> = (first..).take(number).map(|index| shipped(all.at(index), now)).collect();
    let address = stack.address(ORDERS)?;
    let mut requests = Vec::new();
    for (position, merchant) in merchants.iter().enumerate() {
        let own: Vec<_> = orders.iter().skip(position).step_by(merchants.len()).collect();
        for part in own.chunks(ORDERS_PER_REQUEST) {
            let body = message(part.iter().copied());
            requests.push(post(&address, "/returns_portal_orders", merchant, &body));
        }
    }
    let expected = projected_orders(stack).await? + i64::try_from(number)?;
    send_all(&address, requests, None).await?;
    await_projection(stack, expected).await?;
    Ok(orders)
}

/// The number of orders in the projection of rma-engine.
pub(crate) async fn projected_orders(stack: &Stack) -> anyhow::Result<i64> {
    stack.database("rma-engine").await?.value("SELECT count(*) FROM orders").await
}

pub(crate) async fn await_projection(stack: &Stack, expected: i64) -> anyhow::Result<()> {
    let postgres = stack.database("rma-engine").await?;
    poll("rma-engine has the orders", TIMEOUT, async || {
        let known: i64 = postgres.value("SELECT count(*) FROM orders").await?;
        Ok((known >= expected).then_some(()))
    })
    .await
}

/// The order with all units shipped now.
fn shipped(mut order: Order, now: Timestamp) -> Order {
    order.status = OrderStatus::Shipped;
    order.refunds.clear();
    for line in &mut order.items {
        line.quantity_canceled = 0;
        line.quantity_shipped = line.quantity;
        line.shipped_date = Some(now);
        line.tags.clear();
    }
    order
}

pub(crate) fn post(address: &str, path: &str, merchant: &Merchant, body: &Value) -> Vec<u8> {
    http::request(address, path, &merchant.token, Some(&body.to_string()))
}
