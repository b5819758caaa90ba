//! The merchant's token endpoint. A token contains its number, so no tokens are stored.

use std::sync::atomic::{AtomicU64, Ordering};

use actix_web::http::{StatusCode, header::HeaderMap};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};

const PREFIX: &str = "sandbox-token-";

#[derive(Debug)]
pub(crate) struct Tokens {
    issued: AtomicU64,
    lifetime: u32,
}

#[derive(Default, Deserialize)]
struct Request {
    grant_type: Option<String>,
    client_id: Option<String>,
    client_secret: Option<String>,
    scope: Option<String>,
}

impl Tokens {
    pub(crate) fn new(lifetime: u32) -> Self {
        Self { issued: AtomicU64::new(0), lifetime }
    }

    pub(crate) fn issued(&self) -> u64 {
        self.issued.load(Ordering::Relaxed)
    }

    /// The number of the request's token, if the sandbox issued it.
    pub(crate) fn number(headers: &HeaderMap) -> Option<u64> {
        let (scheme, token) = headers.get("authorization")?.to_str().ok()?.split_once(' ')?;
        let number = token.strip_prefix(PREFIX).filter(|_| scheme.eq_ignore_ascii_case("bearer"));
        number?.parse().ok()
    }

    /// Responds to a token request. Any client with an ID and a secret gets a token.
    pub(crate) fn issue(&self, headers: &HeaderMap, body: &[u8], now: i64) -> (StatusCode, Value) {
        let request = parse(headers, body);
        if request.grant_type.as_deref() != Some("client_credentials") {
            let error = json!({"error": "unsupported_grant_type"});
            return (StatusCode::BAD_REQUEST, error);
        }
        let is_given = |value: &Option<String>| value.as_ref().is_some_and(|it| !it.is_empty());
        if !is_given(&request.client_id) || !is_given(&request.client_secret) {
            return (StatusCode::UNAUTHORIZED, json!({"error": "invalid_client"}));
        }
        let number = self.issued.fetch_add(1, Ordering::Relaxed) + 1;
        let response = json!({
            "access_token": format!("{PREFIX}{number}"),
            "token_type": "Bearer",
            "expires_in": self.lifetime,
            "scope": request.scope.unwrap_or_default(),
            "created_at": now,
        });
        (StatusCode::OK, response)
    }
}

/// Parses a JSON or form body. Basic credentials override those of the body.
fn parse(headers: &HeaderMap, body: &[u8]) -> Request {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let mut request = if header("content-type").is_some_and(|kind| kind.contains("json")) {
        serde_json::from_slice(body).unwrap_or_default()
    } else {
        actix_web::web::Query::<Request>::from_query(&String::from_utf8_lossy(body))
            .map(actix_web::web::Query::into_inner)
            .unwrap_or_default()
    };
    let basic = header("authorization")
        .and_then(|value| value.strip_prefix("Basic "))
        .and_then(|encoded| BASE64_STANDARD.decode(encoded).ok())
        .and_then(|pair| String::from_utf8(pair).ok());
    if let Some((id, secret)) = basic.as_deref().and_then(|pair| pair.split_once(':')) {
        request.client_id = Some(id.to_owned());
        request.client_secret = Some(secret.to_owned());
    }
    request
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

    use super::Tokens;

    #[track_caller]
    fn check(headers: &[(&'static str, &'static str)], body: &str, expected: u16) {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let (status, response) = Tokens::new(60).issue(&headers, body.as_bytes(), 0);
        assert_eq!(status, expected, "{response}");
    }

    #[test]
    fn forms_json_and_basic_credentials_are_accepted() {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let json = ("content-type", "application/json");
        let basic = ("authorization", "Basic aWQ6c2VjcmV0");
        check(&[form], "grant_type=client_credentials&client_id=a&client_secret=b%2Fc", 200);
        check(&[form, basic], "grant_type=client_credentials", 200);
        check(
            &[json],
            r#"{"grant_type":"client_credentials","client_id":"a","client_secret":"b"}"#,
            200,
        );
        check(&[form], "grant_type=client_credentials", 401);
        check(&[form], "grant_type=client_credentials&client_id=a&client_secret=", 401);
        check(&[form, basic], "grant_type=password", 400);
        check(&[json, basic], "not json", 400);
    }
}
