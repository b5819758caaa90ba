//! Results of forms. A form redirects to a page, so that a reload does not send the form again. A cookie names the
//! notice for that page, which removes it, so that a reload does not show the notice again. The texts are fixed.

use actix_web::{
    HttpRequest, HttpResponse,
    body::MessageBody,
    cookie::time::Duration,
    dev::{ServiceRequest, ServiceResponse},
    http::{StatusCode, header},
    middleware::Next,
};
use strum::{EnumString, IntoStaticStr};

use crate::cookies::{host_cookie, removal};

const COOKIE: &str = "__Host-notice";
/// A page that is not loaded by then shows no notice.
const MAX_AGE: Duration = Duration::minutes(1);

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
    ReturnStarted,
    ReturnRequested,
    ReturnCanceled,
    RequestCanceled,
    ReturnApproved,
    ReturnDeclined,
    UnitsWaived,
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
    PolicySaved,
    EndpointSet,
    EndpointPaused,
    EndpointResumed,
    EndpointDeleted,
    WarehouseSet,
    WarehouseDeleted,
    ClientRevoked,
}

impl Notice {
    pub(crate) fn of(request: &HttpRequest) -> Option<Self> {
        request.cookie(COOKIE)?.value().parse().ok()
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Replayed => "The message is sent again. This page shows each attempt.",
            Self::SentNow => "The message is sent now instead of at its next attempt.",
            Self::ReplayStarted => "The replay has started. This page shows its progress.",
            Self::ReplayPaused => "The replay is paused.",
            Self::ReplayResumed => "The replay goes on.",
            Self::ReplayStopped => "The replay is stopped. It cannot be resumed.",
            Self::ReturnStarted => "The return is started. The merchant gets a message.",
            Self::ReturnRequested => {
                "The return waits for review. The merchant gets no message yet."
            }
            Self::ReturnCanceled => "The return is canceled. The merchant gets a message.",
            Self::RequestCanceled => "The return is canceled. Its units can be returned again.",
            Self::ReturnApproved => "The return is approved. The merchant gets a message.",
            Self::ReturnDeclined => "The return is declined. Its units can be returned again.",
            Self::UnitsWaived => "The units are waived. The merchant gets a message.",
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
            Self::PolicySaved => "The policy is saved. All services use it within seconds.",
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
        let name: &'static str = self.into();
        let mut cookie = host_cookie(COOKIE, name.to_owned());
        cookie.set_max_age(MAX_AGE);
        HttpResponse::SeeOther().insert_header((header::LOCATION, path)).cookie(cookie).finish()
    }
}

/// Leads to another page after a form.
pub(crate) fn redirect(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((header::LOCATION, path)).finish()
}

/// Middleware that removes a notice which a page has shown.
pub(crate) async fn show_once(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse, actix_web::Error> {
    let response = next.call(request).await?.map_into_boxed_body();
    let is_page = response.status() == StatusCode::OK
        && response.headers().get(header::CONTENT_TYPE).is_some_and(|it| it == HTML);
    if !is_page || response.request().cookie(COOKIE).is_none() {
        return Ok(response);
    }
    let mut response = response;
    response.response_mut().add_cookie(&removal(host_cookie(COOKIE, String::new())))?;
    Ok(response)
}

/// The type of pages.
const HTML: &str = "text/html; charset=utf-8";

#[cfg(test)]
mod tests {
    use actix_web::{
        App,
        middleware::from_fn,
        test::{TestRequest, call_service, init_service},
        web,
    };

    use super::*;

    #[actix_web::test]
    async fn a_reload_does_not_show_the_notice_again() {
        let page = |request: HttpRequest| async move {
            let text = Notice::of(&request).map(Notice::text).unwrap_or_default();
            HttpResponse::Ok().content_type(HTML).body(text)
        };
        let app = App::new().wrap(from_fn(show_once)).default_service(web::to(page));
        let app = init_service(app).await;
        let sent = Notice::Replayed.redirect("/deliveries?state=dead");
        assert_eq!(sent.headers().get(header::LOCATION).unwrap(), "/deliveries?state=dead");
        let cookie = sent.cookies().next().unwrap().into_owned();
        let request = TestRequest::with_uri("/deliveries").cookie(cookie).to_request();
        let response = call_service(&app, request).await;
        let removed = response.response().cookies().next().unwrap();
        assert_eq!((removed.name(), removed.value()), (COOKIE, ""));
        assert_eq!(removed.max_age(), Some(Duration::ZERO));
    }
}
