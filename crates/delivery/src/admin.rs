//! HTTP API of every service that delivers: list, show, retry and replay deliveries, report on them,
//! list and check endpoints. The token of a merchant is limited to that merchant.

mod access;
pub(crate) mod check;
mod check_result;
mod dry_run;
pub(crate) mod endpoint_report;
mod endpoint_states;
mod endpoint_view;
pub(crate) mod endpoints;
mod headers;
pub(crate) mod hourly;
pub(crate) mod list;
pub(crate) mod listen;
mod new_replay;
mod refusal;
pub(crate) mod replay_state;
mod replay_view;
pub(crate) mod replays;
pub(crate) mod report;
pub(crate) mod resend;
pub(crate) mod sample_requests;
pub(crate) mod show;
mod waiting;
pub(crate) mod worst_endpoints;

use api::delivery::{Filter, ReplayState};
use chrono::{DateTime, Datelike as _, Utc};
use domain::access::MerchantId;
use domain::delivery::OUTCOMES;
use domain::json::{FieldError, ValidationError};
use domain::message_kind::MessageKind;
use platform::{ErrorKind, Failure, database::DatabaseError};
use utoipa_actix_web::service_config::ServiceConfig;
use uuid::Uuid;

use replays::UnexpectedMatches;

/// The routes of the API. The service must register its [`crate::Deliveries`] as app data, see
/// `Service::share`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(list::list_deliveries)
        .service(show::show_delivery)
        .service(resend::replay_delivery)
        .service(resend::retry_delivery)
        .service(replays::start_replay)
        .service(replays::list_replays)
        .service(replays::show_replay)
        .service(replay_state::pause_replay)
        .service(replay_state::resume_replay)
        .service(replay_state::stop_replay)
        .service(report::report_deliveries)
        .service(hourly::report_hours)
        .service(endpoint_report::report_endpoints)
        .service(endpoints::list_endpoints)
        .service(worst_endpoints::list_worst_endpoints)
        .service(check::check_endpoints)
        .service(sample_requests::list_sample_requests)
        .service(listen::listen_for_messages);
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no delivery {0}")]
    NoDelivery(Uuid),
    #[error("there is no merchant {0}")]
    NoMerchant(String),
    #[error("there is no replay {0}")]
    NoReplay(Uuid),
    #[error("replay {0} is {1}")]
    ReplayIs(Uuid, ReplayState),
    #[error("delivery {0} is still pending")]
    Pending(Uuid),
    #[error(
        "delivery {0} is superseded: a newer message of its ordering key was delivered or is being sent; \
         use force to send it anyway"
    )]
    Superseded(Uuid),
    #[error("delivery {0} was replayed since you read it: read it again")]
    ReplayedSince(Uuid),
    #[error("delivery {0} cannot be sent now: {1}")]
    CannotRetry(Uuid, String),
    #[error("too many requests wait for messages at once")]
    TooManyListeners,
    #[error("after is older than 10 minutes; start again without it")]
    ListenerTooOld,
    #[error("{0}")]
    Malformed(String),
    #[error("the sample of event {0} cannot be built")]
    BrokenSample(&'static str, #[source] serde_json::Error),
    /// The response has the number of matches, too.
    #[error("{}", .0.message)]
    UnexpectedMatches(UnexpectedMatches),
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    #[error("JSON conversion failed")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        DatabaseError::from(error).into()
    }
}

impl Failure for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoDelivery(_) | Self::NoReplay(_) | Self::NoMerchant(_) => ErrorKind::Missing,
            Self::Pending(_)
            | Self::Superseded(_)
            | Self::ReplayedSince(_)
            | Self::CannotRetry(..)
            | Self::UnexpectedMatches(_)
            | Self::ReplayIs(..) => ErrorKind::Conflict,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::TooManyListeners => ErrorKind::Limited,
            Self::ListenerTooOld | Self::Malformed(_) => ErrorKind::Malformed,
            Self::BrokenSample(..) | Self::Json(_) => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }

    fn fields(&self) -> &[FieldError] {
        match self {
            Self::Invalid(error) => error.fields(),
            _ => &[],
        }
    }
}

/// Rejects values that PostgreSQL cannot store and kinds that do not exist.
fn check_filter(filter: &Filter) -> Result<(), Error> {
    for (name, value) in
        [("ordering_key", &filter.ordering_key), ("text", &filter.text), ("event", &filter.event)]
    {
        if value.as_ref().is_some_and(|value| value.contains('\0')) {
            return Err(Error::Malformed(format!("{name} must not contain NUL")));
        }
    }
    check_kind(filter.kind.as_deref())?;
    check_times(&[filter.from, filter.to])
}

fn check_outcome(name: Option<&str>) -> Result<(), ValidationError> {
    if name.is_none_or(|name| OUTCOMES.contains(&name)) {
        return Ok(());
    }
    let detail = format!("must be one of {}", OUTCOMES.join(", "));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_database_names_the_limit() {
        testkit::check_database_refusals::<Error>();
    }
}
