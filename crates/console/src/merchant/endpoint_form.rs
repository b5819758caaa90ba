//! The form that sets an endpoint.
//!
//! Auth replaces an endpoint as a whole and never shows its secrets, so every change needs them again.

use pages::{
    api::ErrorBody,
    form::{Field, Fields},
};
use serde_json::{Map, Value, json};

use super::{EndpointView, policy_form::number, settings_form::optional};
use crate::error::{error_below, sentence};

const TYPE_AGAIN: &str = "Type the secret. A stored one is never shown and cannot be kept.";

#[derive(Debug, Clone, Default)]
pub(super) struct EndpointForm {
    pub(super) url: Field,
    /// Whether URLs that were not edited keep their stored queries.
    pub(super) keeps_query: bool,
    pub(super) path: Field,
    pub(super) timeout_ms: Field,
    /// The message version, or empty for the version of the contract.
    pub(super) version: Field,
    /// `none`, `basic`, `bearer`, `api_key`, `oauth2`, `client_certificate` or `aws_sigv4`.
    pub(super) authentication: Field,
    pub(super) username: Field,
    pub(super) basic_password: Field,
    pub(super) bearer_token: Field,
    pub(super) key_header: Field,
    pub(super) api_key: Field,
    pub(super) token_url: Field,
    pub(super) client_id: Field,
    pub(super) client_secret: Field,
    pub(super) scope: Field,
    /// `basic` or `body`.
    pub(super) credentials_in: Field,
    pub(super) certificate: Field,
    pub(super) private_key: Field,
    pub(super) access_key_id: Field,
    pub(super) secret_access_key: Field,
    pub(super) session_token: Field,
    pub(super) region: Field,
    pub(super) service: Field,
    /// One header a line: `name: value`.
    pub(super) headers: Field,
    /// The reason why the whole form was rejected.
    pub(super) message: Option<String>,
}

impl EndpointForm {
    /// The form with the present endpoint, without its secrets.
    pub(super) fn of(endpoint: &EndpointView) -> Self {
        let authentication = &endpoint.authentication;
        let kind = if authentication.kind.is_empty() { "none" } else { &authentication.kind };
        let headers: Vec<_> = endpoint.headers.keys().map(|name| format!("{name}: ")).collect();
        Self {
            url: Field::new(without_query(endpoint.url.as_deref().unwrap_or_default())),
            keeps_query: true,
            path: Field::new(endpoint.path.clone().unwrap_or_default()),
            timeout_ms: Field::new(
                endpoint.timeout_ms.map(|millis| millis.to_string()).unwrap_or_default(),
            ),
            version: Field::new(endpoint.version.map(|it| it.to_string()).unwrap_or_default()),
            authentication: Field::new(kind),
            username: Field::new(authentication.username.as_str()),
            key_header: Field::new(authentication.header.as_str()),
            token_url: Field::new(without_query(&authentication.token_url)),
            client_id: Field::new(authentication.client_id.as_str()),
            scope: Field::new(authentication.scope.clone().unwrap_or_default()),
            credentials_in: Field::new(match authentication.credentials_in.as_str() {
                "body" => "body",
                _ => "basic",
            }),
            certificate: Field::new(authentication.certificate.as_str()),
            access_key_id: Field::new(authentication.access_key_id.as_str()),
            region: Field::new(authentication.region.as_str()),
            service: Field::new(authentication.service.as_str()),
            headers: Field::new(headers.join("\n")),
            ..Self::default()
        }
    }

    /// The values that are no secrets.
    pub(super) fn facts(&self) -> Vec<(&'static str, String)> {
        let fields = [
            ("URL", &self.url),
            ("Path", &self.path),
            ("Timeout in milliseconds", &self.timeout_ms),
            ("Message version", &self.version),
            ("Authentication", &self.authentication),
            ("User name", &self.username),
            ("Header of the key", &self.key_header),
            ("Token URL", &self.token_url),
            ("Client id", &self.client_id),
            ("Scope", &self.scope),
            ("Certificate", &self.certificate),
            ("Access key id", &self.access_key_id),
            ("Region", &self.region),
            ("AWS service", &self.service),
        ];
        fields.map(|(name, field)| (name, without_query(&field.value).to_owned())).into()
    }

    /// The form as it was sent.
    pub(super) fn read(fields: &Fields) -> Self {
        let field = |name| Field::new(fields.text(name));
        Self {
            url: field("url"),
            keeps_query: !fields.is_checked("remove_query"),
            path: field("path"),
            timeout_ms: field("timeout_ms"),
            version: field("message_version"),
            authentication: field("authentication"),
            username: field("username"),
            basic_password: field("basic_password"),
            bearer_token: field("bearer_token"),
            key_header: field("key_header"),
            api_key: field("api_key"),
            token_url: field("token_url"),
            client_id: field("client_id"),
            client_secret: field("client_secret"),
            scope: field("scope"),
            credentials_in: field("credentials_in"),
            certificate: field("certificate"),
            private_key: field("private_key"),
            access_key_id: field("access_key_id"),
            secret_access_key: field("secret_access_key"),
            session_token: field("session_token"),
            region: field("region"),
            service: field("service"),
            headers: field("headers"),
            message: None,
        }
    }

    /// The request. A field that cannot be read gets an error here, and is sent with another type: auth rejects it
    /// together with the faults of other fields.
    pub(super) fn body(&mut self) -> Value {
        let timeout = match self.timeout_ms.value.as_str() {
            "" => Value::Null,
            _ => number(&mut self.timeout_ms, "Must be a whole number of milliseconds.", |text| {
                text.parse::<u32>().ok().map(Value::from)
            }),
        };
        json!({
            "url": optional(&self.url),
            "path": optional(&self.path),
            "timeout_ms": timeout,
            "version": self.version.value.parse::<u16>().ok(),
            "headers": read_headers(&mut self.headers).map_or("".into(), Value::Object),
            "authentication": self.authentication(),
        })
    }

    /// A secret that was not typed is `null`, which auth rejects.
    fn authentication(&mut self) -> Value {
        let kind = self.authentication.value.clone();
        let secret = match kind.as_str() {
            "basic" => &mut self.basic_password,
            "bearer" => &mut self.bearer_token,
            "api_key" => &mut self.api_key,
            "oauth2" => &mut self.client_secret,
            "client_certificate" => &mut self.private_key,
            "aws_sigv4" => &mut self.secret_access_key,
            _ => return json!({ "kind": "none" }),
        };
        if secret.value.is_empty() {
            secret.reject(TYPE_AGAIN);
        }
        let secret = Some(secret.value.clone()).filter(|secret| !secret.is_empty());
        match kind.as_str() {
            "basic" => {
                json!({ "kind": kind, "username": self.username.value, "password": secret })
            }
            "bearer" => json!({ "kind": kind, "token": secret }),
            "api_key" => json!({ "kind": kind, "header": self.key_header.value, "key": secret }),
            "client_certificate" => json!({
                "kind": kind, "certificate": self.certificate.value, "private_key": secret,
            }),
            "aws_sigv4" => json!({
                "kind": kind, "access_key_id": self.access_key_id.value, "secret_access_key": secret,
                "session_token": optional(&self.session_token), "region": self.region.value,
                "service": self.service.value,
            }),
            _ => json!({
                "kind": kind, "token_url": self.token_url.value, "client_id": self.client_id.value,
                "client_secret": secret, "scope": optional(&self.scope),
                "credentials_in": self.credentials_in.value,
            }),
        }
    }

    /// Puts the errors of auth beside the fields.
    pub(super) fn reject(&mut self, body: &ErrorBody) {
        let secret = match self.authentication.value.as_str() {
            "basic" => (&mut self.basic_password, "$.authentication.password"),
            "bearer" => (&mut self.bearer_token, "$.authentication.token"),
            "api_key" => (&mut self.api_key, "$.authentication.key"),
            "client_certificate" => (&mut self.private_key, "$.authentication.private_key"),
            "aws_sigv4" => (&mut self.secret_access_key, "$.authentication.secret_access_key"),
            _ => (&mut self.client_secret, "$.authentication.client_secret"),
        };
        let fields = [
            secret,
            (&mut self.url, "$.url"),
            (&mut self.path, "$.path"),
            (&mut self.timeout_ms, "$.timeout_ms"),
            (&mut self.version, "$.version"),
            (&mut self.authentication, "$.authentication.kind"),
            (&mut self.username, "$.authentication.username"),
            (&mut self.key_header, "$.authentication.header"),
            (&mut self.token_url, "$.authentication.token_url"),
            (&mut self.client_id, "$.authentication.client_id"),
            (&mut self.scope, "$.authentication.scope"),
            (&mut self.credentials_in, "$.authentication.credentials_in"),
            (&mut self.certificate, "$.authentication.certificate"),
            (&mut self.access_key_id, "$.authentication.access_key_id"),
            (&mut self.session_token, "$.authentication.session_token"),
            (&mut self.region, "$.authentication.region"),
            (&mut self.service, "$.authentication.service"),
        ];
        for (field, path) in fields {
            if let Some(text) = body.field(path) {
                field.reject(sentence(&text));
            }
        }
        if let Some(error) = error_below(body, "$.headers") {
            self.headers.reject(error);
        }
        self.message = Some(sentence(&body.message));
    }

    /// Removes the values of headers before the form is sent back. They are secrets.
    pub(super) fn hide_headers(&mut self) {
        let names = self.headers.value.lines().map(|line| {
            line.split_once(':').map_or_else(|| line.to_owned(), |(name, _)| format!("{name}: "))
        });
        self.headers.value = names.collect::<Vec<_>>().join("\n");
    }
}

/// A URL without its query, which is a secret.
fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(base, _)| base)
}

fn read_headers(field: &mut Field) -> Option<Map<String, Value>> {
    let (mut headers, mut errors) = (Map::new(), Vec::new());
    for line in field.value.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let error = match line.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => headers
                .insert(name.to_owned(), value.into())
                .map(|_| format!("{name} is there twice.")),
            Some((name, _)) if !name.is_empty() => {
                Some(format!("Type the value of {name}, or remove the line."))
            }
            _ => Some("Each line needs a name, a colon and a value.".to_owned()),
        };
        errors.extend(error);
    }
    if errors.is_empty() {
        return Some(headers);
    }
    field.reject(errors.join(" "));
    None
}

#[cfg(test)]
mod tests;
