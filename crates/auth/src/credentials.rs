//! What a request to the OAuth endpoints carries: its parameters, and who it says it is.
//!
//! Parameters come as JSON or as a form; credentials in the body or as HTTP Basic, never both
//! (RFC 6749, 2.3.1). Whatever is wrong here is `invalid_request`, whatever its shape.

use std::collections::HashMap;

use actix_web::{HttpRequest, http::header};
use base64::{Engine, engine::general_purpose::STANDARD};
use domain::json::{Document, JsonValue};
use platform::http::Form;
use secrecy::SecretString;

/// The parameters that anybody reads; others are ignored (RFC 6749, 3.2), whatever they hold.
const READ: [&str; 5] = ["grant_type", "client_id", "client_secret", "scope", "token"];

/// Who a request says it is, and where it said so.
pub(crate) struct Credentials {
    pub(crate) client_id: String,
    pub(crate) client_secret: SecretString,
    pub(crate) basic: bool,
}

/// The parameters of a request, credentials taken out.
#[derive(Default)]
pub(crate) struct Parameters(HashMap<String, String>);

impl Parameters {
    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).filter(|value| !value.is_empty())
    }
}

/// Reads both out of a request; the text says what is wrong with it.
pub(crate) fn read(
    request: &HttpRequest,
    body: &[u8],
) -> Result<(Parameters, Option<Credentials>), String> {
    let mut parameters = parameters(request, body)?;
    let in_body = match (parameters.take("client_id"), parameters.take("client_secret")) {
        (Some(client_id), Some(secret)) => {
            Some(Credentials { client_id, client_secret: SecretString::from(secret), basic: false })
        }
        (None, Some(_)) => return Err("client_secret without client_id".to_owned()),
        (Some(client_id), None) => {
            // Alongside Basic a client may repeat its id.
            let basic = basic(request)?;
            return match basic {
                Some(basic) if basic.client_id == client_id => Ok((parameters, Some(basic))),
                Some(_) => Err("client_id differs from the Authorization header".to_owned()),
                None => Err("client_secret is missing".to_owned()),
            };
        }
        (None, None) => None,
    };
    match (in_body, basic(request)?) {
        (Some(_), Some(_)) => {
            Err("credentials both in the body and in the Authorization header".to_owned())
        }
        (in_body, basic) => Ok((parameters, in_body.or(basic))),
    }
}

fn parameters(request: &HttpRequest, body: &[u8]) -> Result<Parameters, String> {
    let kind = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    match kind.split(';').next().unwrap_or("").trim().to_ascii_lowercase().as_str() {
        "application/json" => from_json(body),
        "application/x-www-form-urlencoded" => from_form(body),
        _ => Err("send application/json or application/x-www-form-urlencoded".to_owned()),
    }
}

fn from_json(body: &[u8]) -> Result<Parameters, String> {
    let document =
        Document::parse(body).map_err(|error| format!("the body is not JSON: {error}"))?;
    let JsonValue::Object(members) = document.value() else {
        return Err("the body must be a JSON object".to_owned());
    };
    let read = members.iter().filter(|(name, value)| READ.contains(name) && !value.is_null());
    let text = |(name, value): (&str, JsonValue<'_>)| match value {
        JsonValue::String(text) => Ok((name.to_owned(), text.to_owned())),
        _ => Err(format!("{name} must be a string")),
    };
    read.map(text).collect::<Result<_, _>>().map(Parameters)
}

fn from_form(body: &[u8]) -> Result<Parameters, String> {
    let Form(fields) = Form::parse(body).map_err(|error| error.to_string())?;
    let mut parameters = Parameters::default();
    for (name, value) in fields {
        if parameters.0.insert(name.clone(), value).is_some() {
            return Err(format!("{name} is given more than once"));
        }
    }
    Ok(parameters)
}

fn basic(request: &HttpRequest) -> Result<Option<Credentials>, String> {
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
    // RFC 6749 has both parts form-encoded before they are joined.
    let plain = |text: &str| {
        url::form_urlencoded::parse(
            format!("v={}", text.replace('+', "%2B").replace('&', "%26")).as_bytes(),
        )
        .next()
        .map_or_else(String::new, |(_, value)| value.into_owned())
    };
    Ok(Some(Credentials {
        client_id: plain(client_id),
        client_secret: SecretString::from(plain(secret)),
        basic: true,
    }))
}
