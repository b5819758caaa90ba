//! The appearance in requests, for the OpenAPI document.

use std::collections::BTreeMap;

use domain::merchant::{Color, Language, LookupKey, ReasonLabels};
use serde::Deserialize;
use utoipa::ToSchema;

/// Changes to the appearance of the portal. Lists and `reason_labels` replace the previous ones. Null
/// restores the default of a field.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct AppearanceChange {
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// An https URL.
    #[schema(max_length = 2000)]
    logo_url: Option<String>,
    colors: Option<ColorsChange>,
    #[schema(min_items = 1, max_items = 4)]
    languages: Option<Vec<Language>>,
    /// Labels of up to 100 characters, by the code of a reason in `returns.reasons` and the language.
    #[schema(value_type = Option<BTreeMap<String, BTreeMap<String, String>>>)]
    reason_labels: Option<BTreeMap<String, ReasonLabels>>,
    /// An https URL.
    #[schema(max_length = 2000)]
    policy_url: Option<String>,
    /// An https URL.
    #[schema(max_length = 2000)]
    contact_url: Option<String>,
    #[schema(max_length = 254)]
    contact_email: Option<String>,
    #[schema(max_items = 20)]
    image_hosts: Option<Vec<String>>,
    /// Host names that no other merchant has.
    #[schema(max_items = 10)]
    host_names: Option<Vec<String>>,
    #[schema(min_items = 1, max_items = 2)]
    lookup_keys: Option<Vec<LookupKey>>,
    withdrawal: Option<bool>,
}

/// Changes to the colours. The contrast of `text_on_primary` to `primary`, and of `text` to `background`,
/// must be at least 4.5:1.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct ColorsChange {
    primary: Option<Color>,
    text_on_primary: Option<Color>,
    background: Option<Color>,
    text: Option<Color>,
}
