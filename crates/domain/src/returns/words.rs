//! States and kinds as words: written one way, and read back from what was written.

/// A word that is none of those expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is no {noun}")]
pub struct UnknownWord {
    pub word: String,
    /// The name of the type it should have been.
    pub noun: &'static str,
}

/// Gives `Display` and `FromStr` to enums that have `ALL` and `as_str`.
macro_rules! words {
    ($($word:ident),+ $(,)?) => {$(
        impl std::fmt::Display for $word {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $word {
            type Err = $crate::returns::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                let unknown = || Self::Err { word: word.to_owned(), noun: stringify!($word) };
                Self::ALL.into_iter().find(|it| it.as_str() == word).ok_or_else(unknown)
            }
        }
    )+};
}

pub(super) use words;
