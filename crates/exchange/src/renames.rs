//! Consumes `exchange.renamed`: rma-engine knows the merchant's ordinary orders, and does not use an
//! identifier in the merchant's response that belongs to one of them.

use diesel_async::AsyncPgConnection;
use domain::exchange::ExchangeRenamed;
use messaging::{Envelope, HandleError, Handler};

use crate::error::Error;
use crate::store::orders;

pub(crate) struct Renames;

impl Handler for Renames {
    type Event = ExchangeRenamed;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ExchangeRenamed>],
    ) -> Result<(), HandleError> {
        for event in events {
            orders::rename(conn, &event.data).await.map_err(Error::from)?;
        }
        Ok(())
    }
}
