//! Connection flags, shared by the commands.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use domain::access::MerchantId;
use url::Url;

use crate::api_client::{ApiClient, REQUEST_TIMEOUT};
use crate::oauth::{
    AuthUrlArgs, ClientArgs, ClientSettings, MERCHANT, OPERATOR, Role, TokenClient,
};
use crate::output::Format;
use crate::service_urls::resolve;
use crate::settings::{Setting, Settings};
use crate::usage_error;

/// Flags of the commands for operators, which call the auth service. A merchant's own client can run those
/// that its scopes allow.
#[derive(Args)]
pub(crate) struct OperatorArgs {
    /// Print the response as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    auth: AuthUrlArgs,
    /// ID of the operator's client [default: $OPERATOR_CLIENT_ID]
    #[arg(long, global = true, value_name = "ID", help_heading = "Connection")]
    operator_id: Option<String>,
    /// File with the client's secret, - for standard input
    /// [default: $OPERATOR_CLIENT_SECRET]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Connection",
        verbatim_doc_comment
    )]
    operator_secret_file: Option<PathBuf>,
    /// Use the credentials of this role
    /// [default: operator if $OPERATOR_CLIENT_ID is set, or else merchant]
    #[arg(
        long = "as",
        global = true,
        value_name = "ROLE",
        help_heading = "Connection",
        verbatim_doc_comment
    )]
    act_as: Option<Role>,
}

impl OperatorArgs {
    pub(crate) fn format(&self) -> Format {
        Format::new(self.json)
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<ApiClient> {
        let settings = Settings::load()?;
        let url = self.auth.url(&settings)?;
        let id = self.operator_id.as_deref();
        let file = self.operator_secret_file.as_deref();
        let client = match self.role(&settings) {
            Role::Operator => OPERATOR,
            // There are no flags for the credentials of a merchant here.
            Role::Merchant => ClientSettings {
                id: MERCHANT.id.without_flag(),
                secret: MERCHANT.secret.without_flag(),
            },
        };
        let tokens = TokenClient::resolve(url, &settings, client, id, file)?;
        ApiClient::log_in(&tokens, REQUEST_TIMEOUT).await
    }

    fn role(&self, settings: &Settings) -> Role {
        let has = |client: ClientSettings| settings.get(client.id.name).is_some();
        let is_operator = self.operator_id.is_some() || has(OPERATOR) || !has(MERCHANT);
        self.act_as.unwrap_or(if is_operator { Role::Operator } else { Role::Merchant })
    }
}

/// A command with [`OperatorArgs`] and subcommands. Its variant in `Command` has the help text.
#[derive(Args)]
pub(crate) struct OperatorCommand<C: Subcommand> {
    #[command(flatten)]
    pub(crate) operator: OperatorArgs,
    #[command(subcommand)]
    pub(crate) command: C,
}

/// Flags of the commands about one merchant, for the merchant or for an operator.
#[derive(Args)]
pub(crate) struct ConnectionArgs {
    /// Print the response as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Act as the operator for this merchant; without this flag
    /// the API client must belong to the merchant
    #[arg(
        long,
        global = true,
        value_name = "MERCHANT",
        help_heading = "Connection",
        verbatim_doc_comment
    )]
    merchant: Option<MerchantId>,
    /// URL of the service [default: from the settings]
    #[arg(long, global = true, value_name = "URL", help_heading = "Connection")]
    service_url: Option<Url>,
    #[command(flatten)]
    client: ClientArgs,
}

impl ConnectionArgs {
    pub(crate) fn format(&self) -> Format {
        Format::new(self.json)
    }

    /// Logs in and returns a client for `service`.
    pub(crate) async fn connect(&self, service: Setting) -> anyhow::Result<ApiClient> {
        self.connect_to(service, false).await
    }

    /// As [`Self::connect`]; for all merchants, logs in as the operator.
    pub(crate) async fn connect_to(
        &self,
        service: Setting,
        all_merchants: bool,
    ) -> anyhow::Result<ApiClient> {
        if all_merchants && self.merchant.is_some() {
            return Err(usage_error("pass either --merchant or --all-merchants"));
        }
        let settings = Settings::load()?;
        let is_operator = all_merchants || self.merchant.is_some();
        let client = if is_operator { OPERATOR } else { MERCHANT };
        let tokens = self.client.token_client(&settings, client)?;
        let url = resolve(self.service_url.as_ref(), &settings, service)?;
        let client = ApiClient::log_in(&tokens, REQUEST_TIMEOUT).await?.at(url);
        Ok(match &self.merchant {
            Some(merchant) => client.for_merchant(merchant),
            None if is_operator => client,
            None => client.with_alternative("--merchant acts as the operator for a merchant"),
        })
    }
}

/// A command with [`ConnectionArgs`] and subcommands. Its variant in `Command` has the help text.
#[derive(Args)]
pub(crate) struct MerchantCommand<C: Subcommand> {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,
    #[command(subcommand)]
    pub(crate) command: C,
}
