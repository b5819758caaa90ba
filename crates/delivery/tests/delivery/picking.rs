//! Messages on their way from the ledger into the broker.

use diesel_async::{AsyncConnection as _, SimpleAsyncConnection as _};
use serde_json::json;
use testkit::{Database, Namespace, eventually};

use crate::stage::{
    Replica, SOON, Stage, copy, execute, introduce, merchant, message, migrations, number, publish,
    settings,
};

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
    let ordering_keys =
        (0..FLOOD).map(|number| message(Some(&format!("{number}")), "flood", number));
    stage.append(&ordering_keys.collect::<Vec<_>>()).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_before_the_merchants_are_known() {
    let (database, namespace) = (Database::create(migrations()).await, Namespace::create());
    let sandbox = sandbox::start(&sandbox::settings::Settings::for_tests().unwrap()).unwrap();
    let pool = database.pool();
    introduce(&pool, &merchant("acme", 1, &sandbox.url(""))).await;
    let mut locker = pool.get().await.unwrap();
    locker.batch_execute("BEGIN; LOCK TABLE replica_merchants").await.unwrap();
    let own = settings(&database.url(), namespace.amqp_url(), &namespace.name, &[]);
    let replica = Replica::start(testkit::process(&database), own);
    let now = platform::Clock::system().now();
    eventually("there is room for a message", SOON, async || {
        let mut conn = pool.get().await.unwrap();
        let only = [message(None, "rma.created", 1)];
        replica.deliveries.append(&mut conn, now, &only).await.ok()
    })
    .await;
    // A look that gave up waiting is followed by another: by then a dispatcher had its time.
    let waits = async |not: i64| {
        let since = "SELECT COALESCE(max(extract(epoch FROM query_start) * 1000), 0)::int8 AS n \
                     FROM pg_stat_activity WHERE datname = current_database() \
                     AND wait_event_type = 'Lock' AND query LIKE '%replica_merchants%'";
        eventually("the replica waits", SOON, async || {
            Some(number(&pool, since).await).filter(|since| *since > 0 && *since != not)
        })
        .await
    };
    let first = waits(0).await;
    waits(first).await;
    locker.batch_execute("ROLLBACK").await.unwrap();
    eventually("it is settled", SOON, async || {
        (number(&pool, "SELECT count(*) AS n FROM deliveries").await == 0).then_some(())
    })
    .await;
    assert_eq!(number(&pool, "SELECT count(*) AS n FROM delivery_attempts").await, 1);
    replica.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_queued_before_a_pause_is_given_back() {
    let stage = Stage::new(&[]).await;
    let mut paused = merchant("acme", 2, &stage.sandbox.url(""));
    paused.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    introduce(&stage.pool, &paused).await;
    stage.knows("acme", 2).await;
    let ids = stage.append(&[message(None, "rma.created", 1)]).await;
    let queue = "UPDATE deliveries SET state = 'queued', due_at = now() + INTERVAL '5 minutes'";
    execute(&stage.pool, queue).await;
    publish(&stage, &[copy(&stage, ids[0], &[])]).await;
    eventually("it is given back", SOON, async || {
        let ready = "SELECT count(*) AS n FROM deliveries WHERE state = 'ready' AND attempts = 0";
        (stage.number(ready).await == 1).then_some(())
    })
    .await;
    assert!(stage.arrivals().await.is_empty());
    introduce(&stage.pool, &merchant("acme", 3, &stage.sandbox.url(""))).await;
    stage.settled(SOON).await;
    assert_eq!(stage.arrivals().await.len(), 1);
    stage.leave().await;
}
