//! AWS Signature Version 4, for endpoints behind Amazon API Gateway and similar services.
//!
//! The signature covers the method, the path, the query, the headers and the body of a request. The library
//! of AWS (`aws-sigv4`) brings a runtime of its own; the tests use the vectors of its test suite instead.

use std::collections::BTreeMap;

use aws_lc_rs::{digest, hmac};
use chrono::{DateTime, Utc};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use reqwest::Method;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const SECURITY_TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
/// All characters but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Our credentials at a merchant's AWS account.
#[derive(Clone, Debug)]
pub struct AwsCredentials {
    pub access_key_id: String,
    pub secret_access_key: SecretString,
    /// For temporary credentials.
    pub session_token: Option<SecretString>,
    pub region: String,
    pub service: String,
}

impl AwsCredentials {
    /// Adds the headers of the signature. Every header that is there already is signed, except the trace,
    /// which proxies may replace.
    pub(crate) fn sign(
        &self,
        method: &Method,
        url: &Url,
        headers: &mut HeaderMap,
        body: &[u8],
        at: DateTime<Utc>,
    ) -> Result<(), InvalidHeaderValue> {
        let time = at.format("%Y%m%dT%H%M%SZ").to_string();
        headers.remove(header::AUTHORIZATION);
        headers.insert(DATE, HeaderValue::from_str(&time)?);
        if let Some(token) = &self.session_token {
            headers.insert(SECURITY_TOKEN, sensitive(token.expose_secret())?);
        }
        let signed = signed_headers(url, headers);
        let names: Vec<_> = signed.keys().map(String::as_str).collect();
        let names = names.join(";");
        let lines: String =
            signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        let request = format!(
            "{method}\n{}\n{}\n{lines}\n{names}\n{}",
            canonical_path(url),
            canonical_query(url),
            sha256(body)
        );
        let date = at.format("%Y%m%d").to_string();
        let scope = format!("{date}/{}/{}/aws4_request", self.region, self.service);
        let text = format!("{ALGORITHM}\n{time}\n{scope}\n{}", sha256(request.as_bytes()));
        let signature = hex(hmac(self.signing_key(&date).as_ref(), &text).as_ref());
        let credential = format!("{}/{scope}", self.access_key_id);
        let authorization = format!(
            "{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
        );
        headers.insert(header::AUTHORIZATION, sensitive(&authorization)?);
        Ok(())
    }

    fn signing_key(&self, date: &str) -> hmac::Tag {
        let secret = format!("AWS4{}", self.secret_access_key.expose_secret());
        [self.region.as_str(), &self.service, "aws4_request"]
            .into_iter()
            .fold(hmac(secret.as_bytes(), date), |key, part| hmac(key.as_ref(), part))
    }
}

fn sensitive(value: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(value)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The headers to sign by name, with the host that the HTTP client adds.
fn signed_headers(url: &Url, headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut signed: BTreeMap<_, _> = headers
        .keys()
        .filter(|name| !["traceparent", "tracestate"].contains(&name.as_str()))
        .map(|name| {
            let values = headers.get_all(name).iter().map(|value| {
                let text = String::from_utf8_lossy(value.as_bytes());
                text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
            });
            (name.as_str().to_owned(), values.collect::<Vec<_>>().join(","))
        })
        .collect();
    let host = url.host_str().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    signed.insert(header::HOST.to_string(), format!("{host}{port}"));
    signed
}

/// The path without empty segments. Its characters are encoded once more than in the request.
fn canonical_path(url: &Url) -> String {
    let mut path = String::new();
    for segment in url.path().split('/').filter(|segment| !segment.is_empty()) {
        path.push('/');
        path.extend(percent_encode(segment.as_bytes(), RESERVED));
    }
    if path.is_empty() || url.path().ends_with('/') {
        path.push('/');
    }
    path
}

/// The parameters, sorted by their encoded names and values.
fn canonical_query(url: &Url) -> String {
    let encode = |text: &str| {
        let decoded: Vec<u8> = percent_decode_str(text).collect();
        percent_encode(&decoded, RESERVED).to_string()
    };
    let parameters = url.query().unwrap_or_default().split('&').filter(|it| !it.is_empty());
    let mut parameters: Vec<_> = parameters
        .map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
        .map(|(name, value)| (encode(name), encode(value)))
        .collect();
    parameters.sort_unstable();
    let parameters = parameters.into_iter().map(|(name, value)| format!("{name}={value}"));
    parameters.collect::<Vec<_>>().join("&")
}

fn hmac(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

    /// A request of the test suite of AWS and the end of its `Authorization` header.
    struct Vector {
        method: Method,
        url: &'static str,
        service: &'static str,
        headers: &'static [(&'static str, &'static str)],
        token: Option<&'static str>,
        body: &'static str,
        expected: &'static str,
    }

    const GET: Vector = Vector {
        method: Method::GET,
        url: "https://example.amazonaws.com/",
        service: "service",
        headers: &[],
        token: None,
        body: "",
        expected: "host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
    };

    const VECTORS: [Vector; 9] = [
        GET,
        Vector {
            url: "https://example.amazonaws.com/?Param2=value2&Param1=value1",
            expected: "host;x-amz-date, Signature=b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ..GET
        },
        Vector {
            method: Method::POST,
            expected: "host;x-amz-date, Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ..GET
        },
        Vector {
            method: Method::POST,
            url: "https://example.amazonaws.com/?Param1=value1",
            expected: "host;x-amz-date, Signature=28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
            ..GET
        },
        Vector {
            method: Method::POST,
            headers: &[("my-header1", "value1")],
            expected: "host;my-header1;x-amz-date, Signature=c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
            ..GET
        },
        Vector {
            method: Method::POST,
            headers: &[("my-header1", "VALUE1"), ("traceparent", "00-1")],
            expected: "host;my-header1;x-amz-date, Signature=cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
            ..GET
        },
        Vector {
            method: Method::POST,
            headers: &[("content-type", "application/x-www-form-urlencoded")],
            body: "Param1=value1",
            expected: "content-type;host;x-amz-date, Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ..GET
        },
        Vector {
            method: Method::POST,
            token: Some(TOKEN),
            expected: "host;x-amz-date;x-amz-security-token, Signature=85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
            ..GET
        },
        Vector {
            url: "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
            service: "iam",
            headers: &[("content-type", "application/x-www-form-urlencoded; charset=utf-8")],
            expected: "content-type;host;x-amz-date, Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
            ..GET
        },
    ];

    #[test]
    fn a_signature_is_the_one_of_the_test_suite_of_aws() {
        let at = "2015-08-30T12:36:00Z".parse().unwrap();
        for vector in VECTORS {
            let credentials = AwsCredentials {
                access_key_id: "AKIDEXAMPLE".to_owned(),
                secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
                session_token: vector.token.map(SecretString::from),
                region: "us-east-1".to_owned(),
                service: vector.service.to_owned(),
            };
            let url = vector.url.parse().unwrap();
            let header = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            let mut headers = vector.headers.iter().map(header).collect();
            let body = vector.body.as_bytes();
            credentials.sign(&vector.method, &url, &mut headers, body, at).unwrap();
            let authorization = &headers[header::AUTHORIZATION];
            let (_, end) = authorization.to_str().unwrap().split_once("SignedHeaders=").unwrap();
            assert_eq!(end, vector.expected, "{url}");
            assert!(authorization.is_sensitive());
            assert!(headers.get(SECURITY_TOKEN).is_none_or(HeaderValue::is_sensitive));
        }
    }

    #[test]
    fn paths_and_queries_are_canonical() {
        for (url, path, query) in [
            ("https://a.example", "/", ""),
            ("https://a.example//example//", "/example/", ""),
            ("https://a.example/a%20b/c:d", "/a%2520b/c%3Ad", ""),
            ("https://a.example/x?b=%7e&a=1&b=+&c", "/x", "a=1&b=%2B&b=~&c="),
        ] {
            let url: Url = url.parse().unwrap();
            assert_eq!(
                (canonical_path(&url).as_str(), canonical_query(&url).as_str()),
                (path, query)
            );
        }
    }
}
