//! Amounts that should add up.

use crate::json::{FieldError, Object};

/// The maximum number of warnings. Further warnings are dropped.
const MAX_WARNINGS: usize = 1_000;

/// Compares stated amounts with computed ones. A difference is an error for a strict merchant and a
/// warning otherwise.
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
        let detail = format!("says {stated}, but the parts make {computed}");
        if self.is_strict {
            object.invalid(key, detail);
        } else if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(object.field_error(key, detail));
        }
    }

    pub(super) fn into_warnings(self) -> Vec<FieldError> {
        self.warnings
    }
}
