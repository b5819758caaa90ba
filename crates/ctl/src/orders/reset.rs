//! `backhaul orders reset`.

use clap::Args;
use serde_json::{Value, json};

use crate::connection::ConnectionArgs;
use crate::output::{line_at, time_at};
use crate::service_urls::ORDERS;

/// An order that got stuck: its snapshot has a time in the future, so that correct snapshots are stale.
#[derive(Args)]
pub(crate) struct Reset {
    #[command(flatten)]
    connection: ConnectionArgs,
    /// Identifier of the order
    order: String,
}

impl Reset {
    /// Resets the order, as the operator.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let client = self.connection.connect(ORDERS).await?;
        let reset = client.post(&["v1", "orders", &self.order, "reset"], &json!({})).await?;
        self.connection.format().print(&reset, describe)
    }
}

fn describe(reset: &Value) -> String {
    format!(
        "order {} is reset: its updated_at was {} and is now {}\nThe next snapshot that the merchant \
         publishes is stored.\n",
        line_at(reset, "/identifier"),
        time_at(reset, "/previous_updated_at"),
        time_at(reset, "/updated_at"),
    )
}
