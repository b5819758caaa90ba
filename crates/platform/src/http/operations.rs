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

    /// The methods of a path, if the path exists. A fixed path may lie under the pattern of another, for example
    /// `/replays/preview` under `/replays/{id}`; a request gets the first operation that has its method.
    pub(super) fn allowed_methods(&self, path: &str) -> Option<Vec<&str>> {
        let matching =
            self.0.iter().filter(|(pattern, _)| ResourceDef::new(pattern.as_str()).is_match(path));
        let methods: Vec<_> = matching
            .flat_map(|(_, operations)| operations.iter().map(|(method, _)| method))
            .collect();
        let is_allowed = |name: &&str| {
            methods.iter().any(|method| match *name {
                "HEAD" => *method == Method::GET,
                name => method.as_str() == name,
            })
        };
        let names = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
        (!methods.is_empty()).then(|| names.into_iter().filter(is_allowed).collect())
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

#[cfg(test)]
mod tests {
    use utoipa::openapi::{HttpMethod, Paths, path::OperationBuilder};

    use super::*;

    #[test]
    fn a_fixed_path_under_a_parameter_allows_the_methods_of_both() {
        let operations = [
            ("/things/{id}", HttpMethod::Get),
            ("/things/preview", HttpMethod::Post),
            ("/others/{id}", HttpMethod::Delete),
        ];
        let mut paths = Paths::new();
        for (path, method) in operations {
            paths.add_path_operation(path, vec![method], OperationBuilder::new().build());
        }
        let operations = Operations::new(&OpenApi::new(Default::default(), paths));
        let allowed = |path| operations.allowed_methods(path);
        assert_eq!(allowed("/things/preview"), Some(vec!["GET", "HEAD", "POST"]));
        assert_eq!(allowed("/things/1"), Some(vec!["GET", "HEAD"]));
        assert_eq!(allowed("/others/1"), Some(vec!["DELETE"]));
        assert_eq!(allowed("/else"), None);
    }
}
