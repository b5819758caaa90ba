//! The scheme and the host that a browser requested, as reported by trusted proxies.

use actix_web::{
    HttpRequest,
    http::{
        header::{self, HeaderName},
        uri::Authority,
    },
    web,
};

use super::{
    ProxyHeader, Settings,
    client_ip::{hops, parameter},
};

/// The scheme and the host that a browser requested.
///
/// Those of the connection and of the `Host` header, unless the peer is a trusted proxy that names others: in
/// `X-Forwarded-Proto` and `X-Forwarded-Host`, or in `Forwarded`, as `http.proxy_header` says. Other headers
/// are ignored, because the client can write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOrigin {
    pub is_https: bool,
    /// With the port, if the request names one. Empty if the request names no host.
    pub host: String,
}

impl RequestOrigin {
    /// The origin of this request.
    pub fn of(request: &HttpRequest) -> Self {
        let settings = request.app_data::<web::Data<Settings>>();
        let peer = request.peer_addr().map(|address| address.ip());
        let proxy = settings
            .zip(peer)
            .filter(|(settings, peer)| settings.is_trusted_proxy(peer.to_canonical()))
            .map(|(settings, _)| settings.proxy_header);
        Self::through(proxy, request)
    }

    /// The origin of a request from a trusted proxy that writes this header, or from another peer.
    fn through(proxy: Option<ProxyHeader>, request: &HttpRequest) -> Self {
        let (scheme, host) = match proxy {
            None => (None, None),
            Some(ProxyHeader::XForwardedFor) => {
                (last(request, header::X_FORWARDED_PROTO), last(request, header::X_FORWARDED_HOST))
            }
            Some(ProxyHeader::Forwarded) => {
                let hop = last(request, header::FORWARDED);
                let value = |name| hop.and_then(|hop| parameter(hop, name));
                (value("proto"), value("host"))
            }
        };
        let is_https = scheme.map_or_else(
            || request.app_config().secure(),
            |scheme| scheme.eq_ignore_ascii_case("https"),
        );
        let host = host.or_else(|| requested_host(request)).unwrap_or_default().to_owned();
        Self { is_https, host }
    }
}

/// The host and the port in the target of a request or in its `Host` header.
fn requested_host(request: &HttpRequest) -> Option<&str> {
    let header = || request.headers().get(header::HOST)?.to_str().ok();
    request.uri().authority().map(Authority::as_str).or_else(header)
}

/// The last value of a header, which the peer wrote.
fn last(request: &HttpRequest, name: HeaderName) -> Option<&str> {
    let line = request.headers().get_all(name).next_back()?;
    hops(line.as_bytes()).last().flatten().map(str::trim).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    const HEADERS: [(&str, &str); 4] = [
        ("host", "console.internal"),
        ("x-forwarded-host", "evil.test, console.test"),
        ("x-forwarded-proto", "http, https"),
        ("forwarded", "host=evil.test;proto=http, for=10.0.0.1;Host=\"b.test:8443\";proto=HTTPS"),
    ];

    fn request(headers: &[(&'static str, &'static str)]) -> HttpRequest {
        let request = TestRequest::get();
        headers.iter().fold(request, |it, header| it.append_header(*header)).to_http_request()
    }

    fn through(proxy: Option<ProxyHeader>, request: &HttpRequest) -> (String, bool) {
        let origin = RequestOrigin::through(proxy, request);
        (origin.host, origin.is_https)
    }

    #[test]
    fn only_the_header_of_a_trusted_proxy_names_the_origin() {
        let request = request(&HEADERS);
        assert_eq!(through(None, &request), ("console.internal".to_owned(), false));
        let x_forwarded = through(Some(ProxyHeader::XForwardedFor), &request);
        assert_eq!(x_forwarded, ("console.test".to_owned(), true));
        let forwarded = through(Some(ProxyHeader::Forwarded), &request);
        assert_eq!(forwarded, ("b.test:8443".to_owned(), true));
    }

    #[test]
    fn a_proxy_that_names_no_origin_passes_the_host_on() {
        for proxy in [ProxyHeader::XForwardedFor, ProxyHeader::Forwarded] {
            let request = request(&[("host", "console.test"), ("forwarded", "for=192.0.2.1")]);
            assert_eq!(through(Some(proxy), &request), ("console.test".to_owned(), false));
        }
    }

    #[test]
    fn a_peer_that_is_no_trusted_proxy_names_no_origin() {
        let peer = TestRequest::get().peer_addr("192.0.2.7:4711".parse().unwrap());
        let request = HEADERS.iter().fold(peer, |it, header| it.append_header(*header));
        let origin = RequestOrigin::of(&request.to_http_request());
        assert_eq!(origin, RequestOrigin { is_https: false, host: "console.internal".to_owned() });
    }
}
