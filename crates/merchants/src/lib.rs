//! Each service's replica of auth's merchants, endpoints and token revocations.
//!
//! Consumers write auth's events to the service's own database, and every replica of the service
//! reads them into memory. A lookup costs no query and works while auth, the broker or the database
//! is unavailable. An older version never replaces a newer one.

mod lookup;
mod raw_event;
mod replication;
mod store;

use diesel_migrations::{EmbeddedMigrations, embed_migrations};

pub use lookup::{MerchantError, Merchants};

/// Migrations of the replica, for the database of each service that has one.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/merchants");
