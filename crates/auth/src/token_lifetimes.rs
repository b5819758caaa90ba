//! Lifetimes of access tokens.

use chrono::TimeDelta;

/// Upper bound of `tokens.lifetime`, and so of the lifetime of every token issued so far.
pub(crate) const MAX_TOKEN_LIFETIME: TimeDelta = TimeDelta::hours(25);
/// Lifetime of the tokens of people, who get a new one from their session.
pub(crate) const PERSON_TOKEN_LIFETIME: TimeDelta = TimeDelta::minutes(10);
