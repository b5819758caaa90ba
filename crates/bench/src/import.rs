//! Messages of a hundred orders, as `backhaul orders import` sends them, compared with messages of one order,
//! over many connections and over the few of an import. The messages of a hundred orders are also repeated,
//! which changes nothing.

use crate::intake_process::Intake;
use crate::raw_http::drive;
use crate::report::Report;

const CONNECTIONS: usize = 32;
/// The number of messages that an import has in flight.
const IMPORT_CONNECTIONS: usize = 4;
const ROUNDS: usize = 3;
/// Orders per round.
const ROUND_ORDERS: usize = 20_000;

pub(crate) async fn run() -> anyhow::Result<Report> {
    let mut intake = Intake::start().await?;
    // The warm-up fills connections, prepared statements and caches.
    let warm_up = intake.requests(ROUND_ORDERS, 1);
    seconds(&mut intake, CONNECTIONS, warm_up).await?;
    let (mut one, mut one_on_4, mut hundred, mut repeated, mut orders) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for _ in 0..ROUNDS {
        let singles = intake.requests(ROUND_ORDERS, 1);
        one += seconds(&mut intake, CONNECTIONS, singles).await?;
        let singles = intake.requests(ROUND_ORDERS, 1);
        one_on_4 += seconds(&mut intake, IMPORT_CONNECTIONS, singles).await?;
        let hundreds = intake.requests(ROUND_ORDERS / 100, 100);
        hundred += seconds(&mut intake, IMPORT_CONNECTIONS, hundreds.clone()).await?;
        repeated += seconds(&mut intake, IMPORT_CONNECTIONS, hundreds).await?;
        orders += f64::from(u32::try_from(ROUND_ORDERS)?);
    }
    let mut report = Report::default();
    report.figure("one.per_second", orders / one, "orders/s");
    report.figure("one.per_second_on_4", orders / one_on_4, "orders/s");
    report.figure("hundred.per_second", orders / hundred, "orders/s");
    report.figure("hundred.per_second_again", orders / repeated, "orders/s");
    report.at_least("rate_ratio", one / hundred, 4.0, "hundred/one");
    // The gain with the same number of connections.
    report.figure("rate_ratio_on_4", one_on_4 / hundred, "hundred/one");
    Ok(report)
}

/// The time to send the requests.
async fn seconds(
    intake: &mut Intake,
    connections: usize,
    requests: Vec<Vec<u8>>,
) -> anyhow::Result<f64> {
    let round = drive(&intake.address, connections, requests).await?;
    intake.delete_events().await?;
    Ok(round.elapsed().as_secs_f64())
}
