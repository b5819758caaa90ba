//! Whoever asks a service about one merchant: the merchant itself, or the operator in its name.

use std::path::PathBuf;

use clap::Args;
use domain::access::MerchantId;
use url::Url;

use crate::operator::{DEADLINE, Operator};
use crate::output::Format;
use crate::settings::{Setting, Settings};
use crate::tokens::{self, Credentials, MERCHANT, OPERATOR, address};

/// What every command about one merchant's things understands.
#[derive(Args)]
pub(crate) struct Party {
    /// Print the service's answer as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Act as the operator, for this merchant; without it, as the merchant whose client it is
    #[arg(long, global = true, value_name = "MERCHANT", help_heading = "Connection")]
    merchant: Option<MerchantId>,
    /// Address of the service [default: that of the stack]
    #[arg(long, global = true, value_name = "URL", help_heading = "Connection")]
    service_url: Option<Url>,
    #[command(flatten)]
    place: tokens::Place,
    /// The API client [default: $CLIENT_ID, or $OPERATOR_CLIENT_ID with --merchant]
    #[arg(long, global = true, value_name = "ID", help_heading = "Connection")]
    client_id: Option<String>,
    /// File with its secret, - for standard input [default: the same with _SECRET]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    client_secret_file: Option<PathBuf>,
}

impl Party {
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { Format::Text }
    }

    /// The party at the service whose address is `service`, unless a flag says another.
    pub(crate) async fn connect(&self, service: Setting) -> anyhow::Result<Operator> {
        let settings = Settings::load()?;
        let role = if self.merchant.is_some() { OPERATOR } else { MERCHANT };
        let (id, file) = (self.client_id.as_deref(), self.client_secret_file.as_deref());
        let credentials = Credentials::of_client(&settings, role, id, file)?;
        let url = address(self.service_url.as_ref(), &settings, service)?;
        let auth = self.place.url(&settings)?;
        Ok(Operator::log_in(auth, credentials, DEADLINE)
            .await?
            .at(url)
            .naming(self.merchant.clone()))
    }
}
