//! Security headers, and the check against requests that other sites make a browser send.

use actix_web::{
    HttpRequest, HttpResponse,
    body::MessageBody,
    dev::{ServiceRequest, ServiceResponse},
    http::{
        Method,
        header::{self, HeaderName, HeaderValue},
    },
    middleware::Next,
};

const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types pages";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Middleware that rejects cross-site requests and sets the security headers of every response.
pub async fn protect(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse, actix_web::Error> {
    let is_secure = request.connection_info().scheme() == "https";
    let mut response = if is_cross_site(request.request()) {
        let forbidden = HttpResponse::Forbidden()
            .content_type("text/plain; charset=utf-8")
            .body("This form was sent from another site. Open the page here and try again.");
        request.into_response(forbidden).map_into_boxed_body()
    } else {
        next.call(request).await?.map_into_boxed_body()
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if is_secure {
        let value = HeaderValue::from_static("max-age=63072000; includeSubDomains");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    Ok(response)
}

/// Whether another site sent a request that changes something. Browsers say so in `Sec-Fetch-Site`;
/// older ones send only `Origin`. A request with neither does not come from a browser's form.
fn is_cross_site(request: &HttpRequest) -> bool {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return false;
    }
    let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return !matches!(site, "same-origin" | "none");
    }
    match text("origin") {
        None => false,
        Some(origin) => {
            let host = origin.split_once("://").map_or("", |(_, host)| host);
            host != request.connection_info().host()
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn only_requests_of_the_own_site_may_change_something() {
        let post = |headers: &[(&'static str, &'static str)]| {
            let request = TestRequest::post().insert_header(("host", "console.test"));
            let request =
                headers.iter().fold(request, |request, header| request.insert_header(*header));
            is_cross_site(&request.to_http_request())
        };
        assert!(!post(&[]));
        assert!(!post(&[("sec-fetch-site", "same-origin")]));
        assert!(!post(&[("sec-fetch-site", "none")]));
        assert!(post(&[("sec-fetch-site", "cross-site")]));
        assert!(post(&[("sec-fetch-site", "same-site")]));
        assert!(!post(&[("origin", "https://console.test")]));
        assert!(post(&[("origin", "https://other.test")]));
        assert!(post(&[("origin", "null")]));
        let get = TestRequest::get().insert_header(("sec-fetch-site", "cross-site"));
        assert!(!is_cross_site(&get.to_http_request()));
    }
}
