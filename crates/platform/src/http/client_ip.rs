//! The address of the client that sent a request, as reported by trusted proxies.

use std::{future::Ready, net::IpAddr, str::FromStr};

use actix_web::{FromRequest, HttpRequest, dev::Payload, http::header, web};
use ipnet::IpNet;

use super::{ProxyHeader, Settings};
use crate::Problem;

/// The client's address.
///
/// The address of the peer, unless the peer is a trusted proxy. Then it is the rightmost address in
/// `http.proxy_header` that is not a trusted proxy. Other headers are ignored, because the client can
/// write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientIp(pub IpAddr);

impl FromRequest for ClientIp {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        std::future::ready(Ok(Self::of(request)))
    }
}

impl ClientIp {
    pub fn of(request: &HttpRequest) -> Self {
        let direct = request.peer_addr().map_or(IpAddr::from([0, 0, 0, 0]), |address| address.ip());
        let Some(settings) = request.app_data::<web::Data<Settings>>() else {
            return Self(direct.to_canonical());
        };
        let lines = |name| request.headers().get_all(name).map(|line| line.as_bytes());
        let hops: Vec<_> = match settings.proxy_header {
            ProxyHeader::XForwardedFor => {
                lines(header::X_FORWARDED_FOR).flat_map(x_forwarded_for).collect()
            }
            ProxyHeader::Forwarded => lines(header::FORWARDED).flat_map(forwarded).collect(),
        };
        Self(client(direct, &hops, &settings.trusted_proxies))
    }
}

/// Follows the hops from the peer to the client while they are trusted proxies. A hop that is not an
/// address ends this, because the hops to its left cannot be trusted.
fn client(direct: IpAddr, hops: &[Option<IpAddr>], trusted: &[IpNet]) -> IpAddr {
    let is_proxy = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    let mut client = direct.to_canonical();
    for hop in hops.iter().rev() {
        match hop {
            Some(hop) if is_proxy(client) => client = hop.to_canonical(),
            _ => break,
        }
    }
    client
}

fn x_forwarded_for(line: &[u8]) -> Vec<Option<IpAddr>> {
    hops(line).map(|hop| address(hop?)).collect()
}

fn forwarded(line: &[u8]) -> Vec<Option<IpAddr>> {
    hops(line).map(|hop| address(parameter(hop?, "for")?)).collect()
}

/// The value of a parameter of a hop in `Forwarded`, without its quotes.
pub(super) fn parameter<'a>(hop: &'a str, wanted: &str) -> Option<&'a str> {
    hop.split(';').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let is_wanted = name.trim().eq_ignore_ascii_case(wanted);
        is_wanted.then(|| value.trim().trim_matches('"'))
    })
}

/// Splits a header into hops. A hop that is not UTF-8 does not affect the others.
pub(super) fn hops(line: &[u8]) -> impl Iterator<Item = Option<&str>> {
    line.split(|byte| *byte == b',').map(|hop| std::str::from_utf8(hop).ok())
}

/// An address in the forms that proxies write: alone, with a port, or in brackets.
fn address(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bracketed =
        text.strip_prefix('[').and_then(|rest| rest.split_once(']')).map(|(inside, _)| inside);
    IpAddr::from_str(bracketed.unwrap_or(text))
        .ok()
        .or_else(|| std::net::SocketAddr::from_str(text).ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(direct: &str, header: (&str, &[u8]), expected: &str) {
        let hops: Vec<_> = match header {
            ("forwarded", line) => forwarded(line),
            (_, b"") => Vec::new(),
            (_, line) => x_forwarded_for(line),
        };
        let trusted = ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        assert_eq!(client(direct.parse().unwrap(), &hops, &trusted).to_string(), expected);
    }

    #[test]
    fn only_trusted_proxies_may_name_the_client() {
        check("203.0.113.9", ("xff", b"198.51.100.1"), "203.0.113.9");
        check("10.0.0.1", ("xff", b"198.51.100.1"), "198.51.100.1");
        check("10.0.0.1", ("xff", b""), "10.0.0.1");
        check("10.0.0.1", ("xff", b"1.2.3.4, 198.51.100.1"), "198.51.100.1");
        check("10.0.0.1", ("xff", b"198.51.100.1, 10.0.0.2"), "198.51.100.1");
        check("10.0.0.1", ("xff", b"198.51.100.1:4711"), "198.51.100.1");
        check("10.0.0.1", ("xff", b"198.51.100.1, nonsense"), "10.0.0.1");
        check("::ffff:10.0.0.1", ("xff", b"198.51.100.1"), "198.51.100.1");
        check("10.0.0.1", ("forwarded", b"for=198.51.100.1;proto=https"), "198.51.100.1");
        check("10.0.0.1", ("forwarded", b"proto=https;For=\"[2001:db8::7]:443\""), "2001:db8::7");
        check(
            "10.0.0.1",
            ("forwarded", b"for=6.6.6.6, for=198.51.100.1, for=10.9.9.9"),
            "198.51.100.1",
        );
        check("10.0.0.1", ("forwarded", b"for=_hidden"), "10.0.0.1");
        check("10.0.0.1", ("xff", b"caf\xe9, 198.51.100.1"), "198.51.100.1");
        check("10.0.0.1", ("xff", b"198.51.100.1, caf\xe9"), "10.0.0.1");
        check("10.0.0.1", ("forwarded", b"for=\xff, for=198.51.100.1"), "198.51.100.1");
    }
}
