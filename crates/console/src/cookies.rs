//! Cookies of the console.

use actix_web::{
    HttpRequest,
    cookie::{Cookie, SameSite},
};

/// The cookie with the session. The prefix makes browsers accept it only from this host, over TLS.
const SESSION: &str = "__Host-session";

/// The cookie of a new session.
pub(crate) fn session_cookie(session: String) -> Cookie<'static> {
    host_cookie(SESSION, session)
}

/// The session of a request, if it has one.
pub(crate) fn session_of(request: &HttpRequest) -> Option<String> {
    request.cookie(SESSION).map(|cookie| cookie.value().to_owned())
}

/// A cookie that removes the session.
pub(crate) fn no_session() -> Cookie<'static> {
    removal(session_cookie(String::new()))
}

/// A cookie that only this host gets and that scripts cannot read. Browsers delete it when they close.
pub(crate) fn host_cookie(name: &'static str, value: String) -> Cookie<'static> {
    Cookie::build(name, value)
        .path("/")
        .secure(true)
        .http_only(true)
        .same_site(SameSite::Lax)
        .finish()
}

pub(crate) fn removal(mut cookie: Cookie<'static>) -> Cookie<'static> {
    cookie.make_removal();
    cookie
}
