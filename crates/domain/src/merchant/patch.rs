//! Partial updates: an absent field keeps its value.

pub(super) fn replace<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}
