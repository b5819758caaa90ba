//! The pool of PostgreSQL connections and the migrations.
//!
//! Every wait for the database has a bound. A database that is down or slow is
//! [`ErrorKind::Unavailable`](crate::ErrorKind::Unavailable): callers get 503 and consumers try again.
//!
//! See docs/decisions/queries.md.

mod connect;
mod dedicated;
mod error;
mod index_range;
mod leader;
mod migrations;
mod name_lock;
mod opener;
mod page_bytes;
mod pool;
mod prepared;
mod retention;
mod rows;
mod settings;
mod sql;
mod transaction;

pub(crate) use error::deadlocked;
pub use error::{DatabaseError, lock_timed_out, timed_out};
pub use index_range::IndexRange;
pub use leader::{LeaderTask, PollOutcome};
pub use migrations::{migrate, pending};
pub use name_lock::NameLock;
pub use page_bytes::{is_truncated, limit_page_bytes, parts_by_bytes};
pub use pool::{Connection, Pool};
pub use prepared::{Prepared, prepared};
pub use retention::{agreed_time, delete_older_than, retention_time};
pub use rows::ColumnType;
pub use settings::Settings;
pub use sql::{Each, Parameters, SqlStatement, column, sql};
pub use transaction::{is_in_transaction, run_after_commit, transaction, wake_after_commit};
