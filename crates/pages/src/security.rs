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
use platform::http::RequestOrigin;

const HEADERS: [(HeaderName, &str); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// The content security policy of a page that shows pictures of these hosts beside its own. Texts that
/// are not a host with an optional port are left out.
pub fn content_policy<'a>(image_hosts: impl IntoIterator<Item = &'a str>) -> HeaderValue {
    let is_host = |host: &&str| {
        !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:".contains(&b))
    };
    let hosts: String =
        image_hosts.into_iter().filter(is_host).map(|host| format!(" {host}")).collect();
    let policy = format!(
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:{hosts}; \
         connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types pages"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// Middleware that rejects cross-site requests and sets the security headers of every response. A
/// response that has a content security policy keeps it.
pub async fn protect(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse, actix_web::Error> {
    let is_secure = RequestOrigin::of(request.request()).is_https;
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
    if !headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        headers.insert(header::CONTENT_SECURITY_POLICY, content_policy([]));
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
            host != RequestOrigin::of(request).host
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_policy_names_hosts_and_nothing_else() {
        let policy =
            content_policy(["cdn.acme.test", "localhost:8443", "a.test; script-src *", ""]);
        let policy = policy.to_str().unwrap();
        assert!(policy.contains("img-src 'self' data: cdn.acme.test localhost:8443; "), "{policy}");
        assert!(!policy.contains('*'), "{policy}");
    }

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
        // No trusted proxy wrote these.
        let others =
            [("x-forwarded-host", "other.test"), ("forwarded", "host=other.test;proto=https")];
        for header in others {
            assert!(post(&[("origin", "https://other.test"), header]), "{header:?}");
            assert!(!post(&[("origin", "https://console.test"), header]), "{header:?}");
        }
        let get = TestRequest::get().insert_header(("sec-fetch-site", "cross-site"));
        assert!(!is_cross_site(&get.to_http_request()));
    }
}
