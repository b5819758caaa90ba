//! The languages of the portal, and the choice of one for a request.

use actix_web::{
    HttpRequest,
    http::header::{AcceptLanguage, Header as _, Preference},
};
use url::form_urlencoded;

/// A language. The two pseudo-languages are for tests: they are made from the English texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
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
    pub(crate) const TRANSLATED: [Self; 4] = [Self::En, Self::De, Self::Fr, Self::Es];
    const PSEUDO: [Self; 2] = [Self::Pseudo, Self::PseudoRtl];

    /// The code for `lang` attributes, cookies and URLs.
    pub(crate) fn code(self) -> &'static str {
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
    pub(crate) fn translation(self) -> &'static str {
        if self.is_pseudo() { "en" } else { self.code() }
    }

    /// The locale of numbers and dates. British dates are the ones that all of Europe reads.
    pub(crate) fn locale(self) -> &'static str {
        match self.translation() {
            "en" => "en-GB",
            code => code,
        }
    }

    pub(crate) fn is_pseudo(self) -> bool {
        Self::PSEUDO.contains(&self)
    }

    /// The direction of the text, for `dir` attributes.
    pub(crate) fn direction(self) -> &'static str {
        if self == Self::PseudoRtl { "rtl" } else { "ltr" }
    }

    /// The languages that a shopper can choose.
    pub(crate) fn offered(merchant: &[Self], with_pseudo: bool) -> Vec<Self> {
        let pseudo = Self::PSEUDO.into_iter().filter(|_| with_pseudo);
        merchant.iter().copied().chain(pseudo).collect()
    }

    /// The language that the URL names: `?lang=de`.
    pub(crate) fn in_query(request: &HttpRequest, offered: &[Self]) -> Option<Self> {
        let mut pairs = form_urlencoded::parse(request.query_string().as_bytes());
        let parameter = pairs.find(|(name, _)| name == "lang");
        parameter.and_then(|(_, code)| Self::find(offered, &code))
    }

    /// The language of a request: `?lang=`, then the cookie, then the browser's, then the first offered.
    pub(crate) fn of(request: &HttpRequest, offered: &[Self], kept: Option<&str>) -> Self {
        let accepted = AcceptLanguage::parse(request).map(|header| header.ranked());
        let accepted = accepted.unwrap_or_default().into_iter().filter_map(|tag| match tag {
            Preference::Specific(tag) => Some(tag.to_string()),
            Preference::Any => None,
        });
        let mut wanted = kept.map(str::to_owned).into_iter().chain(accepted);
        Self::in_query(request, offered)
            .or_else(|| wanted.find_map(|code| Self::find(offered, &code)))
            .or_else(|| offered.first().copied())
            .unwrap_or(Self::En)
    }

    /// The offered language with this code. `de` serves `de-AT` too.
    pub(crate) fn find(offered: &[Self], code: &str) -> Option<Self> {
        let has = |wanted: &str| {
            offered.iter().copied().find(|offered| offered.code().eq_ignore_ascii_case(wanted))
        };
        has(code).or_else(|| has(code.split('-').next().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[track_caller]
    fn check(query: &str, kept: Option<&str>, accepted: &str, expected: Language) {
        let offered = Language::offered(&[Language::De, Language::En], true);
        let request = TestRequest::with_uri(&format!("/acme?{query}"))
            .insert_header(("accept-language", accepted))
            .to_http_request();
        assert_eq!(Language::of(&request, &offered, kept), expected);
    }

    #[test]
    fn the_shoppers_choice_comes_before_the_browsers() {
        check("lang=en", Some("de"), "de", Language::En);
        check("", Some("en"), "de", Language::En);
        check("", None, "fr, en-GB;q=0.8, de;q=0.5", Language::En);
        check("", None, "fr", Language::De);
        check("", None, "", Language::De);
        check("lang=xx", Some("fr"), "*", Language::De);
        check("lang=en-XA", None, "", Language::Pseudo);
    }

    #[test]
    fn pseudo_languages_are_off_by_default() {
        let offered = Language::offered(&[Language::De], false);
        assert_eq!(Language::find(&offered, "en-XA"), None);
        assert_eq!(Language::find(&offered, "de-AT"), Some(Language::De));
    }
}
