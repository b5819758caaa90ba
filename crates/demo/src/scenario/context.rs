//! The clients, the inbox and the broker console that the scenario uses.

use std::time::Duration;

use ctl::api_client::ApiClient;
use ctl::oauth::{MERCHANT, OPERATOR, TokenClient};
use ctl::output::print;
use ctl::service_urls::{EXCHANGE, ORDERS, RETURNS, WAREHOUSE, resolve};
use ctl::settings::{Setting, Settings};
use domain::access::MerchantId;
use domain::message_kind::MessageKind;
use platform::http_client;
use serde_json::Value;

use super::console::RabbitMqConsole;
use super::inbox::Inbox;
use crate::poll::poll;

const MERCHANT_ID: Setting =
    Setting { name: "MERCHANT_ID", flag: None, description: "the merchant" };
const SANDBOX_URL: Setting =
    Setting { name: "SANDBOX_URL", flag: None, description: "the sandbox URL" };

pub(super) struct DemoContext {
    pub(super) merchant: MerchantId,
    /// The services, called with the merchant's client.
    pub(super) shop: ServiceClients,
    /// The services, called with the operator's client for the merchant. The operator also reports the
    /// events of carrier and warehouse.
    pub(super) operator: ServiceClients,
    /// The auth service, called with the operator's client.
    pub(super) auth: ApiClient,
    pub(super) inbox: Inbox,
    /// Absent if the settings name no console.
    pub(super) console: Option<RabbitMqConsole>,
    timeout: Duration,
}

/// Every service, called with one client.
pub(super) struct ServiceClients {
    pub(super) orders: ApiClient,
    pub(super) returns: ApiClient,
    pub(super) exchange: ApiClient,
    pub(super) warehouse: ApiClient,
}

impl ServiceClients {
    fn new(client: &ApiClient, settings: &Settings) -> anyhow::Result<Self> {
        Ok(Self {
            orders: client.at_service(ORDERS, settings)?,
            returns: client.at_service(RETURNS, settings)?,
            exchange: client.at_service(EXCHANGE, settings)?,
            warehouse: client.at_service(WAREHOUSE, settings)?,
        })
    }
}

impl DemoContext {
    pub(super) async fn new(settings: &Settings, timeout: Duration) -> anyhow::Result<Self> {
        let merchant: MerchantId = settings.require(MERCHANT_ID)?.parse()?;
        let operator = TokenClient::from_settings(settings, OPERATOR)?;
        let auth = ApiClient::log_in(&operator, timeout).await?;
        let shop = TokenClient::from_settings(settings, MERCHANT)?;
        let shop = ApiClient::log_in(&shop, timeout).await?;
        let sandbox = resolve(None, settings, SANDBOX_URL)?;
        let http = http_client(timeout)?;
        Ok(Self {
            shop: ServiceClients::new(&shop, settings)?,
            operator: ServiceClients::new(&auth.for_merchant(&merchant), settings)?,
            auth,
            merchant,
            inbox: Inbox::open(sandbox, http.clone(), timeout).await?,
            console: RabbitMqConsole::from_settings(settings, http)?,
            timeout,
        })
    }

    /// Calls `check` until it returns a value or the timeout passes. `expected` begins the error message.
    pub(super) async fn poll<F>(&self, expected: &str, check: F) -> anyhow::Result<Value>
    where
        F: AsyncFn() -> anyhow::Result<Option<Value>>,
    {
        poll(expected, self.timeout, check).await
    }

    /// Waits for an RMA message about a return. Returns its name and body.
    pub(super) async fn rma_message(
        &mut self,
        event: &str,
        rma: &str,
    ) -> anyhow::Result<(String, Value)> {
        let body =
            self.inbox.receive(event, |body| text_at(body, "/rma_identifier") == rma).await?;
        Ok((format!("{}: {event}", MessageKind::Rma.name().to_uppercase()), body))
    }
}

/// Prints a step of the scenario and the message that the merchant received for it.
pub(super) fn print_step(step: &str, message: &str) -> anyhow::Result<()> {
    Ok(print(&format!("{step:<58} {message}\n"))?)
}

/// The text at a JSON pointer, or an empty text.
pub(super) fn text_at(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
