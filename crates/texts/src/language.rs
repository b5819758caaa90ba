//! The languages of shoppers.

/// A language. The two pseudo-languages are for tests: they are made from the English texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    En,
    De,
    Fr,
    Es,
    /// Accented letters in brackets. A text without them is not translated.
    Pseudo,
    /// The same from right to left.
    PseudoRtl,
}

impl From<domain::merchant::Language> for Language {
    fn from(language: domain::merchant::Language) -> Self {
        match language {
            domain::merchant::Language::En => Self::En,
            domain::merchant::Language::De => Self::De,
            domain::merchant::Language::Fr => Self::Fr,
            domain::merchant::Language::Es => Self::Es,
        }
    }
}

impl Language {
    pub const TRANSLATED: [Self; 4] = [Self::En, Self::De, Self::Fr, Self::Es];
    const PSEUDO: [Self; 2] = [Self::Pseudo, Self::PseudoRtl];

    /// The code for `lang` attributes, cookies and URLs.
    pub fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::De => "de",
            Self::Fr => "fr",
            Self::Es => "es",
            Self::Pseudo => "en-XA",
            Self::PseudoRtl => "ar-XB",
        }
    }

    /// The code of the translation that the texts come from.
    pub fn translation(self) -> &'static str {
        if self.is_pseudo() { "en" } else { self.code() }
    }

    /// The locale of numbers and dates. British dates are the ones that all of Europe reads.
    pub(crate) fn locale(self) -> &'static str {
        match self.translation() {
            "en" => "en-GB",
            code => code,
        }
    }

    pub fn is_pseudo(self) -> bool {
        Self::PSEUDO.contains(&self)
    }

    /// The direction of the text, for `dir` attributes.
    pub fn direction(self) -> &'static str {
        if self == Self::PseudoRtl { "rtl" } else { "ltr" }
    }

    /// The languages that a shopper can choose.
    pub fn offered(merchant: &[Self], with_pseudo: bool) -> Vec<Self> {
        let pseudo = Self::PSEUDO.into_iter().filter(|_| with_pseudo);
        merchant.iter().copied().chain(pseudo).collect()
    }

    /// The offered language with this code. `de` serves `de-AT` too.
    pub fn find(offered: &[Self], code: &str) -> Option<Self> {
        let has = |wanted: &str| {
            offered.iter().copied().find(|offered| offered.code().eq_ignore_ascii_case(wanted))
        };
        has(code).or_else(|| has(code.split('-').next().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pseudo_languages_are_off_by_default() {
        let offered = Language::offered(&[Language::De], false);
        assert_eq!(Language::find(&offered, "en-XA"), None);
        assert_eq!(Language::find(&offered, "de-AT"), Some(Language::De));
    }
}
