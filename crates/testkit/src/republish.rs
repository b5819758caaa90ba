//! Publishing of kept events, as `POST /v1/events/republish` requests it.

use std::time::Duration;

use diesel_async::SimpleAsyncConnection as _;
use platform::database::Pool;

use crate::connection::count;
use crate::eventually;

const TIMEOUT: Duration = Duration::from_secs(300);

/// Requests that all kept events of a service are published again. Its relay does the work.
pub async fn start_republish(pool: &Pool) {
    let request = "INSERT INTO event_republishes (id, requested_by, since, until, types, state, total, \
                       done, last_published_at, last_sequence, created_at) \
                   SELECT gen_random_uuid(), 'test', since, clock_timestamp(), '{}', 'running', \
                       (SELECT count(*) FROM published_events), 0, since, 0, clock_timestamp() \
                   FROM (SELECT now() - INTERVAL '1 day' AS since) AS period";
    pool.get().await.unwrap().batch_execute(request).await.unwrap();
}

/// Waits until no request is running.
pub async fn wait_for_republish(pool: &Pool) {
    eventually("the events are published again", TIMEOUT, async || {
        let running = "SELECT count(*) FROM event_republishes WHERE state = 'running'";
        (count(&mut *pool.get().await.ok()?, running).await == 0).then_some(())
    })
    .await;
}

/// Publishes all kept events of a service again.
pub async fn republish(pool: &Pool) {
    start_republish(pool).await;
    wait_for_republish(pool).await;
}
