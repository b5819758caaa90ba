//! Amounts that should add up, and the warnings about them.

use crate::json::{FieldError, Object};

/// The maximum number of warnings. Further warnings are dropped.
const MAX_WARNINGS: usize = 1_000;

/// Checks amounts. An amount that does not add up is an error for a strict merchant and a warning
/// otherwise.
#[derive(Debug)]
pub(super) struct SumChecks {
    is_strict: bool,
    warnings: Vec<FieldError>,
}

impl SumChecks {
    pub(super) fn new(is_strict: bool) -> Self {
        Self { is_strict, warnings: Vec::new() }
    }

    /// Compares two amounts. An amount is `None` when it could not be read.
    pub(super) fn compare(
        &mut self,
        object: &Object<'_>,
        key: &str,
        stated: Option<i64>,
        computed: Option<i64>,
    ) {
        let (Some(stated), Some(computed)) = (stated, computed) else { return };
        if stated == computed {
            return;
        }
        self.report(object, key, format!("says {stated}, but the parts make {computed}"));
    }

    /// Reports an amount that does not add up.
    pub(super) fn report(&mut self, object: &Object<'_>, key: &str, detail: String) {
        if self.is_strict {
            object.invalid(key, detail);
        } else {
            self.warn(object, key, detail);
        }
    }

    /// Adds a warning that is not an error for a strict merchant either.
    pub(super) fn warn(&mut self, object: &Object<'_>, key: &str, detail: String) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(object.field_error(key, detail));
        }
    }

    pub(super) fn into_warnings(self) -> Vec<FieldError> {
        self.warnings
    }
}
