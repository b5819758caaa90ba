//! The choice of a language for a request.

use actix_web::{
    HttpRequest,
    http::header::{AcceptLanguage, Header as _, Preference},
};
use texts::Language;
use url::form_urlencoded;

/// The language that the URL names: `?lang=de`.
pub(crate) fn in_query(request: &HttpRequest, offered: &[Language]) -> Option<Language> {
    let mut pairs = form_urlencoded::parse(request.query_string().as_bytes());
    let parameter = pairs.find(|(name, _)| name == "lang");
    parameter.and_then(|(_, code)| Language::find(offered, &code))
}

/// The language of a request: `?lang=`, then the cookie, then the browser's, then the first offered.
pub(crate) fn of_request(
    request: &HttpRequest,
    offered: &[Language],
    kept: Option<&str>,
) -> Language {
    let accepted = AcceptLanguage::parse(request).map(|header| header.ranked());
    let accepted = accepted.unwrap_or_default().into_iter().filter_map(|tag| match tag {
        Preference::Specific(tag) => Some(tag.to_string()),
        Preference::Any => None,
    });
    let mut wanted = kept.map(str::to_owned).into_iter().chain(accepted);
    in_query(request, offered)
        .or_else(|| wanted.find_map(|code| Language::find(offered, &code)))
        .or_else(|| offered.first().copied())
        .unwrap_or(Language::En)
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
        assert_eq!(of_request(&request, &offered, kept), expected);
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
}
