//! Checks of the whole repository: dependencies between crates and wording. Everything here is a test.
