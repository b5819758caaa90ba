//! The operations of a service, from its OpenAPI document: their methods, and which need a token.

use std::collections::HashMap;

use actix_web::{dev::ResourceDef, http::Method};
use utoipa::openapi::{OpenApi, PathItem, path::Operation, security::SecurityRequirement};

/// The operations by the pattern of their path.
pub(super) struct Operations(HashMap<String, Vec<(Method, NeedsToken)>>);

type NeedsToken = bool;

impl Operations {
    pub(super) fn new(document: &OpenApi) -> Self {
        let paths = document.paths.paths.iter();
        Self(paths.map(|(pattern, item)| (pattern.clone(), methods(item))).collect())
    }

    /// Whether the operation needs a bearer token.
    pub(super) fn need_token(&self, pattern: &str, method: &Method) -> bool {
        let operations = self.0.get(pattern);
        operations.is_some_and(|operations| operations.contains(&(method.clone(), true)))
    }

    /// The methods of a path, if the path exists.
    pub(super) fn allowed_methods(&self, path: &str) -> Option<Vec<&str>> {
        let (_, operations) =
            self.0.iter().find(|(pattern, _)| ResourceDef::new(pattern.as_str()).is_match(path))?;
        let mut names: Vec<_> = operations.iter().map(|(method, _)| method.as_str()).collect();
        if names.contains(&"GET") {
            names.insert(1, "HEAD");
        }
        Some(names)
    }
}

fn methods(item: &PathItem) -> Vec<(Method, NeedsToken)> {
    let all = [
        (Method::GET, &item.get),
        (Method::POST, &item.post),
        (Method::PUT, &item.put),
        (Method::PATCH, &item.patch),
        (Method::DELETE, &item.delete),
    ];
    let existing = all.into_iter().filter_map(|(method, operation)| {
        operation.as_ref().map(|operation| (method, needs_token(operation)))
    });
    existing.collect()
}

/// A public operation has no security requirement, or the empty one among others.
fn needs_token(operation: &Operation) -> NeedsToken {
    let requirements = operation.security.as_deref().unwrap_or_default();
    !requirements.is_empty() && !requirements.contains(&SecurityRequirement::default())
}
