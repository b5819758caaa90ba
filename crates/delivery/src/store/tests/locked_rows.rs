//! Rows that another transaction has locked stop no work about other rows.

use super::*;

/// Locks a delivery until the connection rolls back.
async fn lock(conn: &mut AsyncPgConnection, id: Uuid) {
    let lock = format!("BEGIN; SELECT FROM deliveries WHERE id = '{id}' FOR UPDATE");
    conn.batch_execute(&lock).await.unwrap();
}

#[tokio::test]
async fn a_claim_leaves_out_a_locked_delivery_and_its_endpoint_is_checked_again() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut holder, mut conn) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let locked = append(&mut conn, now, None).await;
    let rivals = [NewMessage { merchant: "rival".parse().unwrap(), ..message(None) }];
    let rival = super::super::append(&conn, now, &rivals).await.unwrap()[0];
    let endpoints = ["acme", "rival"].map(|it| claimable(it, Timestamp::UNIX_EPOCH, 8));
    lock(&mut holder, locked).await;
    let claims = claim_from(&mut conn, now, &endpoints).await;
    assert_eq!(claims.claimed.iter().map(|(it, _)| it.id).collect::<Vec<_>>(), [rival]);
    assert_eq!(claims.to_check_again.into_iter().collect::<Vec<_>>(), [endpoint("acme")]);
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(claim(&mut conn, now).await, [locked]);
}

#[tokio::test]
async fn a_locked_delivery_without_a_message_is_postponed_later() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut holder, mut conn) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let lost = append(&mut conn, now, None).await;
    conn.batch_execute("DELETE FROM delivery_messages").await.unwrap();
    lock(&mut holder, lost).await;
    let endpoints = [claimable("acme", Timestamp::UNIX_EPOCH, 8)];
    let claims = claim_from(&mut conn, now, &endpoints).await;
    assert!(claims.to_check_again.contains(&endpoint("acme")));
    holder.batch_execute("ROLLBACK").await.unwrap();
    let claims = claim_from(&mut conn, now, &endpoints).await;
    assert_eq!((claims.found.len(), claims.to_check_again.len()), (1, 0));
    assert!(claim_from(&mut conn, now, &endpoints).await.found.is_empty());
}

#[tokio::test]
async fn a_locked_delivery_behind_another_is_blocked_later() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut holder, mut conn) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let mut ids = Vec::new();
    for key in ["rma:1", "rma:1", "rma:2", "rma:2"] {
        ids.push(append(&mut conn, now, Some(key)).await);
    }
    lock(&mut holder, ids[1]).await;
    let endpoints = [claimable("acme", Timestamp::UNIX_EPOCH, 8)];
    let claims = claim_from(&mut conn, now, &endpoints).await;
    assert_eq!(claims.claimed.len(), 2);
    assert_eq!(claims.blocked, 1);
    assert!(claims.to_check_again.contains(&endpoint("acme")));
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(claim_from(&mut conn, now, &endpoints).await.blocked, 1);
}

#[tokio::test]
async fn a_lease_expires_while_another_delivery_is_locked() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut holder, mut conn) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let ids = [append(&mut conn, now, None).await, append(&mut conn, now, None).await];
    assert_eq!(claim(&mut conn, now).await.len(), 2);
    lock(&mut holder, ids[0]).await;
    assert_eq!(super::super::expire_leases(&mut conn, now + LEASE, &ids).await.unwrap(), 1);
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(super::super::expire_leases(&mut conn, now + LEASE, &ids).await.unwrap(), 1);
}

#[tokio::test]
async fn ordering_keys_are_repaired_while_another_delivery_is_locked() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut holder, mut conn) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let locked = append(&mut conn, now, Some("rma:1")).await;
    append(&mut conn, now, Some("rma:2")).await;
    conn.batch_execute("UPDATE deliveries SET state = 'blocked'").await.unwrap();
    lock(&mut holder, locked).await;
    for expected in [1, 0] {
        let mut cursor = BlockedCursor::default();
        let unblocked = super::super::unblock_first_deliveries(&mut conn, now, &mut cursor).await;
        assert_eq!(unblocked.unwrap(), expected);
    }
    holder.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(
        super::super::unblock_first_deliveries(&mut conn, now, &mut BlockedCursor::default())
            .await
            .unwrap(),
        1
    );
}
