//! The management API of RabbitMQ.

use anyhow::Context as _;
use ctl::settings::Settings;
use reqwest::Client;
use serde_json::{Value, json};
use url::Url;

/// High enough to include the newest message, which comes last.
const MAX_MESSAGES: u32 = 10_000;

pub(super) struct RabbitMqConsole {
    url: Url,
    /// Percent-encoded.
    virtual_host: String,
    user: String,
    password: String,
    /// The prefix of queue names, or an empty text.
    namespace: String,
    http: Client,
}

impl RabbitMqConsole {
    /// The console of the settings, if they name one.
    pub(super) fn from_settings(settings: &Settings, http: Client) -> anyhow::Result<Option<Self>> {
        let names = ["RABBITMQ_CONSOLE_URL", "RABBITMQ_USER", "RABBITMQ_PASSWORD"];
        let [Some(url), Some(user), Some(password)] = names.map(|name| settings.get(name)) else {
            return Ok(None);
        };
        let amqp_url = settings.get("AMQP_URL").map(Url::parse).transpose();
        Ok(Some(Self {
            url: url.parse().context("RABBITMQ_CONSOLE_URL is not a URL")?,
            virtual_host: virtual_host(amqp_url.context("AMQP_URL is not a URL")?.as_ref()),
            user: user.to_owned(),
            password: password.to_owned(),
            namespace: settings.get("BROKER_NAMESPACE").unwrap_or_default().to_owned(),
            http,
        }))
    }

    /// The name of a queue in the broker.
    pub(super) fn queue_name(&self, queue: &str) -> String {
        match self.namespace.as_str() {
            "" => queue.to_owned(),
            namespace => format!("{namespace}.{queue}"),
        }
    }

    /// The messages of a queue, which stay in the queue.
    pub(super) async fn messages(&self, queue: &str) -> anyhow::Result<Vec<Value>> {
        let request = self.http.post(self.messages_url(&self.queue_name(queue)));
        // The headers identify a message, so one byte of each body is enough.
        let body = json!({
            "count": MAX_MESSAGES, "ackmode": "ack_requeue_true", "encoding": "auto", "truncate": 1,
        });
        let request = request.basic_auth(&self.user, Some(&self.password)).json(&body);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }

    fn messages_url(&self, queue: &str) -> Url {
        let mut url = self.url.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/api/queues/{}/{queue}/get", self.virtual_host));
        url
    }
}

/// The virtual host of an AMQP URL; the default is `/`.
fn virtual_host(amqp_url: Option<&Url>) -> String {
    let name = amqp_url.and_then(|url| url.path().strip_prefix('/')).unwrap_or_default();
    if name.is_empty() { "%2F".to_owned() } else { name.replace('/', "%2F") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn queues_are_read_from_the_virtual_host_of_the_services() {
        let messages_url = |amqp_url: Option<&str>| {
            let amqp_url = amqp_url.map(|url| url.parse().unwrap());
            let console = RabbitMqConsole {
                url: "http://h:15672/rabbit/".parse().unwrap(),
                virtual_host: virtual_host(amqp_url.as_ref()),
                user: String::new(),
                password: String::new(),
                namespace: String::new(),
                http: platform::http_client(Duration::from_secs(1)).unwrap(),
            };
            console.messages_url("q.dead").to_string()
        };
        let default = "http://h:15672/rabbit/api/queues/%2F/q.dead/get";
        for amqp_url in [None, Some("amqp://h"), Some("amqp://h/"), Some("amqp://h//")] {
            assert_eq!(messages_url(amqp_url), default, "{amqp_url:?}");
        }
        assert_eq!(messages_url(Some("amqp://h/%2F")), default);
        assert_eq!(
            messages_url(Some("amqp://h/a%2Fb")),
            "http://h:15672/rabbit/api/queues/a%2Fb/q.dead/get"
        );
    }
}
