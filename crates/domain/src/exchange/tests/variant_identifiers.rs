use proptest::prelude::*;
use url::Url;

use crate::exchange::{InvalidVariantIdentifier, MissingPlaceholder, VariantIdentifier};

#[track_caller]
fn check(identifier: &str, want: &str) {
    let template: Url =
        "https://acme.example/hooks/sku/{variant_identifier}/variants?key=1".parse().unwrap();
    let url = VariantIdentifier::parse(identifier).unwrap().expand_url(&template).unwrap();
    let want = format!("https://acme.example/hooks/sku/{want}/variants?key=1");
    assert_eq!(url.as_str(), want);
}

#[test]
fn an_identifier_is_one_path_segment() {
    check("TEE", "TEE");
    check("../../admin", "..%2F..%2Fadmin");
    check("a/b", "a%2Fb");
    check("%2f", "%252f");
    check("%2e%2e", "%252e%252e");
    check("?x=1#y", "%3Fx%3D1%23y");
    check("a\\..\\b", "a%5C..%5Cb");
    check("a b+c&d;e:f@g", "a%20b%2Bc%26d%3Be%3Af%40g");
    check("größe", "gr%C3%B6%C3%9Fe");
    check("{variant_identifier}", "%7Bvariant_identifier%7D");
    check("...", "...");
}

#[test]
fn invalid_identifiers_are_rejected() {
    for (text, want) in [
        ("", InvalidVariantIdentifier::Length),
        (&"x".repeat(256), InvalidVariantIdentifier::Length),
        (&"x".repeat(10 * 1024), InvalidVariantIdentifier::Length),
        (".", InvalidVariantIdentifier::Dots),
        ("..", InvalidVariantIdentifier::Dots),
        ("a\r\nHost: evil", InvalidVariantIdentifier::Control),
        ("a\0", InvalidVariantIdentifier::Control),
        ("\u{85}", InvalidVariantIdentifier::Control),
    ] {
        assert_eq!(VariantIdentifier::parse(text), Err(want), "{text:?}");
    }
}

#[test]
fn a_url_without_a_placeholder_is_rejected() {
    let tee = VariantIdentifier::parse("TEE").unwrap();
    for template in
        ["https://acme.example/variants", "https://acme.example/v?s={variant_identifier}"]
    {
        assert_eq!(
            tee.expand_url(&template.parse().unwrap()),
            Err(MissingPlaceholder),
            "{template}"
        );
    }
    let part: Url = "https://acme.example/v/p-{variant_identifier}.json".parse().unwrap();
    assert_eq!(tee.expand_url(&part).unwrap().path(), "/v/p-TEE.json");
}

proptest! {
    #[test]
    fn no_identifier_leaves_its_segment(text in "\\PC{1,40}") {
        let Ok(identifier) = VariantIdentifier::parse(&text) else { return Ok(()) };
        let template: Url = "http://acme.example/sku/{variant_identifier}/variants".parse().unwrap();
        let url = identifier.expand_url(&template).unwrap();
        let segments: Vec<_> = url.path_segments().unwrap().collect();
        prop_assert_eq!((segments.len(), segments[0], segments[2]), (3, "sku", "variants"));
        prop_assert_eq!((url.host_str(), url.query(), url.fragment()), (Some("acme.example"), None, None));
    }
}
