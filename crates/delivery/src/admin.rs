//! The operators' handlers of every service that delivers: what was sent, what came of it,
//! sending it again, and trying an endpoint. A merchant's token reads that merchant's own.

pub(crate) mod check;
pub(crate) mod list;
pub(crate) mod replays;
pub(crate) mod report;
mod sample;

use chrono::{DateTime, Datelike as _, Utc};
use domain::access::{MerchantId, Scope};
use domain::message_kind::MessageKind;
use platform::identity::{Access, Caller};
use platform::{ErrorKind, Failure};
use utoipa_actix_web::service_config::ServiceConfig;
use uuid::Uuid;

use crate::ledger::Filter;

/// The URL table, to be taken into a service's own. The service must share its
/// [`crate::Deliveries`], see `Service::share`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(list::list_deliveries)
        .service(list::show_delivery)
        .service(replays::replay_delivery)
        .service(replays::start_replay)
        .service(replays::show_replay)
        .service(report::report_deliveries)
        .service(check::check_endpoints);
}

/// Why an operator does not get what it asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("there is no delivery {0}")]
    NoDelivery(Uuid),
    #[error("there is no merchant {0}")]
    NoMerchant(String),
    #[error("there is no replay {0}")]
    NoReplay(Uuid),
    #[error("delivery {0} is under way already")]
    UnderWay(Uuid),
    #[error(
        "a newer message of its ordering_key has overtaken delivery {0}: replay it with force, or not"
    )]
    Superseded(Uuid),
    #[error("{0}")]
    Malformed(String),
}

impl Failure for Refused {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoDelivery(_) | Self::NoReplay(_) | Self::NoMerchant(_) => ErrorKind::Missing,
            Self::UnderWay(_) | Self::Superseded(_) => ErrorKind::Conflict,
            Self::Malformed(_) => ErrorKind::Malformed,
        }
    }
}

/// Refuses what no delivery can be, before it comes to the database.
fn check_filter(filter: &Filter) -> Result<(), Refused> {
    if filter.ordering_key.as_ref().is_some_and(|ordering_key| ordering_key.contains('\0')) {
        return Err(Refused::Malformed("a ordering_key has no NUL in it".to_owned()));
    }
    check_kind(filter.kind.as_deref())?;
    check_moments(&[filter.from, filter.to])
}

fn check_kind(name: Option<&str>) -> Result<(), Refused> {
    let read = |name: &str| name.parse().map(|_: MessageKind| ());
    name.map_or(Ok(()), read).map_err(|error| {
        let names = MessageKind::ALL.map(MessageKind::name).join(", ");
        Refused::Malformed(format!("kind: {error}; there are {names}"))
    })
}

/// Times that the database can hold, with room for a day before the first.
fn check_moments(moments: &[Option<DateTime<Utc>>]) -> Result<(), Refused> {
    if moments.iter().flatten().all(|moment| (1..=9999).contains(&moment.year())) {
        Ok(())
    } else {
        Err(Refused::Malformed("from and to must lie in the years 1 to 9999".to_owned()))
    }
}

/// The merchant whose messages a caller may read: its own, or for an operator the one it asks
/// about, or everyone's. Messages hold what orders and returns hold, so a merchant's client needs
/// one of their scopes.
fn readable(caller: &Caller, asked: Option<MerchantId>) -> Result<Option<MerchantId>, Access> {
    let limit = match caller.merchant_scope() {
        None => {
            caller.require(Scope::Operator)?;
            return Ok(asked);
        }
        Some(_) if caller.claims.merchant.is_none() => {
            caller.require(Scope::Operator)?;
            caller.merchant_scope()
        }
        own => {
            caller.require(Scope::Orders).or_else(|_refused| caller.require(Scope::Returns))?;
            own
        }
    };
    match (limit, asked) {
        (Some(limit), Some(asked)) if *limit != asked => Err(Access::OtherMerchant(limit.clone())),
        (limit, _) => Ok(limit.cloned()),
    }
}
