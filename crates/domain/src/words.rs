//! Enums whose values are words: in JSON, in databases, in URLs and in texts.

/// Declares an enum whose values are words, written in the given case of `serde`. The word of a value is also its
/// [`Display`](std::fmt::Display), and is parsed back.
///
/// ```text
/// domain::words! {
///     /// How a unit comes back.
///     pub enum ReturnMethod as "kebab-case" {
///         /// The shopper mails a parcel with a label.
///         MailBack,
///         CustomerKeep,
///     }
/// }
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident as $case:tt { $($values:tt)* }
    ) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        #[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
        $(#[$attribute])*
        #[serde(rename_all = $case)]
        #[strum(serialize_all = $case)]
        $visibility enum $name { $($values)* }
    };
}
