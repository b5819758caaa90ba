//! Messages on their way from the ledger into the broker.

use diesel_async::{AsyncConnection as _, SimpleAsyncConnection as _};
use serde_json::json;
use testkit::eventually;

use crate::stage::{SOON, Stage, execute, message};

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_body_is_gone_holds_nobody_up() {
    let stage = Stage::new(&[("DELIVERY__INITIAL_WINDOW", "1")]).await;
    let mut conn = stage.pool.get().await.unwrap();
    let now = platform::Clock::system().now();
    // Written and robbed of its body in one go, before the dispatcher can see it.
    let lost = conn
        .transaction(async |conn| {
            let first = [message(Some("rma:1"), "rma.created", 1)];
            let ids = stage.replica.deliveries.append(conn, now, &first).await?;
            let rob = format!("DELETE FROM delivery_messages WHERE id = '{}'", ids[0]);
            conn.batch_execute(&rob).await?;
            Ok::<_, platform::database::DatabaseError>(ids[0])
        })
        .await
        .unwrap();
    drop(conn);
    stage.append(&(2..6).map(|n| message(None, "rma.created", n)).collect::<Vec<_>>()).await;
    eventually("the others arrive", SOON, async || {
        (stage.arrivals().await.len() == 4).then_some(())
    })
    .await;
    let put_off = format!(
        "SELECT count(*) AS n FROM deliveries \
         WHERE id = '{lost}' AND state = 'ready' AND due_at > now() + INTERVAL '1 minute'"
    );
    eventually("it is put off", SOON, async || (stage.number(&put_off).await == 1).then_some(()))
        .await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_quiet_spell_a_look_still_reads_no_more_than_it_finds() {
    const FLOOD: usize = 4_000;
    let stage = Stage::new(&[]).await;
    // From now on the planner believes that the table is empty, and nobody tells it otherwise.
    execute(&stage.pool, "ALTER TABLE deliveries SET (autovacuum_enabled = off)").await;
    for number in 0..12 {
        stage.append(&[message(None, "quiet", number)]).await;
        stage.settled(SOON).await;
        if number == 0 {
            execute(&stage.pool, "VACUUM (ANALYZE, TRUNCATE off) deliveries").await;
        }
    }
    let read = "SELECT idx_tup_fetch AS n FROM pg_stat_user_tables WHERE relname = 'deliveries'";
    let (before, flood) = (stage.number(read).await, i64::try_from(FLOOD).unwrap());
    let lanes = (0..FLOOD).map(|number| message(Some(&format!("{number}")), "flood", number));
    stage.append(&lanes.collect::<Vec<_>>()).await;
    // Without counting, which would read them all.
    eventually("everything is settled", SOON, async || {
        let any = "SELECT count(*) AS n FROM (SELECT FROM deliveries LIMIT 1) AS one";
        (stage.number(any).await == 0).then_some(())
    })
    .await;
    eventually("the reads are counted", SOON, async || {
        (stage.number(read).await - before >= flood).then_some(())
    })
    .await;
    let each = (stage.number(read).await - before) / flood;
    assert!(each < 20, "{each} rows were read for each message");
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_never_begins_wider_than_it_may_become() {
    let settings = [("DELIVERY__INITIAL_WINDOW", "8"), ("DELIVERY__LARGEST_WINDOW", "2")];
    let stage = Stage::new(&settings).await;
    stage.behave(json!([{"do": "hang", "times": "always"}])).await;
    let messages: Vec<_> = (0..8).map(|number| message(None, "rma.created", number)).collect();
    stage.append(&messages).await;
    stage.looked().await;
    let queued = "SELECT count(*) AS n FROM deliveries WHERE state = 'queued'";
    assert_eq!(stage.number(queued).await, 2);
}
