//! HTTP API for operators of every service that delivers: list, show, retry and replay deliveries,
//! report on them, list and check endpoints. The token of a merchant reads that merchant's deliveries.

pub(crate) mod check;
pub(crate) mod endpoints;
pub(crate) mod list;
mod new_replay;
pub(crate) mod replays;
pub(crate) mod report;
pub(crate) mod resend;
pub(crate) mod sample;
mod waiting;

use chrono::{DateTime, Datelike as _, Utc};
use domain::access::{MerchantId, Scope};
use domain::json::{FieldError, ValidationError};
use domain::message_kind::MessageKind;
use platform::identity::{Access, Caller};
use platform::{ErrorKind, Failure};
use utoipa_actix_web::service_config::ServiceConfig;
use uuid::Uuid;

use crate::outcome::Outcome;
use crate::store::Filter;

/// The routes of the API. The service must register its [`crate::Deliveries`] as app data, see
/// `Service::share`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(list::list_deliveries)
        .service(list::show_delivery)
        .service(resend::replay_delivery)
        .service(resend::retry_delivery)
        .service(replays::start_replay)
        .service(replays::list_replays)
        .service(replays::show_replay)
        .service(report::report_deliveries)
        .service(endpoints::list_endpoints)
        .service(check::check_endpoints);
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no delivery {0}")]
    NoDelivery(Uuid),
    #[error("there is no merchant {0}")]
    NoMerchant(String),
    #[error("there is no replay {0}")]
    NoReplay(Uuid),
    #[error("delivery {0} is still pending")]
    Pending(Uuid),
    #[error(
        "delivery {0} is superseded by a newer message of its ordering key; use force to send it"
    )]
    Superseded(Uuid),
    #[error("delivery {0} cannot be sent now: {1}")]
    CannotRetry(Uuid, String),
    #[error("{0}")]
    Malformed(String),
}

impl Failure for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoDelivery(_) | Self::NoReplay(_) | Self::NoMerchant(_) => ErrorKind::Missing,
            Self::Pending(_) | Self::Superseded(_) | Self::CannotRetry(..) => ErrorKind::Conflict,
            Self::Malformed(_) => ErrorKind::Malformed,
        }
    }
}

/// Rejects values that PostgreSQL cannot store and kinds that do not exist.
fn check_filter(filter: &Filter) -> Result<(), Error> {
    if filter.ordering_key.as_ref().is_some_and(|ordering_key| ordering_key.contains('\0')) {
        return Err(Error::Malformed("ordering_key must not contain NUL".to_owned()));
    }
    check_kind(filter.kind.as_deref())?;
    check_times(&[filter.from, filter.to])
}

fn check_outcome(name: Option<&str>) -> Result<(), ValidationError> {
    if name.is_none_or(|name| Outcome::NAMES.contains(&name)) {
        return Ok(());
    }
    let detail = format!("must be one of {}", Outcome::NAMES.join(", "));
    Err(FieldError::invalid("outcome", detail).into())
}

fn check_kind(name: Option<&str>) -> Result<(), Error> {
    let parse = |name: &str| name.parse().map(|_: MessageKind| ());
    name.map_or(Ok(()), parse).map_err(|error| {
        let names = MessageKind::ALL.map(MessageKind::name).join(", ");
        Error::Malformed(format!("kind: {error}; one of {names}"))
    })
}

/// PostgreSQL can hold these times and the day before the first.
fn check_times(times: &[Option<DateTime<Utc>>]) -> Result<(), Error> {
    if times.iter().flatten().all(|time| (1..=9999).contains(&time.year())) {
        Ok(())
    } else {
        Err(Error::Malformed("from and to must lie in the years 1 to 9999".to_owned()))
    }
}

fn parse_merchant(text: Option<&str>) -> Result<Option<MerchantId>, Error> {
    let parse =
        |text: &str| text.parse().map_err(|error| Error::Malformed(format!("merchant {error}")));
    text.map(parse).transpose()
}

/// Returns the merchant whose deliveries the caller may read: its own, or, for an operator, the
/// requested one or all. Messages contain orders and returns, so the client of a merchant needs one
/// of these scopes.
fn readable_merchant(
    caller: &Caller,
    requested: Option<MerchantId>,
) -> Result<Option<MerchantId>, Access> {
    let limit = match caller.merchant_scope() {
        None => {
            caller.require(Scope::Operator)?;
            return Ok(requested);
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
    match (limit, requested) {
        (Some(limit), Some(requested)) if *limit != requested => {
            Err(Access::OtherMerchant(limit.clone()))
        }
        (limit, _) => Ok(limit.cloned()),
    }
}
