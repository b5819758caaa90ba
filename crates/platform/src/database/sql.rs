//! Raw SQL with parameters. The SQL type of a parameter follows from its Rust type.

use diesel::pg::Pg;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::serialize::ToSql;
use diesel::sql_types::HasSqlType;

use super::ColumnType;

/// A raw statement, to which further SQL and parameters can be added.
pub type SqlStatement<'a> = BoxedSqlQuery<'a, Pg, SqlQuery>;

/// A raw statement with its parameters, `$1` first: one value, or a tuple of several.
///
/// ```text
/// sql("DELETE FROM orders WHERE merchant = $1 AND updated_at < $2", (merchant, before)).execute(conn).await?;
/// ```
pub fn sql<'a>(text: impl Into<String>, parameters: impl Parameters<'a>) -> SqlStatement<'a> {
    parameters.bind_to(diesel::sql_query(text).into_boxed())
}

/// One value of each row, for a statement with an array for each column.
pub fn column<'a, R, T>(rows: &'a [R], value: impl Fn(&'a R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

/// The values of the parameters of a statement, in order.
pub trait Parameters<'a> {
    fn bind_to(self, statement: SqlStatement<'a>) -> SqlStatement<'a>;
}

impl<'a, V> Parameters<'a> for V
where
    V: ColumnType + ToSql<V::Sql, Pg> + Send + 'a,
    Pg: HasSqlType<V::Sql>,
{
    fn bind_to(self, statement: SqlStatement<'a>) -> SqlStatement<'a> {
        statement.bind::<V::Sql, V>(self)
    }
}

/// Each of these values as a parameter of its own, for conditions that only some statements have.
pub struct Each<I>(pub I);

impl<'a, I> Parameters<'a> for Each<I>
where
    I: IntoIterator<Item: Parameters<'a>>,
{
    fn bind_to(self, statement: SqlStatement<'a>) -> SqlStatement<'a> {
        self.0.into_iter().fold(statement, |statement, value| value.bind_to(statement))
    }
}

macro_rules! tuples {
    ($(($($value:ident)+))+) => {
        $(impl<'a, $($value: Parameters<'a>),+> Parameters<'a> for ($($value,)+) {
            #[expect(non_snake_case, reason = "the values have the names of their types")]
            fn bind_to(self, statement: SqlStatement<'a>) -> SqlStatement<'a> {
                let ($($value,)+) = self;
                $(let statement = $value.bind_to(statement);)+
                statement
            }
        })+
    };
}

tuples! {
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E F)
    (A B C D E F G)
    (A B C D E F G H)
    (A B C D E F G H I)
    (A B C D E F G H I J)
    (A B C D E F G H I J K)
    (A B C D E F G H I J K L)
    (A B C D E F G H I J K L M)
}
