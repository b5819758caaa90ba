//! The form that sends a request to an operation.

use pages::{api::RawRequest, form::Field, path};
use reqwest::Method;
use serde::de::IgnoredAny;
use url::form_urlencoded;
use uuid::Uuid;

use super::{
    document::{Operation, Parameter},
    prose::{Paragraph, paragraphs},
    schema::{Schemas, plain},
};
use crate::record_list::indented;

const BODY: &str = "body";
const CONFIRM: &str = "confirm";
const IDEMPOTENCY_KEY: &str = "header:Idempotency-Key";

/// A field of the form for one parameter.
#[derive(Debug)]
pub(super) struct ParameterField {
    /// The name in the form, for example `header:X-Service-Id`.
    pub(super) key: String,
    /// The identifier of the element.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) place: String,
    pub(super) kind: String,
    pub(super) about: Vec<Paragraph>,
    pub(super) is_required: bool,
    /// The values to choose from; any text if empty.
    pub(super) options: Vec<String>,
    pub(super) field: Field,
}

/// The request body, as the person edits it.
#[derive(Debug)]
pub(super) struct BodyInput {
    pub(super) content_type: String,
    pub(super) is_required: bool,
    pub(super) field: Field,
}

#[derive(Debug)]
pub(super) struct RequestForm {
    pub(super) parameters: Vec<ParameterField>,
    pub(super) body: Option<BodyInput>,
    /// Requests that may change something need a tick.
    pub(super) needs_confirmation: bool,
    pub(super) is_confirmed: bool,
    pub(super) confirmation_error: Option<&'static str>,
}

impl RequestForm {
    /// The form with the values of the document's examples.
    pub(super) fn new(operation: &Operation, schemas: &Schemas) -> Self {
        let body = operation.content().map(|(content_type, content)| {
            let example = content.example.as_ref().map(|example| example.get());
            let text = match example.map(serde_json::from_str::<String>) {
                Some(Ok(text)) => text,
                _ => indented(example.unwrap_or_default()),
            };
            BodyInput {
                content_type: content_type.to_owned(),
                is_required: operation.request_body.as_ref().is_some_and(|body| body.required),
                field: Field::new(text),
            }
        });
        Self {
            parameters: operation
                .parameters
                .iter()
                .map(|parameter| ParameterField::new(parameter, schemas))
                .collect(),
            body,
            needs_confirmation: operation.method != "GET",
            is_confirmed: false,
            confirmation_error: None,
        }
    }

    /// Gives the request an idempotency key, if the operation takes one: a form that is sent twice, by a double click
    /// or a reload, is then one request.
    pub(super) fn renew_key(&mut self) {
        let is_key = |it: &&mut ParameterField| it.key.eq_ignore_ascii_case(IDEMPOTENCY_KEY);
        if let Some(parameter) = self.parameters.iter_mut().find(is_key) {
            parameter.field = Field::new(Uuid::new_v4().to_string());
        }
    }

    /// Takes over the fields that the person sent.
    pub(super) fn fill(&mut self, sent: &[(String, String)]) {
        let value = |key: &str| {
            let found = sent.iter().find(|(name, _)| name == key);
            Field::new(found.map(|(_, value)| value.trim()).unwrap_or_default())
        };
        for parameter in &mut self.parameters {
            parameter.field = value(&parameter.key);
        }
        if let Some(body) = &mut self.body {
            body.field = value(BODY);
        }
        self.is_confirmed = !value(CONFIRM).value.is_empty();
    }

    /// Whether the request can be sent. Otherwise the fields have their errors.
    pub(super) fn check(&mut self) -> bool {
        self.parameters.iter_mut().for_each(ParameterField::check);
        if let Some(body) = &mut self.body {
            body.check();
        }
        if self.needs_confirmation && !self.is_confirmed {
            self.confirmation_error = Some("Tick the box to send this request.");
        }
        self.confirmation_error.is_none()
            && self.parameters.iter().all(|parameter| parameter.field.is_valid())
            && self.body.as_ref().is_none_or(|body| body.field.is_valid())
    }

    /// The request. Path parameters without a value stay placeholders.
    pub(super) fn request(&self, operation: &Operation) -> RawRequest {
        let given = |place: &'static str| {
            self.parameters
                .iter()
                .filter(move |parameter| parameter.place == place && !parameter.is_empty())
                .map(|parameter| (parameter.name.as_str(), parameter.field.value.as_str()))
        };
        let mut target = operation.path.clone();
        for (name, value) in given("path") {
            target = target.replace(&format!("{{{name}}}"), &path!(value));
        }
        let query: String =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(given("query")).finish();
        if !query.is_empty() {
            target = format!("{target}?{query}");
        }
        let body = self.body.as_ref().filter(|body| !body.field.value.is_empty());
        let content_type = body.map(|body| ("Content-Type", body.content_type.as_str()));
        let headers = given("header").chain(content_type);
        RawRequest {
            method: operation.method.parse().unwrap_or(Method::GET),
            target,
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            body: body.map(|body| body.field.value.clone()),
            needs_token: operation.needs_token(),
        }
    }
}

impl ParameterField {
    fn new(parameter: &Parameter, schemas: &Schemas) -> Self {
        let options = schemas.options(&parameter.schema);
        let only = (options.len() == 1).then(|| options.first().cloned()).flatten();
        let example = parameter.example.as_ref().map(plain).or(only);
        let value = example.filter(|_| parameter.required).unwrap_or_default();
        Self {
            key: format!("{}:{}", parameter.place, parameter.name),
            id: format!("{}-{}", parameter.place, parameter.name),
            name: parameter.name.clone(),
            place: parameter.place.clone(),
            kind: schemas.kind(&parameter.schema),
            about: paragraphs(&parameter.description),
            is_required: parameter.required,
            options,
            field: Field::new(value),
        }
    }

    fn is_empty(&self) -> bool {
        self.field.value.is_empty()
    }

    fn check(&mut self) {
        let value = self.field.value.as_str();
        let is_visible = |letter: char| letter.is_ascii_graphic() || letter == ' ';
        let error = match self.place.as_str() {
            _ if self.is_required && value.is_empty() => "is required",
            // URL libraries remove these segments, so the request would go to another path.
            "path" if matches!(value, "." | "..") => "must not be . or ..",
            "header" if !value.chars().all(is_visible) => "must have visible ASCII characters only",
            _ => return,
        };
        self.field.reject(error);
    }
}

impl BodyInput {
    fn check(&mut self) {
        if self.field.value.is_empty() {
            if self.is_required {
                self.field.reject("is required");
            }
        } else if self.content_type == "application/json"
            && let Err(error) = serde_json::from_str::<IgnoredAny>(&self.field.value)
        {
            self.field.reject(format!("is not valid JSON: {error}"));
        }
    }
}

#[cfg(test)]
mod tests;
