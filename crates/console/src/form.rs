//! Forms as data: a table of inputs, each with its label, its place in the JSON of the API and its kind.

use askama::Template;
use pages::{
    api::ErrorBody,
    form::{Field, Fields},
};
use serde_json::{Map, Number, Value, json};

use crate::error::{error_below, sentence};

#[derive(Debug)]
pub(crate) struct Input {
    /// The name in the form.
    pub(crate) name: &'static str,
    label: &'static str,
    /// The path in the request and in its errors, for example `address.zip`.
    path: &'static str,
    kind: Kind,
    hint: &'static str,
    /// Whether the browser asks for a value.
    is_required: bool,
    /// Whether an empty value is sent as a text. Other empty values are null.
    is_text: bool,
    /// The value of the form's choice to which the input belongs.
    choice: Option<&'static str>,
    /// The value of `autocomplete`.
    autocomplete: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An input of this type, for example `url`.
    Text(&'static str),
    /// A text in capital letters.
    Capitals,
    /// A whole number, with the error of a text that is none.
    Whole(&'static str),
    /// A number, with the error of a text that is none.
    Number(&'static str),
    /// A text with several lines.
    Area,
    /// A list with one entry a line.
    Lines,
    Check,
    /// A secret, which is never shown.
    Secret,
    /// A secret with several lines.
    SecretArea,
    /// A code of an authenticator app, which is never shown.
    Code,
    /// A value whose element the page has.
    Own,
}

impl Input {
    pub(crate) const fn new(
        name: &'static str,
        label: &'static str,
        path: &'static str,
        kind: Kind,
    ) -> Self {
        let autocomplete = if let Kind::Secret = kind { "new-password" } else { "off" };
        Self {
            name,
            label,
            path,
            kind,
            hint: "",
            is_required: false,
            is_text: false,
            choice: None,
            autocomplete,
        }
    }

    /// A text whose path is its name.
    pub(crate) const fn text(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, name, Kind::Text("text"))
    }

    /// A check box whose path is its name.
    pub(crate) const fn check(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, name, Kind::Check)
    }

    pub(crate) const fn at(self, path: &'static str) -> Self {
        Self { path, ..self }
    }

    pub(crate) const fn kind(self, kind: &'static str) -> Self {
        Self { kind: Kind::Text(kind), ..self }
    }

    pub(crate) const fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    pub(crate) const fn required(self) -> Self {
        Self { is_required: true, is_text: true, ..self }
    }

    pub(crate) const fn sent_empty(self) -> Self {
        Self { is_text: true, ..self }
    }

    pub(crate) const fn of(self, choice: &'static str) -> Self {
        Self { choice: Some(choice), ..self }
    }

    pub(crate) const fn autocomplete(self, autocomplete: &'static str) -> Self {
        Self { autocomplete, ..self }
    }

    pub(crate) fn label(&self) -> &'static str {
        self.label
    }

    pub(crate) fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::SecretArea | Kind::Code)
    }

    /// Whether a choice leaves out this input.
    fn is_left_out(&self, choice: &str) -> bool {
        self.choice.is_some_and(|own| own != choice)
    }

    /// A stored value as the form shows it. Secrets are not shown.
    fn shown(&self, stored: &Value) -> String {
        match stored {
            _ if self.is_secret() => String::new(),
            Value::String(text) => text.clone(),
            Value::Number(number) => number.as_f64().map(|it| it.to_string()).unwrap_or_default(),
            Value::Bool(true) => "true".to_owned(),
            Value::Array(entries) => {
                entries.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
            }
            _ => String::new(),
        }
    }

    /// The value of the request, or the error of a text that is none.
    fn value(&self, typed: &str) -> Result<Value, &'static str> {
        let (number, error) = match self.kind {
            Kind::Check => return Ok((!typed.is_empty()).into()),
            Kind::Lines => return Ok(lines(typed).into()),
            _ if typed.is_empty() && (self.is_secret() || !self.is_text) => return Ok(Value::Null),
            Kind::Whole(error) => (typed.parse::<u32>().ok().map(Value::from), error),
            Kind::Number(error) => {
                let number = typed.replace(',', ".").parse().ok().and_then(Number::from_f64);
                (number.map(Value::from), error)
            }
            _ => return Ok(typed.into()),
        };
        number.ok_or(error)
    }
}

/// The lines of a text that are not empty.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// A password as it was typed: spaces around it count.
pub(crate) fn untrimmed<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.pairs().iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
}

/// A form with its values and errors.
#[derive(Debug, Clone)]
pub(crate) struct Form {
    inputs: &'static [Input],
    /// One field for each input.
    fields: Vec<Field>,
    /// The reason why the whole form was rejected.
    pub(crate) message: Option<String>,
}

impl Form {
    fn new(inputs: &'static [Input], value: impl Fn(&Input) -> String) -> Self {
        let fields = inputs.iter().map(|input| Field::new(value(input))).collect();
        Self { inputs, fields, message: None }
    }

    pub(crate) fn empty(inputs: &'static [Input]) -> Self {
        Self::new(inputs, |_| String::new())
    }

    /// The form with stored values.
    pub(crate) fn of(inputs: &'static [Input], stored: &Value) -> Self {
        Self::new(inputs, |input| {
            let pointer = format!("/{}", input.path.replace('.', "/"));
            stored.pointer(&pointer).map(|value| input.shown(value)).unwrap_or_default()
        })
    }

    /// The form as it was sent.
    pub(crate) fn read(inputs: &'static [Input], fields: &Fields) -> Self {
        Self::new(inputs, |input| {
            let typed = fields.text(input.name);
            if input.kind == Kind::Capitals { typed.to_uppercase() } else { typed.to_owned() }
        })
    }

    /// The form with another value of an input.
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        if let Some(field) = self.field_mut(name) {
            *field = Field::new(value);
        }
        self
    }

    fn entries(&self) -> impl Iterator<Item = (&'static Input, &Field)> {
        self.inputs.iter().zip(&self.fields)
    }

    fn field_mut(&mut self, name: &str) -> Option<&mut Field> {
        let place = self.inputs.iter().position(|input| input.name == name)?;
        self.fields.get_mut(place)
    }

    pub(crate) fn value(&self, name: &str) -> &str {
        self.entries().find(|(input, _)| input.name == name).map_or("", |(_, it)| &it.value)
    }

    pub(crate) fn error(&self, name: &str) -> Option<&str> {
        self.entries().find(|(input, _)| input.name == name)?.1.error.as_deref()
    }

    pub(crate) fn is_checked(&self, name: &str) -> bool {
        !self.value(name).is_empty()
    }

    /// Whether no input has an error.
    pub(crate) fn is_valid(&self) -> bool {
        self.fields.iter().all(Field::is_valid)
    }

    /// Replaces the value of an input and keeps its error.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        if let Some(field) = self.field_mut(name) {
            field.value = value;
        }
    }

    /// The secrets of a choice that have to be typed.
    pub(crate) fn missing_secrets(&self, choice: &str) -> Vec<&'static str> {
        let is_missing = |(it, field): &(&Input, &Field)| {
            it.choice == Some(choice) && it.is_secret() && it.is_text && field.value.is_empty()
        };
        self.entries().filter(is_missing).map(|(input, _)| input.name).collect()
    }

    /// Sets the error of an input, unless it has one.
    pub(crate) fn reject(&mut self, name: &str, error: impl Into<String>) {
        if let Some(field) = self.field_mut(name) {
            field.reject(error);
        }
    }

    /// Puts the errors of a service beside the inputs that have none.
    pub(crate) fn reject_all(&mut self, body: &ErrorBody) {
        let sent = self.inputs.iter().zip(&mut self.fields).filter(|(it, _)| !it.path.is_empty());
        for (input, field) in sent {
            let path = format!("$.{}", input.path);
            let error = match input.kind {
                Kind::Lines | Kind::Own => error_below(body, &path),
                _ => body.field(&path).map(|text| sentence(&text)),
            };
            if let Some(error) = error {
                field.reject(error);
            }
        }
        self.message = Some(sentence(&body.message));
    }

    /// The request.
    pub(crate) fn body(&mut self) -> Map<String, Value> {
        self.body_of("")
    }

    /// The request without the inputs of other choices. A text that is no number gets an error here, and is sent as
    /// it is: the service rejects it together with the faults of other inputs.
    pub(crate) fn body_of(&mut self, choice: &str) -> Map<String, Value> {
        let mut body = Map::new();
        for (input, field) in self.inputs.iter().zip(&mut self.fields) {
            if input.is_left_out(choice) || input.path.is_empty() {
                continue;
            }
            let value = input.value(&field.value).unwrap_or_else(|error| {
                field.reject(error);
                field.value.as_str().into()
            });
            insert(&mut body, input.path, value);
        }
        body
    }

    /// The values that are no secrets, with their names.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let fact = |(input, field): (&Input, &Field)| {
            let value = match input.kind {
                Kind::Check if field.value.is_empty() => "no".to_owned(),
                Kind::Check => "yes".to_owned(),
                _ => lines(&field.value).join(", "),
            };
            (input.label, value)
        };
        self.entries().filter(|(input, _)| !input.is_secret()).map(fact).collect()
    }

    /// The value and the error of an input whose element the page has.
    pub(crate) fn field(&self, name: &str) -> Field {
        let found = self.entries().find(|(input, _)| input.name == name);
        found.map(|(_, field)| field.clone()).unwrap_or_default()
    }

    /// Inputs as HTML.
    pub(crate) fn show(&self, names: &[&str]) -> String {
        let found = names.iter().filter_map(|name| self.entries().find(|(it, _)| it.name == *name));
        found.map(|(input, field)| InputHtml { input, field }.to_string()).collect()
    }
}

/// Inserts a value at a path, for example `address.zip`.
fn insert(object: &mut Map<String, Value>, path: &str, value: Value) {
    match path.split_once('.') {
        None => {
            object.insert(path.to_owned(), value);
        }
        Some((first, rest)) => {
            let inner = object.entry(first).or_insert_with(|| json!({}));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// An object whose values are all empty is null.
pub(crate) fn null_if_empty(value: Option<&mut Value>) {
    let Some(value) = value else { return };
    let is_empty = |value: &Value| value.is_null() || value == "";
    if value.as_object().is_some_and(|object| object.values().all(is_empty)) {
        *value = Value::Null;
    }
}

/// An input with its label, its hint and its error.
#[derive(Template)]
#[template(path = "input.html")]
struct InputHtml<'a> {
    input: &'static Input,
    field: &'a Field,
}

#[cfg(test)]
mod tests;
