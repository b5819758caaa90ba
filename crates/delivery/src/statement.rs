//! SQL written by hand that the connection prepares once and keeps.
//!
//! Diesel plans `sql_query` anew each time, which for the ledger's statements costs more than
//! running them. Here every value is bound in a first, empty step named `bound`, so the text may
//! use `$1`, `$2`, … wherever it likes. It begins either with the statement or, after a comma,
//! with steps of its own.

use std::marker::PhantomData;

use diesel::{
    QueryResult,
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    serialize::ToSql,
    sql_types::{HasSqlType, Untyped},
};

/// A statement and its values.
pub(crate) struct Statement<B> {
    text: &'static str,
    bound: B,
}

/// No value yet.
pub(crate) struct Nothing;

/// One value after others.
pub(crate) struct Bound<B, T, V> {
    before: B,
    value: V,
    sql_type: PhantomData<T>,
}

pub(crate) fn statement(text: &'static str) -> Statement<Nothing> {
    Statement { text, bound: Nothing }
}

impl<B> Statement<B> {
    pub(crate) fn bind<T, V>(self, value: V) -> Statement<Bound<B, T, V>> {
        let bound = Bound { before: self.bound, value, sql_type: PhantomData };
        Statement { text: self.text, bound }
    }
}

impl QueryFragment<Pg> for Nothing {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("1");
        Ok(())
    }
}

impl<B, T, V> QueryFragment<Pg> for Bound<B, T, V>
where
    B: QueryFragment<Pg>,
    Pg: HasSqlType<T>,
    V: ToSql<T, Pg>,
{
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.before.walk_ast(out.reborrow())?;
        out.push_sql(", ");
        out.push_bind_param::<T, V>(&self.value)
    }
}

impl<B: QueryFragment<Pg>> QueryFragment<Pg> for Statement<B> {
    fn walk_ast<'b>(&'b self, mut out: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        out.push_sql("WITH RECURSIVE bound AS (SELECT ");
        self.bound.walk_ast(out.reborrow())?;
        out.push_sql(") ");
        out.push_sql(self.text);
        Ok(())
    }
}

impl<B> QueryId for Statement<B> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<B> Query for Statement<B> {
    type SqlType = Untyped;
}
