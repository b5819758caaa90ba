//! Form values together with their errors, so that a rejected form keeps the typed text.

/// One field of a form as the template shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    pub value: String,
    pub error: Option<String>,
}

impl Field {
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), error: None }
    }

    /// Sets the error, unless the field has one.
    pub fn reject(&mut self, error: impl Into<String>) {
        self.error.get_or_insert_with(|| error.into());
    }

    pub fn is_valid(&self) -> bool {
        self.error.is_none()
    }
}
