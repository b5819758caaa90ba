//! Partial updates: an absent field keeps its value.

pub(super) fn replace<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// Replaces a field that `null` sets to its default.
pub(super) fn replace_or<T>(field: &mut T, value: Option<Option<T>>, default: T) {
    replace(field, value.map(|value| value.unwrap_or(default)));
}
