//! Special-purpose ranges of IPv4 and IPv6, and the embeddings of IPv4 addresses in IPv6.
//!
//! A range that is not listed is public, so ranges in doubt are listed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Why an address is not public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("unspecified")]
    Unspecified,
    #[error("loopback")]
    Loopback,
    #[error("private")]
    Private,
    #[error("carrier-grade NAT")]
    CarrierNat,
    #[error("link-local")]
    LinkLocal,
    #[error("cloud metadata")]
    Metadata,
    #[error("multicast")]
    Multicast,
    #[error("broadcast")]
    Broadcast,
    #[error("documentation")]
    Documentation,
    #[error("benchmarking")]
    Benchmarking,
    #[error("unique local")]
    UniqueLocal,
    #[error("site-local")]
    SiteLocal,
    #[error("reserved")]
    Reserved,
    #[error("IPv4 embedded in IPv6 ({0})")]
    Embedded(Embedding),
}

/// How an IPv6 address embeds an IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Embedding {
    #[error("mapped")]
    Mapped,
    #[error("compatible")]
    Compatible,
    #[error("translated")]
    Translated,
    #[error("NAT64")]
    Nat64,
    #[error("6to4")]
    SixToFour,
    #[error("Teredo")]
    Teredo,
    #[error("ISATAP")]
    Isatap,
}

/// The first match gives the reason, so single addresses come first.
const V4: &[(Ipv4Net, Reason)] = &[
    (v4([169, 254, 169, 254], 32), Reason::Metadata),
    (v4([169, 254, 170, 2], 32), Reason::Metadata),
    (v4([100, 100, 100, 200], 32), Reason::Metadata),
    (v4([168, 63, 129, 16], 32), Reason::Metadata),
    (v4([192, 0, 0, 192], 32), Reason::Metadata),
    (v4([255, 255, 255, 255], 32), Reason::Broadcast),
    (v4([0, 0, 0, 0], 8), Reason::Unspecified),
    (v4([10, 0, 0, 0], 8), Reason::Private),
    (v4([100, 64, 0, 0], 10), Reason::CarrierNat),
    (v4([127, 0, 0, 0], 8), Reason::Loopback),
    (v4([169, 254, 0, 0], 16), Reason::LinkLocal),
    (v4([172, 16, 0, 0], 12), Reason::Private),
    (v4([192, 0, 0, 0], 24), Reason::Reserved),
    (v4([192, 0, 2, 0], 24), Reason::Documentation),
    (v4([192, 31, 196, 0], 24), Reason::Reserved),
    (v4([192, 52, 193, 0], 24), Reason::Reserved),
    (v4([192, 88, 99, 0], 24), Reason::Reserved),
    (v4([192, 168, 0, 0], 16), Reason::Private),
    (v4([192, 175, 48, 0], 24), Reason::Reserved),
    (v4([198, 18, 0, 0], 15), Reason::Benchmarking),
    (v4([198, 51, 100, 0], 24), Reason::Documentation),
    (v4([203, 0, 113, 0], 24), Reason::Documentation),
    (v4([224, 0, 0, 0], 4), Reason::Multicast),
    (v4([240, 0, 0, 0], 4), Reason::Reserved),
];

const V6: &[(Ipv6Net, Reason)] = &[
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), Reason::Metadata),
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), Reason::Metadata),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), Reason::Unspecified),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Reason::Loopback),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), Reason::UniqueLocal),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), Reason::LinkLocal),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), Reason::SiteLocal),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), Reason::Multicast),
    (v6([0x2001, 0x2, 0, 0, 0, 0, 0, 0], 48), Reason::Benchmarking),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), Reason::Documentation),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), Reason::Documentation),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), Reason::Reserved),
    (v6([0x3ffe, 0, 0, 0, 0, 0, 0, 0], 16), Reason::Reserved),
];

/// The only part of IPv6 that is allocated for public use.
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// The addresses of host names that never mean a public address.
const NAMES: &[(&str, &[IpAddr])] = &[
    ("localhost", LOOPBACK),
    ("localhost.localdomain", LOOPBACK),
    ("ip6-localhost", LOOPBACK),
    ("ip6-loopback", LOOPBACK),
    ("metadata", METADATA),
    ("metadata.google.internal", METADATA),
    ("metadata.goog", METADATA),
    ("instance-data", METADATA),
    ("instance-data.ec2.internal", METADATA),
];
const LOOPBACK: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
const METADATA: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254))];

/// The addresses of a host name in [`NAMES`] or below `localhost`. Empty for all other names.
pub(super) fn known_name(host: &str) -> &'static [IpAddr] {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let known = NAMES.iter().find(|(name, _)| *name == host).map(|(_, addresses)| *addresses);
    let is_local = host.ends_with(".localhost");
    known.or(is_local.then_some(LOOPBACK)).unwrap_or_default()
}

pub(super) fn reserved_v4(address: Ipv4Addr) -> Option<Reason> {
    V4.iter().find(|(network, _)| network.contains(&address)).map(|(_, reason)| *reason)
}

pub(super) fn reserved_v6(address: Ipv6Addr) -> Option<Reason> {
    V6.iter()
        .find(|(network, _)| network.contains(&address))
        .map(|(_, reason)| *reason)
        .or_else(|| (!GLOBAL_UNICAST.contains(&address)).then_some(Reason::Reserved))
}

/// Extracts the IPv4 address that packets to this IPv6 address are forwarded to.
pub(super) fn embedded_v4(address: Ipv6Addr) -> Option<(Embedding, Ipv4Addr)> {
    let tail = |a: u16, b: u16| Ipv4Addr::from_bits((u32::from(a) << 16) | u32::from(b));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0xffff, a, b] => Some((Embedding::Mapped, tail(a, b))),
        [0, 0, 0, 0, 0, 0, a, b] => Some((Embedding::Compatible, tail(a, b))),
        [0, 0, 0, 0, 0xffff, 0, a, b] => Some((Embedding::Translated, tail(a, b))),
        [0x64, 0xff9b, 0 | 1, _, _, _, a, b] => Some((Embedding::Nat64, tail(a, b))),
        [0x2002, a, b, ..] => Some((Embedding::SixToFour, tail(a, b))),
        [0x2001, 0, _, _, _, _, a, b] => Some((Embedding::Teredo, tail(!a, !b))),
        // An ISATAP interface identifier may have the universal and the group bit set.
        [_, _, _, _, 0 | 0x100 | 0x200 | 0x300, 0x5efe, a, b] => {
            Some((Embedding::Isatap, tail(a, b)))
        }
        _ => None,
    }
}

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6([a, b, c, d, e, f, g, h]: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}
