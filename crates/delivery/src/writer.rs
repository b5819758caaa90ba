//! Appends messages in the transactions of the service.
//!
//! See docs/decisions/ordering-and-sequences.md.

use std::sync::Arc;

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::merchant::{Interface, Merchant};
use domain::message_kind::{MessageKind, MessageVersion};
use merchants::Merchants;
use platform::Timestamp;
use platform::database::{DatabaseError, wake_after_commit};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::store::{self, NewDelivery, NewMessage};

/// Appends messages to merchants. [`Deliveries`](crate::Deliveries) are one, and so is the argument of an
/// [observer](crate::SettlementObserver).
#[derive(Clone)]
pub struct MessageWriter {
    merchants: Arc<Merchants>,
    /// Wakes the dispatcher.
    wake: Arc<Notify>,
}

impl MessageWriter {
    pub(crate) fn new(merchants: &Arc<Merchants>, wake: &Arc<Notify>) -> Self {
        Self { merchants: merchants.clone(), wake: wake.clone() }
    }

    /// The merchant, as this service knows it.
    pub fn merchant(&self, id: &MerchantId) -> Option<Arc<Merchant>> {
        self.merchants.get(id)
    }

    /// The version in which messages of a kind are written for a merchant.
    pub fn message_version(&self, merchant: &MerchantId, kind: MessageKind) -> MessageVersion {
        let interface = Interface::Message(kind);
        let merchant = self.merchants.get(merchant);
        merchant.map_or_else(|| interface.default_version(), |it| it.message_version(interface))
    }

    /// Appends messages, which are delivered if and only if the caller's transaction commits. Returns
    /// their ids; merchants see them as `webhook-id`. The connection is shared, so that the caller can send
    /// the statement together with others.
    pub async fn append(
        &self,
        conn: &AsyncPgConnection,
        now: Timestamp,
        messages: &[NewMessage],
    ) -> Result<Vec<Uuid>, DatabaseError> {
        let ids = store::append(conn, now, messages).await?;
        if !ids.is_empty() {
            wake_after_commit(&self.wake);
        }
        Ok(ids)
    }

    /// Appends messages as [`Self::append`] does, with ids from [`Deliveries::new_ids`](crate::Deliveries::new_ids)
    /// in the same order.
    pub async fn append_new(
        &self,
        conn: &AsyncPgConnection,
        now: Timestamp,
        new: &[NewDelivery],
    ) -> Result<(), DatabaseError> {
        store::append_new(conn, now, new).await?;
        if !new.is_empty() {
            wake_after_commit(&self.wake);
        }
        Ok(())
    }
}
