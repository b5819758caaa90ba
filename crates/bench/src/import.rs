//! A hundred orders a message, as `backhaul orders import` sends them, beside one: on the many
//! connections of a busy gateway, and on the few of an import. And the hundred once more, as when an
//! import is repeated: nothing of it is news.

use crate::orders::Intake;
use crate::report::Report;
use crate::wire::drive;

const CONNECTIONS: usize = 32;
/// As many as an import has under way.
const IMPORT_CONNECTIONS: usize = 4;
const ROUNDS: usize = 3;
/// Orders in one turn of either.
const TURN: usize = 20_000;

pub(crate) async fn run() -> anyhow::Result<Report> {
    let mut intake = Intake::start().await?;
    // Once before it counts, for connections, statements and caches.
    let warm_up = intake.requests(TURN, 1);
    seconds(&mut intake, CONNECTIONS, warm_up).await?;
    let (mut one, mut alike, mut hundred, mut again, mut orders) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for _ in 0..ROUNDS {
        let singles = intake.requests(TURN, 1);
        one += seconds(&mut intake, CONNECTIONS, singles).await?;
        let singles = intake.requests(TURN, 1);
        alike += seconds(&mut intake, IMPORT_CONNECTIONS, singles).await?;
        let hundreds = intake.requests(TURN / 100, 100);
        hundred += seconds(&mut intake, IMPORT_CONNECTIONS, hundreds.clone()).await?;
        again += seconds(&mut intake, IMPORT_CONNECTIONS, hundreds).await?;
        orders += f64::from(u32::try_from(TURN)?);
    }
    let mut report = Report::default();
    report.figure("one.per_second", orders / one, "orders/s");
    report.figure("one.per_second_on_4", orders / alike, "orders/s");
    report.figure("hundred.per_second", orders / hundred, "orders/s");
    report.figure("hundred.per_second_again", orders / again, "orders/s");
    report.at_least("rate_ratio", one / hundred, 4.0, "hundred/one");
    // What an import gains by its messages alone: as many connections either way.
    report.figure("rate_ratio_on_4", alike / hundred, "hundred/one");
    Ok(report)
}

/// How long these messages take.
async fn seconds(
    intake: &mut Intake,
    connections: usize,
    requests: Vec<Vec<u8>>,
) -> anyhow::Result<f64> {
    let round = drive(&intake.address, connections, requests).await?;
    intake.forget_events().await?;
    Ok(round.took().as_secs_f64())
}
