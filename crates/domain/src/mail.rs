//! Mails: messages that go to an SMTP server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of a message of the kind `mail`. The sender makes the mail from it, the same in every attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Mail {
    /// The address of the recipient.
    #[schema(min_length = 3, max_length = 254, example = "help@acme.example")]
    pub to: String,
    /// The name of the sender. Absent: that of the installation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 200, example = "Acme")]
    pub from_name: Option<String>,
    /// The address that gets replies. Absent: that of the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 254, example = "returns@acme.example")]
    pub reply_to: Option<String>,
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
        let mut mail = Mail { to, from_name: None, reply_to: None, subject, text, html };
        assert!(validator.is_valid(&json!(mail)));
        mail.from_name = Some("Acme".to_owned());
        mail.reply_to = Some("returns@acme.example".to_owned());
        assert!(validator.is_valid(&json!(mail)));
    }

    #[test]
    fn a_text_cannot_add_an_element_or_an_attribute() {
        let html = escape_html(r#"<b title="x" onclick='y'> & "#);
        assert_eq!(html, "&lt;b title=&quot;x&quot; onclick=&#39;y&#39;&gt; &amp; ");
    }
}
