//! Messages on their way from the ledger into the broker.

use diesel_async::{AsyncConnection as _, SimpleAsyncConnection as _};
use testkit::eventually;

use crate::stage::{SOON, Stage, message};

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
