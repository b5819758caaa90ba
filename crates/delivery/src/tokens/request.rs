//! Requests a token from a merchant's token server.

use std::time::Duration;

use oauth2::basic::{BasicClient, BasicErrorResponse};
use oauth2::{AuthType, ClientId, ClientSecret, HttpRequest, HttpResponse, RequestTokenError};
use oauth2::{Scope, TokenResponse, TokenUrl};
use reqwest::header::HeaderValue;
use secrecy::ExposeSecret;
use serde_json::Value;
use tokio::time::Instant;
use url::Url;

use super::{ClientCredentials, Placement, TokenError};
use crate::client::{BodyEnd, GuardedClient, MAX_RESPONSE_BYTES, RequestError, read_body};
use crate::outcome::shorten;

/// Lifetime of a token whose server states none.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(3600);
const MAX_LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

pub(super) async fn request_token(
    client: &GuardedClient,
    credentials: &ClientCredentials,
    deadline: Instant,
) -> Result<(HeaderValue, Duration), TokenError> {
    let oauth = BasicClient::new(ClientId::new(credentials.client_id.clone()))
        .set_client_secret(ClientSecret::new(credentials.client_secret.expose_secret().into()))
        .set_token_uri(TokenUrl::from_url(credentials.token_url.clone()))
        .set_auth_type(match credentials.placement {
            Placement::Body => AuthType::RequestBody,
            Placement::Basic => AuthType::BasicAuth,
        });
    let scopes = credentials.scope.iter().flat_map(|scope| scope.split_whitespace());
    let response = oauth
        .exchange_client_credentials()
        .add_scopes(scopes.map(|scope| Scope::new(scope.to_owned())))
        .request_async(&|request| send(client.clone(), request, deadline))
        .await
        .map_err(token_error)?;
    let token_type = response.token_type().as_ref();
    if !token_type.eq_ignore_ascii_case("bearer") {
        let why = format!("the token type is {token_type:?} and not Bearer");
        return Err(TokenError::InvalidResponse(shorten(why)));
    }
    let mut authorization =
        HeaderValue::from_str(&format!("Bearer {}", response.access_token().secret()))
            .map_err(|error| TokenError::InvalidResponse(error.to_string()))?;
    authorization.set_sensitive(true);
    let lifetime = response.expires_in().unwrap_or(DEFAULT_LIFETIME).min(MAX_LIFETIME);
    Ok((authorization, lifetime))
}

async fn send(
    client: GuardedClient,
    request: HttpRequest,
    deadline: Instant,
) -> Result<HttpResponse, TokenError> {
    let (parts, body) = request.into_parts();
    let url = Url::parse(&parts.uri.to_string())
        .map_err(|error| TokenError::InvalidResponse(error.to_string()))?;
    let request = client.request(parts.method, url)?.headers(parts.headers).body(body);
    let request = request.build().map_err(RequestError::from)?;
    let received = client.send(request).await.map_err(RequestError::from)?;
    let mut response = HttpResponse::new(Vec::new());
    *response.status_mut() = received.status();
    *response.headers_mut() = received.headers().clone();
    let (body, end) = read_body(received, MAX_RESPONSE_BYTES, deadline).await;
    match end {
        BodyEnd::Complete if response.status().is_success() => {
            *response.body_mut() = normalize(&body);
        }
        BodyEnd::Complete => *response.body_mut() = body.to_vec(),
        BodyEnd::TooLarge => return Err(TokenError::InvalidResponse("too large".to_owned())),
        BodyEnd::Failed(error) => return Err(error.into()),
    }
    Ok(response)
}

/// Leaves out the error description, in which a server may quote our secret, and shortens the rest.
fn token_error(error: RequestTokenError<TokenError, BasicErrorResponse>) -> TokenError {
    match error {
        RequestTokenError::Request(error) => error,
        RequestTokenError::ServerResponse(response) => {
            TokenError::Refused(shorten(response.error().as_ref().to_owned()))
        }
        RequestTokenError::Parse(error, _) => {
            TokenError::InvalidResponse(shorten(error.to_string()))
        }
        RequestTokenError::Other(why) => TokenError::InvalidResponse(shorten(why)),
    }
}

/// Rewrites a token response that differs from RFC 6749 as known providers do: `expires_in` as a string (Azure
/// AD v1) or a decimal, zero or less for a token that is used once, and no `token_type`. Fields that nobody
/// reads are left out. A body that is not an object stays as it is.
fn normalize(body: &[u8]) -> Vec<u8> {
    let Ok(Value::Object(mut response)) = serde_json::from_slice(body) else {
        return body.to_vec();
    };
    response.retain(|name, value| {
        matches!(name.as_str(), "access_token" | "token_type" | "expires_in") && !value.is_null()
    });
    response.entry("token_type").or_insert_with(|| "bearer".into());
    if let Some(expires_in) = response.get_mut("expires_in")
        && let Some(seconds) = whole_seconds(expires_in)
    {
        *expires_in = seconds.into();
    }
    Value::Object(response).to_string().into_bytes()
}

fn whole_seconds(expires_in: &Value) -> Option<u64> {
    let seconds = match expires_in {
        Value::String(text) => text.trim().parse().ok()?,
        number => number.as_f64()?,
    };
    Some(Duration::try_from_secs_f64(seconds.max(0.0)).ok()?.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expected: &str) {
        let normalized: Value = serde_json::from_slice(&normalize(body.as_bytes())).unwrap();
        assert_eq!(normalized, serde_json::from_str::<Value>(expected).unwrap());
    }

    #[test]
    fn a_token_response_is_read_leniently() {
        let plain = r#"{"access_token":"a","token_type":"bearer","expires_in":3600}"#;
        check(plain, plain);
        for expires_in in ["\"3600\"", "3600.7", "\"3600.7\"", "3.6e3"] {
            check(&format!(r#"{{"access_token":"a","expires_in":{expires_in}}}"#), plain);
        }
        check(
            r#"{"access_token":"a","token_type":null,"expires_in":null,"scope":["x"]}"#,
            r#"{"access_token":"a","token_type":"bearer"}"#,
        );
        for expires_in in ["0", "-1", "\"-3600\"", "-0.5"] {
            let used_once = r#"{"access_token":"a","token_type":"bearer","expires_in":0}"#;
            check(&format!(r#"{{"access_token":"a","expires_in":{expires_in}}}"#), used_once);
        }
        // An unreadable lifetime stays, and is an error.
        for expires_in in ["\"soon\"", "true", "1e300"] {
            let body = format!(
                r#"{{"access_token":"a","token_type":"bearer","expires_in":{expires_in}}}"#
            );
            check(&body, &body);
        }
        assert_eq!(normalize(b"<html>"), b"<html>");
    }
}
