//! Start of a response body for the attempt log, as received, with our secrets masked.

use super::masking::{MASK, SentSecrets};

/// A merchant's server may respond with a long page of HTML.
const MAX_LOGGED_BYTES: usize = 4 * 1024;
/// A secret that begins in the logged part is found if it ends in this part.
const MAX_SEARCHED_BYTES: usize = 4 * MAX_LOGGED_BYTES;

/// A longer run of the characters of base64 is a document.
const MAX_RUN_BYTES: usize = 256;

/// Returns the start of a body, without the secrets that the request contained and, if the body can have documents,
/// without these.
pub(super) fn response_log(body: &[u8], secrets: &SentSecrets<'_>, has_documents: bool) -> String {
    let start = body.get(..MAX_SEARCHED_BYTES).unwrap_or(body);
    let mut text = secrets.mask(String::from_utf8_lossy(start)).into_owned();
    if has_documents {
        text = without_documents(&text);
    }
    text.truncate(text.floor_char_boundary(MAX_LOGGED_BYTES));
    text
}

/// Masks documents in base64, for example labels: they show the shopper's address.
fn without_documents(text: &str) -> String {
    // A line break in JSON is a backslash and a letter.
    let is_base64 =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_' | '\\');
    let mut shown = String::with_capacity(text.len());
    for part in text.split_inclusive(|c: char| !is_base64(c)) {
        let run = part.trim_end_matches(|c: char| !is_base64(c));
        if run.len() > MAX_RUN_BYTES {
            shown.push_str(MASK);
            shown.push_str(part.get(run.len()..).unwrap_or_default());
        } else {
            shown.push_str(part);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use reqwest::header::HeaderValue;

    use super::*;
    use crate::endpoint::{Authentication, Endpoint};
    use crate::tokens::{ClientCredentials, Placement};

    fn endpoint(authentication: &Authentication) -> Endpoint {
        let headers = [
            ("x-tenant".to_owned(), "blue".to_owned()),
            ("x-key".to_owned(), "a-custom-key".to_owned()),
        ];
        let url = "https://merchant.example/rmas".parse().unwrap();
        Endpoint::new(url, Vec::new(), authentication, &headers).unwrap()
    }

    #[track_caller]
    fn check(authentication: &Authentication, body: &str, expected: &str) {
        let token = HeaderValue::from_static("Bearer t0k3n/x");
        let endpoint = endpoint(authentication);
        let secrets = SentSecrets::new(&endpoint, Some(&token));
        let logged = response_log(body.as_bytes(), &secrets, false);
        assert_eq!(logged, expected);
    }

    #[test]
    fn a_quoted_secret_is_masked() {
        let basic = Authentication::Basic { user: "Aladdin".into(), password: "open".into() };
        check(
            &basic,
            "Aladdin:open QWxhZGRpbjpvcGVu blue a-custom-key",
            "Aladdin:******** ******** blue ********",
        );
        check(&Authentication::Bearer("b34r3r".into()), "Bearer b34r3r", "Bearer ********");
        let key = Authentication::ApiKey { header: "x-api-key".into(), key: "k3y".into() };
        check(&key, "{\"key\":\"k3y\"}", "{\"key\":\"********\"}");
        let oauth = Authentication::ClientCredentials(Arc::new(ClientCredentials {
            token_url: "https://merchant.example/token".parse().unwrap(),
            client_id: "backhaul".to_owned(),
            client_secret: "s3cr3t".into(),
            scope: None,
            placement: Placement::Body,
        }));
        check(&oauth, "backhaul s3cr3t t0k3n/x t0k3n\\/x", "backhaul ******** ******** ********");
    }

    #[test]
    fn a_body_is_logged_as_received_up_to_4_kib() {
        let body = " { \"a\" : 1 }\r\n\u{fc}".repeat(1000);
        let endpoint = endpoint(&Authentication::None);
        let logged = response_log(body.as_bytes(), &SentSecrets::new(&endpoint, None), false);
        assert!(body.starts_with(&logged));
        assert!((4093..=4096).contains(&logged.len()), "{}", logged.len());
    }

    #[test]
    fn a_secret_at_the_end_of_the_logged_part_is_masked() {
        let endpoint = endpoint(&Authentication::Bearer("b34r3r".into()));
        let body = format!("{}b34r3r", "x".repeat(4093));
        let logged = response_log(body.as_bytes(), &SentSecrets::new(&endpoint, None), false);
        assert_eq!(logged, format!("{}***", "x".repeat(4093)));
    }

    #[test]
    fn a_document_is_masked_where_a_response_can_have_one() {
        let endpoint = endpoint(&Authentication::None);
        let secrets = SentSecrets::new(&endpoint, None);
        let document = "JVBERi0x/+A=\\n".repeat(1000);
        let body = format!(r#"{{"label":"{document}","tracking_number":"1Z"}}"#);
        assert!(response_log(body.as_bytes(), &secrets, false).starts_with(r#"{"label":"JVBER"#));
        assert_eq!(response_log(body.as_bytes(), &secrets, true), r#"{"label":"********"#);
        let short = format!(r#"{{"label":"{}","tracking_number":"1Z"}}"#, "A".repeat(257));
        let masked = r#"{"label":"********","tracking_number":"1Z"}"#;
        assert_eq!(response_log(short.as_bytes(), &secrets, true), masked);
        let url = r#"{"label":"https://carrier.example/1.pdf?key=a","größe":"1Z"}"#;
        assert_eq!(response_log(url.as_bytes(), &secrets, true), url);
    }
}
