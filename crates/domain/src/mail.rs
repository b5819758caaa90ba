//! Mails: messages that go to an SMTP server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of a message of the kind `mail`. The sender makes the mail from it, the same in every attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Mail {
    /// The address of the recipient.
    #[schema(min_length = 3, max_length = 254, example = "help@acme.example")]
    pub to: String,
    pub subject: String,
    /// The mail as plain text.
    pub text: String,
    /// The mail as HTML, with the same content.
    pub html: String,
}

/// Writes a text as HTML, also as the value of an attribute.
pub fn escape_html(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;
    use serde_json::json;

    use super::*;
    use crate::schema::json_schema;

    #[test]
    fn the_message_schema_is_up_to_date() {
        let schema = json_schema::<Mail>("Mail message");
        expect_file!["../../../proto-schemas/messages/mail.schema.json"]
            .assert_eq(&format!("{schema:#}\n"));
        let validator = jsonschema::validator_for(&schema).unwrap();
        let [to, subject, text, html] =
            ["a@b.example", "S", "T", "<p>T</p>"].map(ToOwned::to_owned);
        assert!(validator.is_valid(&json!(Mail { to, subject, text, html })));
    }

    #[test]
    fn a_text_cannot_add_an_element_or_an_attribute() {
        let html = escape_html(r#"<b title="x" onclick='y'> & "#);
        assert_eq!(html, "&lt;b title=&quot;x&quot; onclick=&#39;y&#39;&gt; &amp; ");
    }
}
