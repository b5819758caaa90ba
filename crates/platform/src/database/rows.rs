//! Structs that raw SQL is read into. The SQL type of a column follows from the Rust type of its field.

use diesel::sql_types::{
    Array, BigInt, Binary, Bool, Date, Integer, Jsonb, Nullable, SmallInt, Text, Timestamptz, Uuid,
};
use serde_json::Value;

use crate::Timestamp;

/// The SQL type of a parameter or a column of this type.
pub trait ColumnType {
    type Sql: Send + 'static;
}

macro_rules! column_types {
    ($($rust:ty => $sql:ty),* $(,)?) => {
        $(impl ColumnType for $rust {
            type Sql = $sql;
        })*
    };
}

column_types! {
    bool => Bool,
    i16 => SmallInt,
    i32 => Integer,
    i64 => BigInt,
    str => Text,
    String => Text,
    Timestamp => Timestamptz,
    chrono::NaiveDate => Date,
    uuid::Uuid => Uuid,
    Value => Jsonb,
    [u8] => Binary,
    Vec<u8> => Binary,
}

impl<T: ColumnType> ColumnType for Option<T> {
    type Sql = Nullable<T::Sql>;
}

impl<T: ColumnType> ColumnType for [T] {
    type Sql = Array<T::Sql>;
}

impl<T: ColumnType> ColumnType for Vec<T> {
    type Sql = Array<T::Sql>;
}

impl<T: ColumnType + ?Sized> ColumnType for &T {
    type Sql = T::Sql;
}

/// Declares structs that the rows of a raw statement are read into, each field from the column with its name. A
/// field with `#[diesel(embed)]` is a struct of further columns; it needs the import of `diesel::QueryableByName`.
///
/// ```text
/// platform::rows! {
///     /// An endpoint and the time of its first ready delivery.
///     pub(crate) struct FirstReady {
///         pub(crate) merchant: String,
///         pub(crate) first_at: Option<Timestamp>,
///     }
/// }
/// ```
#[macro_export]
macro_rules! rows {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $type:ty),* $(,)?
        }
    )*) => {
        $(
            $(#[$attribute])*
            #[derive(diesel::QueryableByName)]
            $visibility struct $name {
                $(
                    $(#[$field_attribute])*
                    #[diesel(sql_type = <$type as $crate::database::ColumnType>::Sql)]
                    $field_visibility $field: $type,
                )*
            }
        )*
    };
}
