//! Parameters and credentials of a request to the OAuth endpoints.
//!
//! Parameters come as JSON or as a form. Credentials come in the body or as HTTP Basic
//! authentication, but not both (RFC 6749, 2.3.1).

use std::collections::HashMap;

use actix_web::{HttpRequest, http::header};
use base64::{Engine, engine::general_purpose::STANDARD};
use domain::json::{Document, JsonValue};
use platform::http::Form;
use secrecy::SecretString;

use crate::tokens::ClientCredentials;

/// Other parameters are ignored, whatever their value (RFC 6749, 3.2).
const KNOWN_PARAMETERS: [&str; 5] = ["grant_type", "client_id", "client_secret", "scope", "token"];

pub(super) struct OauthRequest {
    pub(super) credentials: Option<ClientCredentials>,
    pub(super) grant_type: Option<String>,
    pub(super) scope: Option<String>,
    pub(super) token: Option<String>,
}

impl OauthRequest {
    /// The error is the description of an `invalid_request`.
    pub(super) fn read(request: &HttpRequest, body: &[u8]) -> Result<Self, String> {
        let mut parameters = read_parameters(request, body)?;
        let mut take = |name: &str| parameters.remove(name).filter(|value| !value.is_empty());
        let credentials = match (take("client_id"), take("client_secret"), read_basic(request)?) {
            (Some(_), Some(_), Some(_)) => {
                return Err("credentials are in the body and the Authorization header".to_owned());
            }
            (Some(client_id), Some(secret), None) => {
                let client_secret = SecretString::from(secret);
                Some(ClientCredentials { client_id, client_secret, used_basic_auth: false })
            }
            (None, Some(_), _) => return Err("client_id is missing".to_owned()),
            (Some(_), None, None) => return Err("client_secret is missing".to_owned()),
            // The body may repeat the client id of the header.
            (Some(client_id), None, Some(basic)) if basic.client_id != client_id => {
                return Err("client_id differs from the Authorization header".to_owned());
            }
            (_, None, basic) => basic,
        };
        let grant_type = take("grant_type");
        let scope = take("scope");
        let token = take("token");
        Ok(Self { credentials, grant_type, scope, token })
    }
}

fn read_parameters(request: &HttpRequest, body: &[u8]) -> Result<HashMap<String, String>, String> {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or("");
    match content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase().as_str() {
        "application/json" => read_json(body),
        "application/x-www-form-urlencoded" => read_form(body),
        _ => Err("send application/json or application/x-www-form-urlencoded".to_owned()),
    }
}

fn read_json(body: &[u8]) -> Result<HashMap<String, String>, String> {
    let document =
        Document::parse(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    let JsonValue::Object(members) = document.value() else {
        return Err("the body must be a JSON object".to_owned());
    };
    let known =
        members.iter().filter(|(name, value)| KNOWN_PARAMETERS.contains(name) && !value.is_null());
    let text = |(name, value): (&str, JsonValue<'_>)| match value {
        JsonValue::String(text) => Ok((name.to_owned(), text.to_owned())),
        _ => Err(format!("{name} must be a string")),
    };
    known.map(text).collect()
}

fn read_form(body: &[u8]) -> Result<HashMap<String, String>, String> {
    let Form(fields) = Form::parse(body).map_err(|error| error.to_string())?;
    let mut parameters = HashMap::new();
    for (name, value) in fields {
        if parameters.insert(name.clone(), value).is_some() {
            return Err(format!("{name} occurs more than once"));
        }
    }
    Ok(parameters)
}

fn read_basic(request: &HttpRequest) -> Result<Option<ClientCredentials>, String> {
    let Some(value) = request.headers().get(header::AUTHORIZATION) else { return Ok(None) };
    let malformed = || "the Authorization header is not HTTP Basic".to_owned();
    let value = value.to_str().map_err(|_not_ascii| malformed())?;
    let (scheme, encoded) = value.split_once(' ').ok_or_else(malformed)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(malformed());
    }
    let decoded = STANDARD.decode(encoded.trim()).map_err(|_not_base64| malformed())?;
    let decoded = String::from_utf8(decoded).map_err(|_not_utf8| malformed())?;
    let (client_id, secret) = decoded.split_once(':').ok_or_else(malformed)?;
    Ok(Some(ClientCredentials {
        client_id: percent_decode(client_id),
        client_secret: SecretString::from(percent_decode(secret)),
        used_basic_auth: true,
    }))
}

/// Decodes one part of the credentials, which RFC 6749 requires to be form-encoded. A literal `+`
/// stays, because many clients do not encode it.
fn percent_decode(text: &str) -> String {
    let field = format!("v={}", text.replace('+', "%2B").replace('&', "%26"));
    let mut pairs = url::form_urlencoded::parse(field.as_bytes());
    pairs.next().map_or_else(String::new, |(_, value)| value.into_owned())
}
