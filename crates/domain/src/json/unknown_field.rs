//! The description of a key that is not a field.

/// A suggestion differs in at most this many characters.
const MAX_DISTANCE: usize = 2;
/// Longer keys are truncated.
const MAX_KEY_CHARS: usize = 128;

/// Says that a key is not one of the known fields, and suggests the field that has a similar name or
/// is the only one with the key as a word.
pub fn unknown_field<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let key: String = key.chars().take(MAX_KEY_CHARS).collect();
    let lower = key.to_lowercase();
    let known: Vec<_> = known.into_iter().collect();
    let distances = known.iter().map(|name| (strsim::damerau_levenshtein(&lower, name), *name));
    let nearest = distances.min().filter(|(distance, _)| *distance <= MAX_DISTANCE);
    let mut containing = known.iter().filter(|name| name.split('_').any(|word| word == lower));
    let suggestion = match (nearest, containing.next(), containing.next()) {
        (Some((_, name)), ..) => Some(name),
        (None, Some(name), None) => Some(*name),
        _ => None,
    };
    match suggestion {
        Some(name) => format!("`{key}` is not a field; did you mean `{name}`?"),
        None => format!("`{key}` is not a field and is ignored"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_name_or_the_only_field_with_the_word_is_suggested() {
        let known = ["title", "unit_price_amount_cents", "image_url", "product_url"];
        for (key, want) in [
            ("titel", "; did you mean `title`?"),
            ("Title", "; did you mean `title`?"),
            ("price", "; did you mean `unit_price_amount_cents`?"),
            ("url", " and is ignored"),
            ("colour", " and is ignored"),
        ] {
            assert_eq!(unknown_field(key, known), format!("`{key}` is not a field{want}"));
        }
    }
}
