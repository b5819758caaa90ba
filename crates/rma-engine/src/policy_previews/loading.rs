//! The orders of stored returns, in parts that are bounded in bytes.
//!
//! Decisions about a return need its orders, but only the lines with its units. Orders are parsed in parts outside of the
//! HTTP workers, and only these lines stay in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use domain::access::MerchantId;
use domain::returns::Rma;
use platform::MemoryPermit;
use platform::database::{DatabaseError, Pool, parts_by_bytes};

use super::in_progress::{Place, PreviewInProgress, Previews};
use crate::error::Error;
use crate::orders::units::OrderUnits;
use crate::store::orders::{OrderSize, Projected, RowLock, UnparsedOrder, find_unparsed, sizes};

/// The returned lines of each order.
type ReturnedLines = BTreeMap<String, BTreeSet<String>>;

/// The orders of some returns, with the returned lines.
pub(crate) struct LoadedOrders {
    pub(crate) units: OrderUnits,
    _memory: Arc<MemoryPermit>,
}

/// The stored bytes of the orders of these returns.
pub(crate) async fn order_sizes(
    pool: &Pool,
    merchant: &MerchantId,
    returns: &[Rma],
) -> Result<HashMap<String, usize>, Error> {
    let lines = returned_lines(returns);
    let orders: Vec<_> = lines.keys().map(String::as_str).collect();
    let mut conn = pool.reader(Some(merchant.as_str())).await?;
    let found = sizes(&mut conn, merchant, &orders).await?;
    Ok(found.into_iter().map(|it| (it.identifier.clone(), it.bytes())).collect())
}

/// Splits returns into parts whose orders are in memory at the same time. A part has one return, or orders of a few
/// megabytes.
pub(crate) fn parts<'r>(returns: &'r [Rma], sizes: &HashMap<String, usize>) -> Vec<&'r [Rma]> {
    parts_by_bytes(returns, |rma| bytes_of(&orders_of(rma), sizes))
}

/// Loads the orders of a part of the returns.
pub(crate) async fn load(
    pool: &Pool,
    previews: &Previews,
    preview: &PreviewInProgress,
    merchant: &MerchantId,
    returns: &[Rma],
    sizes: &HashMap<String, usize>,
) -> Result<LoadedOrders, Error> {
    let lines = Arc::new(returned_lines(returns));
    let orders: Vec<_> = lines.keys().map(String::as_str).collect();
    let all = orders.iter().copied().collect();
    let memory = Arc::new(previews.memory.acquire(bytes_of(&all, sizes)).await);
    let mut units = OrderUnits::default();
    let size = |order: &&str| sizes.get(*order).copied().unwrap_or_default();
    for part in parts_by_bytes(&orders, size) {
        let keys = part.iter().map(|order| (merchant.as_str(), *order)).collect();
        // A connection for each part, so that other readers get theirs between parts.
        let conn = pool.reader(Some(merchant.as_str())).await?;
        let unparsed = find_unparsed(&conn, &keys, RowLock::None).await?;
        drop(conn);
        let lines = Arc::clone(&lines);
        let memory = Arc::clone(&memory);
        let parse = move |place: &Place| {
            let _memory = memory;
            parse_lines(unparsed, &lines, place)
        };
        let parsed = preview.run(parse).await??;
        units.orders.extend(parsed.into_iter().map(|it| (it.order.identifier.clone(), it)));
    }
    Ok(LoadedOrders { units, _memory: memory })
}

/// Parses orders, and keeps the returned lines.
fn parse_lines(
    unparsed: Vec<UnparsedOrder>,
    lines: &ReturnedLines,
    place: &Place,
) -> Result<Vec<Projected>, DatabaseError> {
    let parse = |unparsed: UnparsedOrder| {
        let (_, mut projected) = unparsed.parse()?;
        let wanted = lines.get(&projected.order.identifier);
        let items = &mut projected.order.items;
        items.retain(|line| wanted.is_some_and(|wanted| wanted.contains(&line.identifier)));
        items.shrink_to_fit();
        Ok(projected)
    };
    // Nobody waits for the result of an abandoned preview.
    unparsed.into_iter().take_while(|_| !place.is_abandoned()).map(parse).collect()
}

fn returned_lines(returns: &[Rma]) -> ReturnedLines {
    let mut lines = ReturnedLines::new();
    for unit in returns.iter().flat_map(|rma| &rma.units) {
        let of_order = lines.entry(unit.id.order_identifier.clone()).or_default();
        of_order.insert(unit.id.order_line_item_identifier.clone());
    }
    lines
}

fn orders_of(rma: &Rma) -> BTreeSet<&str> {
    rma.units.iter().map(|unit| unit.id.order_identifier.as_str()).collect()
}

fn bytes_of(orders: &BTreeSet<&str>, sizes: &HashMap<String, usize>) -> usize {
    orders.iter().filter_map(|order| sizes.get(*order)).sum()
}

impl OrderSize {
    fn bytes(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or_default()
    }
}
