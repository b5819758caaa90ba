//! Security schemes, and the scopes that operations require.

use std::collections::BTreeMap;

use domain::access::Scope;
use serde_json::json;
use utoipa::openapi::{
    OpenApi,
    path::Operation,
    security::{
        ClientCredentials, Flow, HttpAuthScheme, HttpBuilder, OAuth2, Scopes, SecurityRequirement,
        SecurityScheme,
    },
};

const BEARER: &str = "bearer";
const BASIC: &str = "basic";

/// The path is fixed; the host is that of the installation.
const TOKEN_URL: &str = "https://auth.backhaul.example/oauth/token";

const BEARER_RULES: &str = "\
A bearer token (JWT) that auth issues at `POST /oauth/token`, valid for 25 hours. Its scopes decide \
which operations it allows. The scope `operator` includes all others.";

const BASIC_RULES: &str = "\
HTTP Basic authentication with the client id as the user name and the client secret as the password \
(`client_secret_basic` of RFC 6749). Both are form-encoded first. The alternative is `client_id` and \
`client_secret` in the body (`client_secret_post`). A request must not use both.";

/// The responses for handlers that require a token.
const UNAUTHORIZED: (&str, &str) = ("401", "The token is missing or invalid");
const FORBIDDEN: (&str, &str) =
    ("403", "The token lacks the required scope, or belongs to another merchant");

/// The responses to a token that is not accepted. An alternative without a scope accepts every token.
pub(super) fn responses(
    operation: &Operation,
) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let requirements = operation.security.iter().flatten().flat_map(schemes);
    let scopes: Vec<_> =
        requirements.filter(|(scheme, _)| scheme == BEARER).map(|(_, scopes)| scopes).collect();
    let needs_token = !scopes.is_empty();
    let needs_scope = needs_token && scopes.iter().all(|scopes| !scopes.is_empty());
    needs_token.then_some(UNAUTHORIZED).into_iter().chain(needs_scope.then_some(FORBIDDEN))
}

/// Adds the scopes to the description of an operation.
pub(super) fn describe(operation: &mut Operation) {
    let requirements = operation.security.iter().flatten().flat_map(schemes);
    let scopes: Vec<_> = requirements
        .filter(|(scheme, _)| scheme == BEARER)
        .flat_map(|(_, scopes)| scopes)
        .map(|scope| format!("`{scope}`"))
        .collect();
    if !scopes.is_empty() {
        let paragraph = format!("Requires the scope {}.", scopes.join(" or "));
        let description = operation.description.take().filter(|text| !text.is_empty());
        let paragraphs: Vec<_> = description.into_iter().chain([paragraph]).collect();
        operation.description = Some(paragraphs.join("\n\n"));
    }
}

/// Adds the schemes that operations use.
pub(super) fn add_schemes(document: &mut OpenApi) {
    let mut basic_is_used = false;
    for operation in document.paths.paths.values_mut().flat_map(super::operations) {
        let mut used = operation.security.iter().flatten().flat_map(schemes);
        basic_is_used |= used.any(|(scheme, _)| scheme == BASIC);
    }
    let components = document.components.get_or_insert_default();
    let scopes = Scopes::from_iter(Scope::ALL.map(|scope| (scope.as_str(), scope.about())));
    let flow = Flow::ClientCredentials(ClientCredentials::new(TOKEN_URL, scopes));
    let bearer = OAuth2::with_description([flow], BEARER_RULES);
    components.add_security_scheme(BEARER, SecurityScheme::OAuth2(bearer));
    if basic_is_used {
        let basic = HttpBuilder::new().scheme(HttpAuthScheme::Basic);
        let basic = basic.description(Some(BASIC_RULES)).build();
        components.add_security_scheme(BASIC, SecurityScheme::Http(basic));
    }
}

/// The schemes of a requirement with their scopes.
fn schemes(requirement: &SecurityRequirement) -> BTreeMap<String, Vec<String>> {
    serde_json::from_value(json!(requirement)).unwrap_or_default()
}
