//! Structs that raw SQL is read into. The SQL type of a column follows from the Rust type of its field.

use diesel::sql_types::{
    Array, BigInt, Binary, Bool, Integer, Jsonb, Nullable, SmallInt, Text, Timestamptz, Uuid,
};
use serde_json::Value;

use crate::Timestamp;

/// The SQL type of a column that is read into this type.
pub trait ColumnType {
    type Sql;
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
    String => Text,
    Timestamp => Timestamptz,
    uuid::Uuid => Uuid,
    Value => Jsonb,
    Vec<u8> => Binary,
    Vec<String> => Array<Text>,
    Vec<Timestamp> => Array<Timestamptz>,
    Vec<Value> => Array<Jsonb>,
}

impl<T: ColumnType> ColumnType for Option<T> {
    type Sql = Nullable<T::Sql>;
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
