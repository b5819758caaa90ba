//! Statements that a connection keeps prepared.

use diesel::{
    pg::Pg,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    result::QueryResult,
};

/// See [`prepared`].
pub struct Prepared<Q>(Q);

/// A statement in SQL that is planned once for each connection. Use it only for a small number of
/// different texts: every text stays prepared until the connection ends.
pub fn prepared<Q>(query: Q) -> Prepared<Q> {
    Prepared(query)
}

impl<Q: QueryFragment<Pg>> QueryFragment<Pg> for Prepared<Q> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.0.walk_ast(pass)
    }

    fn is_safe_to_cache_prepared(&self, _backend: &Pg) -> QueryResult<bool> {
        Ok(true)
    }
}

impl<Q> QueryId for Prepared<Q> {
    type QueryId = ();
    /// The text identifies the statement.
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q: Query> Query for Prepared<Q> {
    type SqlType = Q::SqlType;
}
