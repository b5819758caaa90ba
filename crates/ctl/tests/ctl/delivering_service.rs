//! A service that only delivers messages.

use actix_web::web;
use delivery::{Deliveries, NewMessage};
use diesel_migrations::EmbeddedMigrations;
use domain::message_kind::{MessageKind, MessageVersion};
use merchants::Merchants;
use messaging::{Backlog, Broker, Topology};
use platform::database::Pool;
use platform::identity::{self, Verifier};
use platform::sealing::{self, Sealer};
use platform::{Clock, Process, Service};
use serde::Deserialize;
use std::sync::Arc;
use utoipa_actix_web::service_config::ServiceConfig;

/// Has the name of a service whose queues exist.
pub(crate) struct DeliveringService {
    pool: Pool,
    deliveries: Deliveries,
    backlog: Backlog,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    broker: messaging::Settings,
    delivery: delivery::Settings,
    identity: identity::Settings,
    sealing: sealing::Settings,
}

impl Service for DeliveringService {
    const NAME: &'static str = "rma-engine";
    const ABOUT: &'static str = "Delivers messages";
    const DEFAULTS: &'static [&'static str] = &[messaging::DEFAULTS, delivery::DEFAULTS];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        vec![messaging::MIGRATIONS, merchants::MIGRATIONS, delivery::MIGRATIONS]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        delivery::routes(config);
        messaging::routes(config);
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.deliveries.clone()));
        app.app_data(web::Data::new(self.backlog.clone()));
        app.app_data(web::Data::new((self.pool.clone(), self.deliveries.clone())));
        app.route("/messages", web::post().to(append_message));
    }

    fn start(process: &Process, own: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Settings { broker, delivery, identity, sealing } = own;
        let verifier = Arc::new(Verifier::new(&identity.issuer, process.clock.clone()));
        verifier.start_refreshing_keys(&identity, &process.tasks)?;
        let kinds = [MessageKind::Rma];
        let topology = Topology::of_service(Self::NAME, &kinds, &broker.namespace);
        let broker = Broker::start(Self::NAME, process, broker, topology);
        let outbox = broker.start_relay(Self::NAME, process);
        let merchants = Merchants::start(Self::NAME, process, &broker, &verifier);
        let sealer = Arc::new(Sealer::new(&sealing)?);
        let backlog = Backlog::new(Self::NAME, process, &broker, &kinds);
        let deliveries =
            Deliveries::start(&outbox, process, &broker, &merchants, &sealer, &kinds, delivery)?;
        Ok((Self { pool: process.pool.clone(), deliveries, backlog }, verifier))
    }
}

/// Appends a message to acme, as a service does in a transaction.
async fn append_message(
    engine: web::Data<(Pool, Deliveries)>,
    body: String,
) -> actix_web::Result<web::Json<String>> {
    let (pool, deliveries) = engine.get_ref();
    let message = NewMessage {
        merchant: "acme".parse().unwrap(),
        kind: MessageKind::Rma,
        version: MessageVersion(3),
        ordering_key: Some("rma:1".to_owned()),
        event: "rma.created".to_owned(),
        body: body.into(),
    };
    let conn = pool.get().await.unwrap();
    let ids = deliveries.append(&conn, Clock::system().now(), &[message]).await.unwrap();
    Ok(web::Json(ids.first().unwrap().to_string()))
}
