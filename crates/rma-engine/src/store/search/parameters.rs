//! The parameters of a statement, numbered in the order in which they are added.

use diesel::sql_types::{BigInt, Bool, Jsonb, Nullable, Text, Timestamptz};
use platform::Timestamp;
use platform::database::SqlStatement;
use serde_json::Value as Json;

/// A value of one of the types that searches compare. `None` is NULL.
pub(super) enum Value {
    Text(Option<String>),
    Flag(bool),
    Number(Option<i64>),
    Time(Option<Timestamp>),
    Json(Option<Json>),
}

#[derive(Default)]
pub(super) struct Parameters(Vec<Value>);

impl Parameters {
    /// Adds a value and returns its place in SQL, for example `$3`.
    pub(super) fn add(&mut self, value: impl Into<Value>) -> String {
        self.0.push(value.into());
        format!("${}", self.0.len())
    }

    pub(super) fn bind(self, statement: String) -> SqlStatement<'static> {
        let statement: SqlStatement<'static> = diesel::sql_query(statement).into_boxed();
        self.0.into_iter().fold(statement, |statement, value| match value {
            Value::Text(text) => statement.bind::<Nullable<Text>, _>(text),
            Value::Flag(flag) => statement.bind::<Bool, _>(flag),
            Value::Number(number) => statement.bind::<Nullable<BigInt>, _>(number),
            Value::Time(time) => statement.bind::<Nullable<Timestamptz>, _>(time),
            Value::Json(json) => statement.bind::<Nullable<Jsonb>, _>(json),
        })
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<Option<String>> for Value {
    fn from(text: Option<String>) -> Self {
        Self::Text(text)
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        Self::Text(text.map(str::to_owned))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Self {
        Self::Time(Some(time))
    }
}

impl From<Option<Timestamp>> for Value {
    fn from(time: Option<Timestamp>) -> Self {
        Self::Time(time)
    }
}

impl From<Option<Json>> for Value {
    fn from(json: Option<Json>) -> Self {
        Self::Json(json)
    }
}
