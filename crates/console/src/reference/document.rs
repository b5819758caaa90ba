//! The OpenAPI document of a service, as far as the reference shows it.
//!
//! Operations and schemas stay JSON text until a page needs them, so a large document costs little more
//! than finding its parts.

use std::collections::BTreeMap;

use pages::api::Service;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::schema::Schemas;

#[derive(Debug, Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) info: About,
    #[serde(default)]
    tags: Vec<Tag>,
    paths: BTreeMap<String, PathItem>,
    #[serde(default)]
    pub(super) components: Components,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct About {
    #[serde(default)]
    pub(super) description: String,
}

#[derive(Debug, Deserialize)]
struct Tag {
    name: String,
    #[serde(default)]
    description: String,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Components {
    #[serde(default)]
    pub(super) schemas: Schemas,
}

/// The operations of a path by method.
#[derive(Debug, Deserialize)]
struct PathItem {
    get: Option<Box<RawValue>>,
    post: Option<Box<RawValue>>,
    put: Option<Box<RawValue>>,
    patch: Option<Box<RawValue>>,
    delete: Option<Box<RawValue>>,
}

impl PathItem {
    fn operations(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("GET", &self.get),
            ("POST", &self.post),
            ("PUT", &self.put),
            ("PATCH", &self.patch),
            ("DELETE", &self.delete),
        ];
        all.into_iter().filter_map(|(method, raw)| Some((method, raw.as_deref()?.get())))
    }
}

/// The operations with one tag.
pub(super) struct TagGroup {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) operations: Vec<Summary>,
}

/// An operation in the list.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Summary {
    #[serde(rename = "operationId")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) summary: String,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(skip)]
    pub(super) method: &'static str,
    #[serde(skip)]
    pub(super) path: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Operation {
    #[serde(rename = "operationId")]
    pub(super) id: String,
    #[serde(default)]
    pub(super) summary: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) parameters: Vec<Parameter>,
    #[serde(rename = "requestBody")]
    pub(super) request_body: Option<RequestBody>,
    #[serde(default)]
    pub(super) responses: BTreeMap<String, Response>,
    /// Alternatives: the schemes of each, with their scopes.
    #[serde(default)]
    security: Vec<BTreeMap<String, Vec<String>>>,
    #[serde(skip)]
    pub(super) method: &'static str,
    #[serde(skip)]
    pub(super) path: String,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Parameter {
    pub(super) name: String,
    #[serde(rename = "in")]
    pub(super) place: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) required: bool,
    #[serde(default)]
    pub(super) schema: Value,
    pub(super) example: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct RequestBody {
    #[serde(default)]
    content: BTreeMap<String, Content>,
    #[serde(default)]
    pub(super) required: bool,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Content {
    #[serde(default)]
    pub(super) schema: Value,
    pub(super) example: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Response {
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    content: BTreeMap<String, Content>,
}

impl Document {
    /// The operations by tag, in the order of the tags.
    pub(super) fn by_tag(&self) -> Vec<TagGroup> {
        let group = |tag: &Tag| TagGroup {
            name: tag.name.clone(),
            about: tag.description.clone(),
            operations: Vec::new(),
        };
        let mut groups: Vec<TagGroup> = self.tags.iter().map(group).collect();
        for operation in self.summaries() {
            let name = operation.tags.first().map_or("other", String::as_str).to_owned();
            match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => group.operations.push(operation),
                None => {
                    let about = String::new();
                    groups.push(TagGroup { name, about, operations: vec![operation] });
                }
            }
        }
        groups.retain(|group| !group.operations.is_empty());
        groups
    }

    fn summaries(&self) -> impl Iterator<Item = Summary> {
        self.raw_operations().filter_map(|(method, path, raw)| {
            let summary: Summary = serde_json::from_str(raw).ok()?;
            Some(Summary { method, path: path.to_owned(), ..summary })
        })
    }

    /// The operation with this identifier.
    pub(super) fn operation(&self, id: &str) -> Option<Operation> {
        let is_wanted = |raw: &str| {
            serde_json::from_str::<Summary>(raw).is_ok_and(|operation| operation.id == id)
        };
        let (method, path, raw) = self.raw_operations().find(|(_, _, raw)| is_wanted(raw))?;
        let operation: Operation = serde_json::from_str(raw).ok()?;
        Some(Operation { method, path: path.to_owned(), ..operation })
    }

    fn raw_operations(&self) -> impl Iterator<Item = (&'static str, &str, &str)> {
        self.paths.iter().flat_map(|(path, item)| {
            item.operations().map(move |(method, raw)| (method, path.as_str(), raw))
        })
    }
}

impl Operation {
    /// Content type and content of the request body.
    pub(super) fn content(&self) -> Option<(&str, &Content)> {
        let body = self.request_body.as_ref()?;
        body.content.iter().next().map(|(kind, content)| (kind.as_str(), content))
    }

    /// The scopes of which a token needs one. Empty if any token will do, or none.
    pub(super) fn scopes(&self) -> Vec<&str> {
        let mut scopes: Vec<&str> = self
            .security
            .iter()
            .filter_map(|schemes| schemes.get("bearer"))
            .flatten()
            .map(String::as_str)
            .collect();
        scopes.sort_unstable();
        scopes.dedup();
        scopes
    }

    pub(super) fn needs_token(&self) -> bool {
        self.security.iter().any(|schemes| schemes.contains_key("bearer"))
    }
}

impl Response {
    pub(super) fn schema(&self) -> Option<&Value> {
        self.content.values().next().map(|content| &content.schema)
    }
}

/// The variable with the address of a service in the guides.
pub(super) fn url_variable(service: Service) -> &'static str {
    match service {
        Service::Auth => "AUTH_URL",
        Service::OrderIntake => "ORDERS_URL",
        Service::RmaEngine => "RMA_URL",
        Service::Exchange => "EXCHANGE_URL",
        Service::WarehouseNotifier => "WAREHOUSE_URL",
    }
}

#[cfg(test)]
pub(super) mod tests;
