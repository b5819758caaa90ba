//! Lookups of variants, from the cache and from the merchant.

use ctl::service_urls::EXCHANGE;

use crate::http;
use crate::load::send_all;
use crate::orders::{Row, table};
use crate::processes::count;
use crate::report::Report;
use crate::size::Size;
use crate::stack::{Group, Stack};

pub(crate) async fn measure(stack: &Stack, report: &mut Report, size: Size) -> anyhow::Result<()> {
    lookups(stack, "warm-up", size.messages / 10, false).await?;
    let rows = [
        lookups(stack, "cached", size.messages, true).await?,
        lookups(stack, "from the merchant", size.messages, false).await?,
    ];
    report.table(table("variants", "requests/s", "responses/s", &rows));
    Ok(())
}

/// Looks up one product always, or a new one each time.
async fn lookups(
    stack: &Stack,
    name: &'static str,
    number: usize,
    is_cached: bool,
) -> anyhow::Result<Row> {
    let address = stack.address(EXCHANGE)?;
    let merchants = stack.merchants(Group::Ten);
    let first = stack.unused(number);
    let requests =
        merchants.iter().cycle().zip(first..first + number).map(|(merchant, product)| {
            let product = if is_cached { first } else { product };
            let path = format!("/v1/variants/product-{product}");
            http::request(&address, &path, &merchant.token, None)
        });
    let requests: Vec<_> = requests.collect();
    let before = stack.processes.cpu()?;
    let responses = send_all(&address, requests, None).await?;
    let cost = stack.processes.cpu()?.since(&before, number);
    let started = responses.iter().map(|it| it.sent_at).min();
    let ended = responses.iter().map(|it| it.responded_at).max();
    let elapsed = ended.zip(started).map(|(ended, started)| ended - started).unwrap_or_default();
    let per_second = count(number) / elapsed.as_secs_f64();
    let mut times: Vec<_> = responses.iter().map(|it| it.responded_at - it.sent_at).collect();
    times.sort_unstable();
    Ok(Row { name, accepted_per_second: per_second, done_per_second: per_second, times, cost })
}
