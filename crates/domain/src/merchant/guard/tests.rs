use std::net::IpAddr;

use ipnet::IpNet;
use url::Url;

use super::{Embedding, Guard, GuardError, Reason, Transport};

fn guard(allowed: &[&str]) -> Guard {
    let allowed = allowed.iter().map(|network| network.parse::<IpNet>().unwrap()).collect();
    Guard { transport: Transport::HttpAllowed, allowed_networks: allowed }
}

#[track_caller]
fn check(address: &str, expected: Reason) {
    let address: IpAddr = address.parse().unwrap();
    assert_eq!(
        guard(&[]).check_address(address),
        Err(GuardError::Address { address, reason: expected }),
        "{address}"
    );
    // The same address in a URL is rejected before connecting.
    let url = match address {
        IpAddr::V4(v4) => format!("http://{v4}/rmas"),
        IpAddr::V6(v6) => format!("http://[{v6}]:8080/rmas"),
    };
    assert!(guard(&[]).check_url(&Url::parse(&url).unwrap()).is_err(), "{url}");
}

#[test]
fn ipv4_addresses_that_are_not_public_are_refused() {
    use Reason::{
        Benchmarking, Broadcast, CarrierNat, Documentation, LinkLocal, Loopback, Metadata,
        Multicast, Private, Reserved, Unspecified,
    };
    for (address, reason) in [
        ("0.0.0.0", Unspecified),
        ("0.1.2.3", Unspecified),
        ("0.255.255.255", Unspecified),
        ("10.0.0.0", Private),
        ("10.0.0.1", Private),
        ("10.255.255.255", Private),
        ("100.64.0.0", CarrierNat),
        ("100.127.255.255", CarrierNat),
        ("100.100.100.200", Metadata),
        ("127.0.0.0", Loopback),
        ("127.0.0.1", Loopback),
        ("127.0.0.53", Loopback),
        ("127.255.255.255", Loopback),
        ("168.63.129.16", Metadata),
        ("169.254.0.1", LinkLocal),
        ("169.254.169.253", LinkLocal),
        ("169.254.169.254", Metadata),
        ("169.254.170.2", Metadata),
        ("169.254.255.255", LinkLocal),
        ("172.16.0.1", Private),
        ("172.31.255.255", Private),
        ("192.0.0.1", Reserved),
        ("192.0.0.192", Metadata),
        ("192.0.2.1", Documentation),
        ("192.31.196.1", Reserved),
        ("192.52.193.1", Reserved),
        ("192.88.99.1", Reserved),
        ("192.168.0.1", Private),
        ("192.168.255.255", Private),
        ("192.175.48.1", Reserved),
        ("198.18.0.1", Benchmarking),
        ("198.19.255.255", Benchmarking),
        ("198.51.100.7", Documentation),
        ("203.0.113.9", Documentation),
        ("224.0.0.1", Multicast),
        ("239.255.255.255", Multicast),
        ("240.0.0.1", Reserved),
        ("255.255.255.254", Reserved),
        ("255.255.255.255", Broadcast),
    ] {
        check(address, reason);
    }
}

#[test]
fn ipv6_addresses_that_are_not_public_are_refused() {
    use Reason::{
        Benchmarking, Documentation, LinkLocal, Loopback, Metadata, Multicast, Reserved, SiteLocal,
        UniqueLocal, Unspecified,
    };
    for (address, reason) in [
        ("::", Unspecified),
        ("::1", Loopback),
        ("fc00::1", UniqueLocal),
        ("fd12:3456:789a::1", UniqueLocal),
        ("fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", UniqueLocal),
        ("fd00:ec2::254", Metadata),
        ("fd20:ce::254", Metadata),
        ("fe80::1", LinkLocal),
        ("febf::1", LinkLocal),
        ("fec0::1", SiteLocal),
        ("feff::1", SiteLocal),
        ("ff02::1", Multicast),
        ("ff0e::1", Multicast),
        ("2001:2::1", Benchmarking),
        ("2001:db8::1", Documentation),
        ("2001:db8:ffff::1", Documentation),
        ("3fff::1", Documentation),
        ("3fff:fff::1", Documentation),
        ("2001:10::1", Reserved),
        ("2001:20::1", Reserved),
        ("2001:1ff::1", Reserved),
        ("3ffe::1", Reserved),
        ("100::1", Reserved),
        ("5f00::1", Reserved),
        ("4000::1", Reserved),
        ("fe00::1", Reserved),
    ] {
        check(address, reason);
    }
}

#[test]
fn ipv4_embedded_in_ipv6_is_refused() {
    for (address, embedding) in [
        ("::ffff:127.0.0.1", Embedding::Mapped),
        ("::ffff:10.0.0.1", Embedding::Mapped),
        ("::ffff:169.254.169.254", Embedding::Mapped),
        ("::ffff:8.8.8.8", Embedding::Mapped),
        ("::ffff:0.0.0.0", Embedding::Mapped),
        ("::127.0.0.1", Embedding::Compatible),
        ("::10.0.0.1", Embedding::Compatible),
        ("::2", Embedding::Compatible),
        ("::ffff:0:127.0.0.1", Embedding::Translated),
        ("64:ff9b::127.0.0.1", Embedding::Nat64),
        ("64:ff9b::169.254.169.254", Embedding::Nat64),
        ("64:ff9b::8.8.8.8", Embedding::Nat64),
        ("64:ff9b:1::10.0.0.1", Embedding::Nat64),
        ("64:ff9b:1:ffff:ffff:ffff:a9fe:a9fe", Embedding::Nat64),
        ("2002:7f00:1::1", Embedding::SixToFour),
        ("2002:a00:1::1", Embedding::SixToFour),
        ("2002:a9fe:a9fe::", Embedding::SixToFour),
        ("2002:808:808::1", Embedding::SixToFour),
        ("2001:0:4136:e378:8000:63bf:f5ff:fffe", Embedding::Teredo),
        ("2001::1", Embedding::Teredo),
        ("2600:1234::5efe:10.0.0.1", Embedding::Isatap),
        ("2600:1234::200:5efe:192.168.0.1", Embedding::Isatap),
        ("fe80::5efe:10.0.0.1", Embedding::Isatap),
        ("fe80::200:5efe:127.0.0.1", Embedding::Isatap),
        ("2600:1234::300:5efe:127.0.0.1", Embedding::Isatap),
    ] {
        check(address, Reason::Embedded(embedding));
    }
}

#[test]
fn public_addresses_are_allowed() {
    for address in [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.1",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2606:4700::1111",
        "2a00:1450:4001::200e",
        "3fff:1000::1",
    ] {
        assert_eq!(guard(&[]).check_address(address.parse().unwrap()), Ok(()), "{address}");
    }
}

#[test]
fn unusual_spellings_of_an_address_are_recognised() {
    for host in [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "127.0.0.1.",
        "0x7f.0x0.0x0.0x1",
        "%31%32%37.0.0.1",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "0",
        "0x0",
        "3232235521",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[::7f00:1]",
        "[64:FF9B::7f00:1]",
    ] {
        let url = Url::parse(&format!("http://{host}/rmas")).unwrap();
        let checked = guard(&[]).check_url(&url);
        assert!(matches!(checked, Err(GuardError::Address { .. })), "{host} -> {url}: {checked:?}");
    }
    for host in
        ["[fe80::1%25eth0]", "[::1", "127.0.0.1.2.3.4.5", "256.256.256.256", "1.2.3.0x1ffffff"]
    {
        assert!(Url::parse(&format!("http://{host}/")).is_err(), "{host}");
    }
}

#[test]
fn only_listed_networks_are_allowed() {
    #[track_caller]
    fn check(allowed: &[&str], address: &str, expected: bool) {
        let checked = guard(allowed).check_address(address.parse().unwrap());
        assert_eq!(checked.is_ok(), expected, "{address} with {allowed:?}: {checked:?}");
    }
    check(&["10.1.0.0/16"], "10.1.2.3", true);
    check(&["10.1.0.0/16"], "10.2.0.1", false);
    check(&["127.0.0.1/32"], "127.0.0.1", true);
    check(&["127.0.0.1/32"], "127.0.0.2", false);
    check(&["127.0.0.1/32"], "::1", false);
    check(&["127.0.0.1/32"], "::ffff:127.0.0.1", false);
    check(&["::1/128"], "::1", true);
    check(&["fd00::/8"], "fd00::1", true);
    check(&["0.0.0.0/0"], "fd00::1", false);
    // An allowed tunnel does not allow the addresses embedded in it.
    check(&["64:ff9b::/96"], "64:ff9b::8.8.8.8", true);
    check(&["64:ff9b::/96"], "64:ff9b::10.0.0.1", false);
    check(&["64:ff9b::/96", "10.0.0.0/8"], "64:ff9b::10.0.0.1", true);
    check(&["::/0"], "::ffff:169.254.169.254", false);
    check(&["::/0"], "2002:7f00:1::1", false);
}

#[test]
fn a_url_needs_an_allowed_scheme_and_a_host_and_has_no_user_info() {
    #[track_caller]
    fn check(transport: Transport, url: &str, expected: Result<(), GuardError>) {
        let guard = Guard { transport, allowed_networks: Vec::new() };
        assert_eq!(guard.check_url(&Url::parse(url).unwrap()), expected, "{url}");
    }
    use Transport::{HttpAllowed, HttpsOnly};
    check(HttpsOnly, "https://merchant.example/rmas", Ok(()));
    check(HttpsOnly, "http://merchant.example/rmas", Err(GuardError::Scheme("http".into())));
    check(HttpAllowed, "http://merchant.example/rmas", Ok(()));
    check(HttpAllowed, "https://merchant.example:8443/rmas", Ok(()));
    check(HttpAllowed, "ftp://merchant.example/rmas", Err(GuardError::Scheme("ftp".into())));
    check(HttpAllowed, "file:///etc/passwd", Err(GuardError::Scheme("file".into())));
    check(HttpAllowed, "gopher://127.0.0.1/", Err(GuardError::Scheme("gopher".into())));
    check(HttpsOnly, "https://user@merchant.example/", Err(GuardError::UserInfo));
    check(HttpsOnly, "https://:pass@merchant.example/", Err(GuardError::UserInfo));
    check(HttpsOnly, "https://public.example@10.0.0.1/", Err(GuardError::UserInfo));
    assert_eq!(Guard::default().transport, HttpsOnly);
}

#[test]
fn known_names_of_non_public_addresses_are_refused() {
    #[track_caller]
    fn check(allowed: &[&str], host: &str, expected: bool) {
        let url = format!("http://{host}:8080/rmas");
        let checked = guard(allowed).check_url(&Url::parse(&url).unwrap());
        assert_eq!(checked.is_ok(), expected, "{host} with {allowed:?}: {checked:?}");
    }
    for host in [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "shop.localhost",
        "ip6-localhost",
        "metadata.google.internal",
        "metadata.google.internal.",
        "instance-data.ec2.internal",
        // Other spellings of 127.0.0.1, which the URL parser understands.
        "127.1",
        "0x7f000001",
        "2130706433",
    ] {
        check(&[], host, false);
    }
    for host in ["merchant.example", "localhost.example", "notlocalhost", "metadata.example"] {
        check(&[], host, true);
    }
    check(&["127.0.0.0/8"], "localhost", true);
    check(&["::1/128"], "localhost", true);
    check(&["127.0.0.0/8"], "metadata.google.internal", false);
}
