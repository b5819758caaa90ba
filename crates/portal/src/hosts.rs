//! Merchants' own host names: a request for `https://returns.acme.test/choose` is served as
//! `/acme/choose`.

use actix_web::{
    HttpMessage as _, HttpRequest,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Uri,
        header::HOST,
        uri::{Authority, PathAndQuery},
    },
    middleware::Next,
    web,
};
use pages::path;
use platform::http::ClientIp;
use url::Host;

use crate::{App, error::PageError};

/// Marks a request for a merchant's own host name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnHost;

/// Paths that are the same on every host name.
const SHARED: [&str; 3] = ["/assets/", "/theme/", "/sign-out"];

/// Middleware that adds the merchant to the path, and removes a slash at its end.
pub(crate) async fn rewrite(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse, actix_web::Error> {
    let path = request.uri().path().to_owned();
    let is_shared = SHARED.iter().any(|shared| path.starts_with(shared));
    // Error pages have their style sheet also while rma-engine does not respond.
    let found = if is_shared { Ok(None) } else { merchant(&request).await };
    let merchant = match found {
        Ok(merchant) => merchant,
        Err(error) => return Ok(request.error_response(error)),
    };
    let trimmed = path.trim_end_matches('/');
    match &merchant {
        Some(merchant) => {
            set_path(&mut request, &format!("/{}{trimmed}", path!(merchant)));
            request.extensions_mut().insert(OwnHost);
        }
        None if trimmed != path && !trimmed.is_empty() => set_path(&mut request, trimmed),
        None => {}
    }
    Ok(next.call(request).await?.map_into_boxed_body())
}

/// The merchant whose host name the request names. Other names than the portal's own exist only if a
/// merchant has them.
async fn merchant(request: &ServiceRequest) -> Result<Option<String>, PageError> {
    let app = request.app_data::<web::Data<App>>().ok_or(PageError::NotFound)?;
    let Some(host) = requested_host(request.request())? else { return Ok(None) };
    let Some(host) = host_name(host)? else { return Ok(None) };
    if app.public_url.host_str() == Some(host.as_str()) {
        return Ok(None);
    }
    let address = ClientIp::of(request.request()).0;
    let portal = app.portals.find(&app.access, address, &host).await?;
    portal.map(|portal| Some(portal.merchant.clone())).ok_or(PageError::NotFound)
}

/// The host and the port that a request names, in its target or in its only `Host` header.
fn requested_host(request: &HttpRequest) -> Result<Option<&str>, PageError> {
    let mut headers = request.headers().get_all(HOST);
    let header = headers.next().map(|value| value.to_str()).transpose();
    let header = header.map_err(|_not_a_host| PageError::BadHost)?;
    if headers.next().is_some() {
        return Err(PageError::BadHost);
    }
    Ok(request.uri().authority().map(Authority::as_str).or(header))
}

/// The start of URLs of this site that leave the browser: with the merchant's own host name if the request names it,
/// else the portal's.
pub(crate) fn origin(app: &App, request: &HttpRequest) -> Result<String, PageError> {
    let own = request.extensions().get::<OwnHost>().copied();
    let scheme = app.public_url.scheme();
    match own.and(requested_host(request)?) {
        Some(host) => Ok(format!("{scheme}://{host}")),
        None => Ok(app.public_url.origin().ascii_serialization()),
    }
}

/// The host name of a `Host` header in lower case. Addresses and names without a dot, such as
/// `localhost`, are no merchant's. A header that is not a host with an optional port is an error, because a
/// proxy could read another name in it.
fn host_name(header: &str) -> Result<Option<String>, PageError> {
    let authority: Authority = header.parse().map_err(|_not_a_host| PageError::BadHost)?;
    let port = authority.as_str().get(authority.host().len()..).unwrap_or_default();
    let is_port = port.is_empty() || (port.len() > 1 && authority.port_u16().is_some());
    if !is_port || authority.as_str().contains('@') {
        return Err(PageError::BadHost);
    }
    let name = match Host::parse(authority.host()) {
        Ok(Host::Domain(name)) => name,
        Ok(Host::Ipv4(_) | Host::Ipv6(_)) => return Ok(None),
        Err(_) => return Err(PageError::BadHost),
    };
    Ok(Some(name).filter(|name| name.contains('.')))
}

fn set_path(request: &mut ServiceRequest, path: &str) {
    let target = match request.uri().query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = PathAndQuery::from_maybe_shared(target).ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        request.match_info_mut().get_mut().update(&uri);
        request.head_mut().uri = uri;
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn only_names_with_a_dot_can_belong_to_a_merchant() {
        for (host, name) in [
            ("Returns.Acme.test", Some("returns.acme.test")),
            ("returns.acme.test:8443", Some("returns.acme.test")),
            ("localhost:8080", None),
            ("127.0.0.1:8080", None),
            ("[::1]:8080", None),
        ] {
            assert_eq!(host_name(host).unwrap().as_deref(), name, "{host}");
        }
    }

    #[test]
    fn only_a_host_with_an_optional_port_is_accepted() {
        for header in [
            "",
            "localhost:8080@returns.acme.test",
            "returns.acme.test#x",
            "returns.acme.test/..",
            "returns.acme.test?x",
            "returns.acme.test:",
            "returns.acme.test:99999",
            "returns.acme.test:80:80",
            "returns acme.test",
            "http://returns.acme.test",
            "returns%2eacme.test@",
        ] {
            assert_eq!(host_name(header), Err(PageError::BadHost), "{header}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        let host = |request: TestRequest| {
            requested_host(&request.to_http_request()).map(|host| host.map(str::to_owned))
        };
        let get = TestRequest::get;
        assert_eq!(host(get()), Ok(None));
        assert_eq!(host(get().insert_header((HOST, "a.test:1"))), Ok(Some("a.test:1".to_owned())));
        let two = get().append_header((HOST, "a.test")).append_header((HOST, "b.test"));
        assert_eq!(host(two), Err(PageError::BadHost));
        let letters: &[u8] = b"a\xff.test";
        assert_eq!(host(get().insert_header((HOST, letters))), Err(PageError::BadHost));
        let target = get().uri("http://a.test@b.test/choose");
        assert_eq!(host_name(&host(target).unwrap().unwrap()), Err(PageError::BadHost));
    }

    #[actix_web::test]
    async fn urls_that_leave_the_browser_have_no_host_of_other_headers() {
        let app = crate::tests::app().await;
        let request = TestRequest::get()
            .insert_header((HOST, "returns.acme.test"))
            .insert_header(("x-forwarded-host", "evil.test"))
            .to_http_request();
        assert_eq!(origin(&app, &request).unwrap(), "https://portal.test");
        request.extensions_mut().insert(OwnHost);
        assert_eq!(origin(&app, &request).unwrap(), "https://returns.acme.test");
    }

    #[test]
    fn a_new_path_keeps_the_query() {
        let mut request = TestRequest::with_uri("/choose?i=A%7E1").to_srv_request();
        set_path(&mut request, "/acme/choose");
        assert_eq!(request.uri(), "/acme/choose?i=A%7E1");
        assert_eq!(request.match_info().unprocessed(), "/acme/choose");
    }
}
