//! The shopper's comments about the items of a return, for the merchant.
//!
//! They are in the body of the confirmation and never in a URL.

use domain::{printable::is_printable, returns::MAX_COMMENT_CHARS};
use pages::form::{Field, Fields};

use super::request::{Request, RequestItem};
use crate::{page::Page, sent::Problem};

/// The field for a comment about an item.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommentField {
    /// The id and the name of the field.
    pub(super) id: String,
    pub(super) label: String,
    pub(super) field: Field,
}

impl CommentField {
    /// A field for each item of the request. `titles` are those of the items.
    pub(super) fn all<'a>(
        page: &Page,
        request: &Request,
        titles: impl Iterator<Item = &'a str>,
    ) -> Vec<Self> {
        let field = |((index, item), title): ((usize, &RequestItem), &str)| {
            let comment = item.comment.as_deref().unwrap_or_default();
            let mut field = Field::new(comment);
            if is_too_long(comment) {
                field.reject(page.t1("check-comment-long", "max", MAX_COMMENT_CHARS));
            }
            Self { id: id(index), label: page.t1("check-comment", "title", title), field }
        };
        request.items.iter().enumerate().zip(titles).map(field).collect()
    }

    pub(super) fn problem(&self) -> Option<Problem> {
        let text = self.field.error.clone()?;
        Some(Problem { id: self.id.clone(), text })
    }
}

impl Request {
    /// The request with the comments of a form.
    pub(super) fn with_comments(mut self, fields: &Fields) -> Self {
        for (index, item) in self.items.iter_mut().enumerate() {
            let text = readable(fields.text(&id(index)));
            item.comment = (!text.is_empty()).then_some(text);
        }
        self
    }

    pub(super) fn has_long_comment(&self) -> bool {
        self.items.iter().any(|item| item.comment.as_deref().is_some_and(is_too_long))
    }

    /// The comments as form fields: name and value.
    pub(super) fn comment_fields(&self) -> Vec<(String, String)> {
        let comments = self.items.iter().enumerate();
        comments.filter_map(|(index, item)| Some((id(index), item.comment.clone()?))).collect()
    }
}

fn id(index: usize) -> String {
    format!("comment-{index}")
}

/// The text without characters that rma-engine rejects.
fn readable(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\t', " ");
    text.chars().filter(|c| *c == '\n' || is_printable(*c)).collect()
}

fn is_too_long(comment: &str) -> bool {
    comment.chars().count() > MAX_COMMENT_CHARS
}

#[cfg(test)]
mod tests {
    use super::super::request::tests::request;
    use super::*;
    use crate::sent::Sent;

    fn commented(text: &str) -> Request {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("comment-0", text)
            .finish();
        request("refund", None).with_comments(&Sent::parse(&query).unwrap().fields)
    }

    #[test]
    fn a_comment_is_sent_as_it_was_typed() {
        let comment = |text: &str| commented(text).items.remove(0).comment;
        assert_eq!(comment(" \r\n "), None);
        assert_eq!(
            comment("Too\ttight\r\nat the neck "),
            Some("Too tight\nat the neck".to_owned())
        );
        assert_eq!(comment("a\u{202e}b\u{7}"), Some("ab".to_owned()));
        let fields = commented("Too tight").comment_fields();
        assert_eq!(fields, [("comment-0".to_owned(), "Too tight".to_owned())]);
    }

    #[test]
    fn a_comment_that_is_too_long_is_an_error_at_its_field() {
        let page = crate::basket::tests::page();
        let field =
            |request: &Request| CommentField::all(&page, request, ["Shirt"].into_iter()).remove(0);
        let longest = commented(&"é".repeat(MAX_COMMENT_CHARS));
        assert!(!longest.has_long_comment() && field(&longest).problem().is_none());
        let longer = commented(&"é".repeat(MAX_COMMENT_CHARS + 1));
        assert!(longer.has_long_comment());
        let problem = field(&longer).problem().unwrap();
        assert_eq!(
            (problem.id.as_str(), field(&longer).field.value.chars().count()),
            ("comment-0", 1_001)
        );
        assert!(problem.text.contains("1000"), "{}", problem.text);
    }
}
