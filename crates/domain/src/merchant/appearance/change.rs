//! A partial update of the appearance.

use std::collections::{BTreeMap, BTreeSet};

use utoipa::ToSchema;

use super::hosts::{host, host_name};
use super::{Appearance, Color, Colors, Language, LookupKey, ReasonLabels};
use crate::json::{
    Field, Object, array, boolean, object, parsed, printable_text, read_fields, variant,
};
use crate::merchant::guard::Guard;
use crate::merchant::patch::{replace, replace_or};
use crate::merchant::urls::{email, link};

/// As many as a policy can have reasons.
const MAX_LABELED_REASONS: usize = 100;

/// Changes to the appearance of the portal. Lists and `reason_labels` replace the previous ones. Null
/// restores the default of a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::merchant) struct AppearanceChange {
    #[schema(value_type = Option<String>, min_length = 1, max_length = 200)]
    name: Option<Option<String>>,
    /// An https URL.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2000)]
    logo_url: Option<Option<String>>,
    #[schema(value_type = Option<ColorsChange>)]
    colors: Option<Option<ColorsChange>>,
    #[schema(value_type = Option<Vec<Language>>, min_items = 1, max_items = 4)]
    languages: Option<Option<Vec<Language>>>,
    /// Labels of up to 100 characters, by the code of a reason in `returns.reasons` and the language.
    #[schema(value_type = Option<BTreeMap<String, BTreeMap<String, String>>>)]
    reason_labels: Option<Option<BTreeMap<String, ReasonLabels>>>,
    /// An https URL.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2000)]
    policy_url: Option<Option<String>>,
    /// An https URL.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2000)]
    contact_url: Option<Option<String>>,
    #[schema(value_type = Option<String>, min_length = 3, max_length = 254)]
    contact_email: Option<Option<String>>,
    #[schema(value_type = Option<Vec<String>>, max_items = 20)]
    image_hosts: Option<Option<Vec<String>>>,
    /// Host names that no other merchant has.
    #[schema(value_type = Option<Vec<String>>, max_items = 10)]
    host_names: Option<Option<Vec<String>>>,
    #[schema(value_type = Option<Vec<LookupKey>>, min_items = 1, max_items = 2)]
    lookup_keys: Option<Option<Vec<LookupKey>>>,
    #[schema(value_type = Option<bool>)]
    withdrawal: Option<Option<bool>>,
}

impl AppearanceChange {
    pub(in crate::merchant) fn read(document: &Object<'_>, guard: &Guard) -> Option<Self> {
        read_fields!(document => Self {
            name: document.clearable("name", printable_text(1..=200)),
            logo_url: document.clearable("logo_url", link(guard)),
            colors: document.clearable("colors", object(ColorsChange::read)),
            languages: document.clearable("languages", array(1..=4, distinct(variant))),
            reason_labels: document.clearable("reason_labels", reason_labels),
            policy_url: document.clearable("policy_url", link(guard)),
            contact_url: document.clearable("contact_url", link(guard)),
            contact_email: document.clearable("contact_email", email),
            image_hosts: document.clearable("image_hosts", array(0..=20, distinct(host))),
            host_names: document.clearable("host_names", array(0..=10, distinct(host_name))),
            lookup_keys: document.clearable("lookup_keys", array(1..=2, distinct(variant))),
            withdrawal: document.clearable("withdrawal", boolean),
        })
    }

    /// Whether the change names the labels of reasons.
    pub(in crate::merchant) fn has_labels(&self) -> bool {
        self.reason_labels.is_some()
    }

    pub(in crate::merchant) fn apply(self, appearance: &mut Appearance) {
        let default = Appearance::default();
        replace(&mut appearance.name, self.name);
        replace(&mut appearance.logo_url, self.logo_url);
        match self.colors {
            Some(Some(colors)) => colors.apply(&mut appearance.colors),
            Some(None) => appearance.colors = default.colors,
            None => {}
        }
        replace_or(&mut appearance.languages, self.languages, default.languages);
        replace_or(&mut appearance.reason_labels, self.reason_labels, default.reason_labels);
        replace(&mut appearance.policy_url, self.policy_url);
        replace(&mut appearance.contact_url, self.contact_url);
        replace(&mut appearance.contact_email, self.contact_email);
        replace_or(&mut appearance.image_hosts, self.image_hosts, default.image_hosts);
        replace_or(&mut appearance.host_names, self.host_names, default.host_names);
        replace_or(&mut appearance.lookup_keys, self.lookup_keys, default.lookup_keys);
        replace_or(&mut appearance.withdrawal, self.withdrawal, default.withdrawal);
    }
}

/// Changes to the colours. The contrast of `text_on_primary` to `primary`, and of `text` to `background`,
/// must be at least 4.5:1.
#[derive(Debug, Clone, Default, PartialEq, Eq, ToSchema)]
#[serde(deny_unknown_fields)]
struct ColorsChange {
    #[schema(value_type = Option<Color>)]
    primary: Option<Option<Color>>,
    #[schema(value_type = Option<Color>)]
    text_on_primary: Option<Option<Color>>,
    #[schema(value_type = Option<Color>)]
    background: Option<Option<Color>>,
    #[schema(value_type = Option<Color>)]
    text: Option<Option<Color>>,
}

impl ColorsChange {
    fn read(document: &Object<'_>) -> Option<Self> {
        let color = |key| document.clearable(key, parsed(1..=7, str::parse::<Color>));
        read_fields!(document => Self {
            primary: color("primary"),
            text_on_primary: color("text_on_primary"),
            background: color("background"),
            text: color("text"),
        })
    }

    fn apply(self, colors: &mut Colors) {
        let default = Colors::default();
        replace_or(&mut colors.primary, self.primary, default.primary);
        replace_or(&mut colors.text_on_primary, self.text_on_primary, default.text_on_primary);
        replace_or(&mut colors.background, self.background, default.background);
        replace_or(&mut colors.text, self.text, default.text);
    }
}

/// An element that the array holds only once.
pub(in crate::merchant) fn distinct<T: Ord + Clone>(
    mut element: impl FnMut(Field<'_>) -> Option<T>,
) -> impl FnMut(Field<'_>) -> Option<T> {
    let mut seen = BTreeSet::new();
    move |field| {
        let value = element(field)?;
        if seen.insert(value.clone()) { Some(value) } else { field.invalid("is listed twice") }
    }
}

fn reason_labels(field: Field<'_>) -> Option<BTreeMap<String, ReasonLabels>> {
    object(|document| {
        if document.entries().count() > MAX_LABELED_REASONS {
            return field.invalid(format!("must have at most {MAX_LABELED_REASONS} reasons"));
        }
        entries(document, |code, labels| match code.chars().count() {
            1..=100 => Some((code.to_owned(), object(labels_by_language)(labels)?)),
            _ => labels.invalid("the code must have 1 to 100 characters"),
        })
    })(field)
}

fn labels_by_language(document: &Object<'_>) -> Option<ReasonLabels> {
    entries(document, |language, label| match language.parse::<Language>() {
        Ok(language) => Some((language, printable_text(1..=100)(label)?)),
        Err(_) => {
            let known: Vec<_> = Language::ALL.iter().map(|known| known.as_str()).collect();
            label.invalid(format!("unknown language: known are {}", known.join(", ")))
        }
    })
}

/// Reads every entry of an object before it gives up, so that each invalid entry is reported.
pub(in crate::merchant) fn entries<K: Ord, V>(
    document: &Object<'_>,
    mut read: impl FnMut(&str, Field<'_>) -> Option<(K, V)>,
) -> Option<BTreeMap<K, V>> {
    let entries: Vec<_> = document.entries().map(|(key, field)| read(key, field)).collect();
    entries.into_iter().collect()
}
