//! The page as the shopper sees it, and the form that confirms the return.

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use pages::form::Field;
use uuid::Uuid;

use super::{
    changes::{self, Changed},
    comments::CommentField,
    quote::Quote,
    request::Request,
    summary::Summary,
};
use crate::{
    App,
    draft::ReturnDraft,
    error::PageError,
    page::{Page, Step, html_with},
    sent::Problem,
    visit::Visit,
};

/// The longest e-mail address.
const MAX_EMAIL_BYTES: usize = 255;

#[derive(Template)]
#[template(path = "check.html")]
struct CheckPage {
    page: Page,
    summary: Summary,
    changed: Changed,
    problems: Vec<Problem>,
    /// Present for a giftee.
    email: Option<Field>,
    comments: Vec<CommentField>,
    form: ConfirmForm,
    back: String,
    /// The page with the items that can be returned; absent if there are none.
    choose: Option<String>,
    /// The page on which the shopper can choose something else.
    resolution_url: String,
    /// A remark above the amounts.
    note: Option<String>,
}

/// The page of a confirmation with an unknown result.
#[derive(Template)]
#[template(path = "confirm_again.html")]
pub(super) struct AgainPage {
    pub(super) page: Page,
    pub(super) form: ConfirmForm,
    pub(super) email: Option<String>,
    /// Name and value.
    pub(super) comments: Vec<(String, String)>,
}

/// The hidden fields that confirm a return.
pub(super) struct ConfirmForm {
    action: String,
    /// Choices that do not fit into the URL.
    hidden: Vec<(&'static str, String)>,
    request: String,
    quote: String,
    key: String,
}

/// A return that can be confirmed.
pub(super) struct Check<'a> {
    app: &'a App,
    visit: &'a Visit,
    draft: &'a ReturnDraft,
    pub(super) page: Page,
    request: Request,
    pub(super) quote: Quote,
    pub(super) changed: Changed,
    email: Field,
    pub(super) note: Option<String>,
}

impl<'a> Check<'a> {
    pub(super) fn new(
        app: &'a App,
        visit: &'a Visit,
        draft: &'a ReturnDraft,
        request: Request,
        quote: Quote,
    ) -> Self {
        let page = Page::new(visit, Some(Step::Check));
        let changed = Changed::new(&page, &[], &quote);
        Self {
            app,
            visit,
            draft,
            page,
            request,
            quote,
            changed,
            email: Field::default(),
            note: None,
        }
    }

    pub(super) fn with_email(mut self, email: &str, is_wrong: bool) -> Self {
        self.email = Field::new(if email.len() <= MAX_EMAIL_BYTES { email } else { "" });
        if is_wrong {
            self.email.reject(self.page.t("check-email-wrong"));
        }
        self
    }

    pub(super) fn show(self, status: StatusCode) -> Result<HttpResponse, PageError> {
        let Self { visit, draft, page, email, .. } = self;
        let sealed = self.request.seal(self.app, visit)?;
        let possible = changes::possible_choices(draft, &self.quote);
        let error = email.error.clone();
        let error = error.map(|text| Problem { id: "giftee_email".to_owned(), text });
        let summary = Summary::new(&page, &self.request, &self.quote);
        let titles = summary.items.iter().map(|item| item.title.as_str());
        let comments = CommentField::all(&page, &self.request, titles);
        let problems = comments.iter().filter_map(CommentField::problem);
        let page = CheckPage {
            changed: self.changed,
            problems: error.into_iter().chain(problems).collect(),
            comments,
            summary,
            email: self.request.is_gift.then_some(email),
            form: ConfirmForm::new(visit, draft, &sealed, &self.quote.quote, Uuid::new_v4()),
            back: draft.url(visit, "/method"),
            choose: (!possible.choices.is_empty()).then(|| possible.url(visit, "/choose")),
            resolution_url: draft.url(visit, "/resolution"),
            note: self.note,
            page,
        };
        html_with(status, &page.page, &page)
    }
}

impl ConfirmForm {
    pub(super) fn new(
        visit: &Visit,
        draft: &ReturnDraft,
        request: &str,
        quote: &str,
        key: Uuid,
    ) -> Self {
        let is_long = draft.is_long();
        Self {
            action: if is_long { visit.url("/check") } else { draft.url(visit, "/check") },
            hidden: if is_long { draft.fields() } else { Vec::new() },
            request: request.to_owned(),
            quote: quote.to_owned(),
            key: key.to_string(),
        }
    }
}

/// Whether the text can be an e-mail address, as rma-engine checks it.
pub(crate) fn is_email(text: &str) -> bool {
    let is_plain = !text.chars().any(|c| c.is_whitespace() || c.is_control());
    let parts = text.rsplit_once('@').filter(|(name, host)| !name.is_empty() && !host.is_empty());
    is_plain && text.len() <= MAX_EMAIL_BYTES && parts.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_address_has_a_name_and_a_host() {
        for (text, expected) in [
            ("a@b.test", true),
            ("", false),
            ("a", false),
            ("@b", false),
            ("a@", false),
            ("a b@c", false),
        ] {
            assert_eq!(is_email(text), expected, "{text}");
        }
        assert!(!is_email(&format!("{}@b.test", "a".repeat(255))));
    }
}
