//! The form that sets an endpoint.
//!
//! Auth replaces an endpoint as a whole and never shows its secrets, so every change needs them again.

use pages::form::Fields;
use serde_json::{Map, Value};

use crate::form::{Form, Input, Kind, lines};

const TYPE_AGAIN: &str = "Type the secret. A stored one is never shown and cannot be kept.";

/// The inputs of the form. Those of a kind of authentication have its name in the request.
const INPUTS: &[Input] = &[
    Input::text("url", "URL")
        .kind("url")
        .hint("An https URL that the internet can reach. A query is stored as a secret."),
    Input::text("path", "Path"),
    Input::new("timeout_ms", "Timeout of one attempt in milliseconds", "timeout_ms", MILLISECONDS)
        .hint("100 to 120000. Empty: the default."),
    Input::new("message_version", "Message version", "version", Kind::Whole("Choose a version.")),
    Input::new("recovery_replay_days", "Replay after a failure, in days", "recovery_replay_days", DAYS)
        .hint("1 to 30. When the endpoint works again, its dead messages of these days are sent again. Empty: they wait for a replay."),
    Input::new("authentication", "Authentication", "authentication.kind", Kind::Own).sent_empty(),
    Input::text("username", "User name").at("authentication.username").sent_empty().of("basic"),
    secret("basic_password", "Password", "authentication.password", "basic"),
    secret("bearer_token", "Token", "authentication.token", "bearer"),
    Input::text("key_header", "Name of the header")
        .at("authentication.header")
        .hint("For example x-api-key.")
        .sent_empty()
        .of("api_key"),
    secret("api_key", "Key", "authentication.key", "api_key"),
    Input::text("token_url", "Token URL")
        .at("authentication.token_url")
        .kind("url")
        .sent_empty()
        .of("oauth2"),
    Input::text("client_id", "Client id").at("authentication.client_id").sent_empty().of("oauth2"),
    secret("client_secret", "Client secret", "authentication.client_secret", "oauth2"),
    Input::text("scope", "Scope").at("authentication.scope").hint("Can be empty.").of("oauth2"),
    Input::new(
        "credentials_in",
        "Place of the credentials",
        "authentication.credentials_in",
        Kind::Own,
    )
    .sent_empty()
    .of("oauth2"),
    Input::new("certificate", "Certificate", "authentication.certificate", Kind::Area)
        .hint("In PEM, followed by its intermediate certificates.")
        .sent_empty()
        .of("client_certificate"),
    Input::new("private_key", "Private key", "authentication.private_key", Kind::SecretArea)
        .hint("In PEM, without a passphrase.")
        .sent_empty()
        .of("client_certificate"),
    Input::text("access_key_id", "Access key id")
        .at("authentication.access_key_id")
        .sent_empty()
        .of("aws_sigv4"),
    secret(
        "secret_access_key",
        "Secret access key",
        "authentication.secret_access_key",
        "aws_sigv4",
    ),
    Input::new("session_token", "Session token", "authentication.session_token", Kind::Secret)
        .hint("For temporary credentials only.")
        .of("aws_sigv4"),
    Input::text("region", "Region")
        .at("authentication.region")
        .hint("For example eu-central-1.")
        .sent_empty()
        .of("aws_sigv4"),
    Input::text("service", "Service")
        .at("authentication.service")
        .hint("execute-api for Amazon API Gateway, lambda for function URLs.")
        .sent_empty()
        .of("aws_sigv4"),
    Input::new("headers", "Headers of every request", "headers", Kind::Lines)
        .hint("One a line, for example x-tenant: acme. The values are stored as secrets."),
];

const DAYS: Kind = Kind::Whole("Must be a whole number of days.");
const MILLISECONDS: Kind = Kind::Whole("Must be a whole number of milliseconds.");

/// A secret without which a kind of authentication cannot be saved.
const fn secret(
    name: &'static str,
    label: &'static str,
    path: &'static str,
    kind: &'static str,
) -> Input {
    Input::new(name, label, path, Kind::Secret).sent_empty().of(kind)
}

#[derive(Debug, Clone)]
pub(super) struct EndpointForm {
    pub(super) inputs: Form,
    /// Whether URLs that were not edited keep their stored queries.
    pub(super) keeps_query: bool,
}

impl EndpointForm {
    /// The form with the present endpoint, without its secrets.
    pub(super) fn of(endpoint: &Value) -> Self {
        let inputs = Form::of(INPUTS, endpoint);
        let headers = endpoint.get("headers").and_then(Value::as_object).into_iter().flatten();
        let headers: Vec<_> = headers.map(|(name, _)| format!("{name}: ")).collect();
        let url = without_query(inputs.value("url")).to_owned();
        let token_url = without_query(inputs.value("token_url")).to_owned();
        let inputs = inputs.with("url", url).with("token_url", token_url);
        Self { inputs: completed(inputs.with("headers", headers.join("\n"))), keeps_query: true }
    }

    /// The values that are no secrets.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = self.inputs.facts();
        facts.retain(|(name, _)| {
            !["Headers of every request", "Place of the credentials"].contains(name)
        });
        for (_, value) in &mut facts {
            without_query(value).to_owned().clone_into(value);
        }
        facts
    }

    /// The form as it was sent.
    pub(super) fn read(fields: &Fields) -> Self {
        let keeps_query = !fields.is_checked("remove_query");
        Self { inputs: completed(Form::read(INPUTS, fields)), keeps_query }
    }

    /// The request. Fields that cannot be read get errors here, and auth rejects them together with other faults.
    pub(super) fn body(&mut self) -> Value {
        let kind = self.inputs.value("authentication").to_owned();
        for name in self.inputs.missing_secrets(&kind) {
            self.inputs.reject(name, TYPE_AGAIN);
        }
        let mut body = self.inputs.body_of(&kind);
        let headers = match read_headers(self.inputs.value("headers")) {
            Ok(headers) => headers.into(),
            Err(error) => {
                self.inputs.reject("headers", error);
                "".into()
            }
        };
        body.insert("headers".to_owned(), headers);
        body.into()
    }

    /// Removes the values of headers before the form is sent back. They are secrets.
    pub(super) fn hide_headers(&mut self) {
        let names = self.inputs.value("headers").lines().map(|line| {
            line.split_once(':').map_or_else(|| line.to_owned(), |(name, _)| format!("{name}: "))
        });
        let names = names.collect::<Vec<_>>().join("\n");
        self.inputs.set("headers", names);
    }
}

/// A URL without its query, which is a secret.
fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(base, _)| base)
}

/// The form with the first option of each choice that was not made.
fn completed(inputs: Form) -> Form {
    let kind = inputs.value("authentication").to_owned();
    let is_in_body = inputs.value("credentials_in") == "body";
    let inputs = inputs.with("credentials_in", if is_in_body { "body" } else { "basic" });
    if kind.is_empty() { inputs.with("authentication", "none") } else { inputs }
}

fn read_headers(text: &str) -> Result<Map<String, Value>, String> {
    let mut headers = Map::new();
    let mut errors = Vec::new();
    for line in lines(text) {
        match line.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                if headers.insert(name.to_owned(), value.into()).is_some() {
                    errors.push(format!("{name} is there twice."));
                }
            }
            Some((name, _)) if !name.is_empty() => {
                errors.push(format!("Type the value of {name}, or remove the line."));
            }
            _ => errors.push("Each line needs a name, a colon and a value.".to_owned()),
        }
    }
    if errors.is_empty() { Ok(headers) } else { Err(errors.join(" ")) }
}

#[cfg(test)]
mod tests;
