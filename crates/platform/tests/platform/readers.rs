//! The limit on lists, searches and reports.

use std::time::Duration;

use platform::database::{Pool, Settings};
use platform::{ErrorKind, Failure as _};
use testkit::Database;

#[tokio::test(flavor = "multi_thread")]
async fn readers_leave_connections_for_all_other_work() {
    let database = Database::create(Vec::new()).await;
    let settings = Settings {
        max_connections: 4,
        max_readers: 9,
        acquire_timeout: Duration::from_secs(3),
        ..database.settings()
    };
    let pool = Pool::new("test", &settings).unwrap();
    let readers = [pool.reader(Some("a")).await.unwrap(), pool.reader(None).await.unwrap()];
    let refused = pool.reader(Some("b")).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Limited, "at most half of the connections");
    let others = [pool.get().await.unwrap(), pool.get().await.unwrap()];
    drop((readers, others));
    let own = pool.reader(Some("a")).await.unwrap();
    let refused = pool.reader(Some("a")).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Limited, "at most half of the readers");
    pool.reader(Some("b")).await.unwrap();
    drop(own);
    pool.reader(Some("a")).await.unwrap();
}
