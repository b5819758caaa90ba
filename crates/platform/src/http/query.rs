//! The query of a URL. An error names the parameter, and says in words what it must be.

use std::future::{Ready, ready};
use std::ops::Deref;

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use serde::de::DeserializeOwned;

use super::request_error::BadQuery;
use crate::Problem;

const NO_PARAMETER: &str = "there is no parameter";

/// The parameters of a query.
#[derive(Debug)]
pub struct Query<T>(pub T);

impl<T> Query<T> {
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Query<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: DeserializeOwned> FromRequest for Query<T> {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(parse(request.query_string()).map(Self).map_err(Problem::from))
    }
}

fn parse<T: DeserializeOwned>(query: &str) -> Result<T, BadQuery> {
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    let deserializer = serde_urlencoded::Deserializer::new(pairs);
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let parameter = error.path().to_string();
        let rule = rule(&error.inner().to_string());
        // The text about an unknown or repeated parameter has its name.
        let has_name = parameter == "." || rule.starts_with(NO_PARAMETER);
        BadQuery(if has_name { rule } else { format!("{parameter}: {rule}") })
    })
}

/// The rule that a value broke, from the error of its type.
fn rule(error: &str) -> String {
    let texts = [
        ("invalid digit found in string", "must be a whole number"),
        ("cannot parse integer from empty string", "must be a whole number"),
        ("number too large to fit in target type", "is too large"),
        ("number too small to fit in target type", "is too small"),
        ("provided string was not `true` or `false`", "must be true or false"),
        ("premature end of input", "must be a time such as 2026-01-01T00:00:00Z"),
        ("input contains invalid characters", "must be a time such as 2026-01-01T00:00:00Z"),
        ("input is out of range", "must be a time such as 2026-01-01T00:00:00Z"),
        ("trailing input", "must be a time such as 2026-01-01T00:00:00Z"),
    ];
    if let Some((_, rule)) = texts.iter().find(|(text, _)| *text == error) {
        return (*rule).to_owned();
    }
    if error.starts_with("UUID parsing failed") || error.starts_with("invalid UUID") {
        return "must be a UUID".to_owned();
    }
    let Some((_, known)) = error.split_once(", expected ") else { return error.to_owned() };
    let known = known.trim_start_matches("one of ").replace('`', "").replace(" or ", ", ");
    if error.starts_with("unknown variant") {
        return format!("must be one of {known}");
    }
    match error.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
        Some((name, _)) => format!("{NO_PARAMETER} {name}; known are {known}"),
        None => error.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use uuid::Uuid;

    use super::*;
    use crate::Timestamp;
    use crate::http::PageLimit;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum State {
        Open,
        Closed,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Parameters {
        #[serde(default)]
        limit: PageLimit,
        status: Option<u16>,
        force: Option<bool>,
        state: Option<State>,
        from: Option<Timestamp>,
        id: Option<Uuid>,
    }

    #[test]
    fn an_error_names_the_parameter_and_its_rule() {
        for (query, message) in [
            ("limit=0", "limit: must be between 1 and 200"),
            ("limit=ten", "limit: must be a whole number"),
            ("status=x", "status: must be a whole number"),
            ("status=70000", "status: is too large"),
            ("force=maybe", "force: must be true or false"),
            ("state=lost", "state: must be one of open, closed"),
            ("from=yesterday", "from: must be a time such as 2026-01-01T00:00:00Z"),
            ("id=7", "id: must be a UUID"),
            (
                "colour=red",
                "there is no parameter colour; known are limit, status, force, state, from, id",
            ),
            ("force=true&force=true", "duplicate field `force`"),
        ] {
            assert_eq!(parse::<Parameters>(query).unwrap_err().0, message, "{query}");
        }
        assert!(parse::<Parameters>("limit=1&state=open&from=2026-01-01T00:00:00Z").is_ok());
    }
}
