//! Results of forms. A form redirects to a page whose query names the notice, so that a reload does not
//! send the form again. The texts are fixed, so that a link cannot show a text of its own.

use actix_web::{HttpResponse, http::header};
use strum::{EnumString, IntoStaticStr};
use url::form_urlencoded;

/// A notice at the top of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Notice {
    Replayed,
    SentNow,
    ReplayStarted,
    ReplayPaused,
    ReplayResumed,
    ReplayStopped,
    ReturnCanceled,
    ExchangeOrderAbandoned,
    DiscrepancyResolved,
    Welcome,
    SessionEnded,
    SessionsEnded,
    PasswordChanged,
    PersonChanged,
    PersonDisabled,
    PersonEnabled,
    MerchantCreated,
    SettingsSaved,
    AppearanceSaved,
    EndpointSet,
    EndpointPaused,
    EndpointResumed,
    EndpointDeleted,
    WarehouseSet,
    WarehouseDeleted,
    ClientRevoked,
}

impl Notice {
    pub(crate) fn of(query: &str) -> Option<Self> {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(name, _)| name == "notice").and_then(|(_, value)| value.parse().ok())
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Replayed => "The message is sent again. This page shows each attempt.",
            Self::SentNow => "The message is sent now instead of at its next attempt.",
            Self::ReplayStarted => "The replay has started. This page shows its progress.",
            Self::ReplayPaused => "The replay is paused.",
            Self::ReplayResumed => "The replay goes on.",
            Self::ReplayStopped => "The replay is stopped. It cannot be resumed.",
            Self::ReturnCanceled => "The return is canceled. The merchant gets a message.",
            Self::ExchangeOrderAbandoned => {
                "The exchange order is abandoned. Its units are refunded instead."
            }
            Self::DiscrepancyResolved => "The discrepancy is resolved.",
            Self::Welcome => "Welcome. Your password is set and you are signed in.",
            Self::SessionEnded => "The session is ended.",
            Self::SessionsEnded => "All sessions of this person are ended.",
            Self::PasswordChanged => "Your password is changed, and your other sessions are ended.",
            Self::PersonChanged => "The changes are saved.",
            Self::PersonDisabled => "The person is disabled and signed out everywhere.",
            Self::PersonEnabled => "The person is enabled.",
            Self::MerchantCreated => {
                "The merchant is created. Check its settings, then set up its endpoints."
            }
            Self::SettingsSaved => "The settings are saved. All services use them within seconds.",
            Self::AppearanceSaved => "The appearance is saved. The portal uses it within seconds.",
            Self::EndpointSet => "The endpoint is saved. Send a sample to test it.",
            Self::EndpointPaused => "The endpoint is paused. Its messages wait.",
            Self::EndpointResumed => "The endpoint is resumed. Its messages are sent in order.",
            Self::EndpointDeleted => "The endpoint is deleted.",
            Self::WarehouseSet => {
                "The warehouse is saved. Reports of shipments can name it within seconds."
            }
            Self::WarehouseDeleted => {
                "The warehouse is deleted. Reported shipments stay as they are."
            }
            Self::ClientRevoked => {
                "The client is revoked. All services reject its tokens within seconds."
            }
        }
    }

    /// Leads to `path` and shows this notice there.
    pub(crate) fn redirect(self, path: &str) -> HttpResponse {
        let separator = if path.contains('?') { '&' } else { '?' };
        let name: &'static str = self.into();
        redirect(&format!("{path}{separator}notice={name}"))
    }
}

/// Leads to another page after a form.
pub(crate) fn redirect(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((header::LOCATION, path)).finish()
}
