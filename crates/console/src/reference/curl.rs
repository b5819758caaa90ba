//! A request as a `curl` command.

use pages::api::{RawRequest, Service};

use super::document::url_variable;

/// The command, one option a line.
pub(super) fn command(service: Service, request: &RawRequest) -> String {
    let method = match request.method.as_str() {
        "GET" => String::new(),
        method => format!("--request {method} "),
    };
    let mut lines = vec![format!("curl {method}\"${}{}\"", url_variable(service), request.target)];
    if request.needs_token {
        lines.push("--header \"Authorization: Bearer $TOKEN\"".to_owned());
    }
    for (name, value) in &request.headers {
        lines.push(format!("--header {}", quoted(&format!("{name}: {value}"))));
    }
    if let Some(body) = &request.body {
        lines.push(format!("--data {}", quoted(body)));
    }
    lines.join(" \\\n  ")
}

/// A text that a shell takes as it is.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use reqwest::Method;

    use super::*;

    #[test]
    fn a_command_has_the_parts_of_the_request() {
        let request = RawRequest {
            method: Method::POST,
            target: "/v1/returns/RMA-1/cancel".to_owned(),
            headers: vec![("X-Service-Id".to_owned(), "acme".to_owned())],
            body: Some(r#"{"reason": "It's kept"}"#.to_owned()),
            needs_token: true,
        };
        let text = [
            r#"curl --request POST "$RMA_URL/v1/returns/RMA-1/cancel" \"#,
            r#"  --header "Authorization: Bearer $TOKEN" \"#,
            r"  --header 'X-Service-Id: acme' \",
            r#"  --data '{"reason": "It'\''s kept"}'"#,
        ];
        assert_eq!(command(Service::RmaEngine, &request), text.join("\n"));
    }

    #[test]
    fn a_public_request_has_no_token() {
        let request = RawRequest {
            method: Method::GET,
            target: "/.well-known/jwks.json".to_owned(),
            headers: Vec::new(),
            body: None,
            needs_token: false,
        };
        assert_eq!(command(Service::Auth, &request), r#"curl "$AUTH_URL/.well-known/jwks.json""#);
    }
}
