//! The part of a mail with HTML: one column, the shop's name or logo and its colours, one button.
//!
//! Many programs for mail ignore style sheets, so that all styles are inline, except those for dark mode. The logo is the
//! only thing that is loaded; its URL is the same in all mails.

use askama::Template;
use domain::merchant::{Appearance, Colors};

use super::parts::{Block, Content, Link};

#[derive(Template)]
#[template(path = "mail.html")]
struct HtmlPart<'a> {
    language: &'a str,
    subject: &'a str,
    shop: &'a str,
    logo_url: Option<&'a str>,
    colors: Colors,
    /// Whether the merchant leaves page and text at their defaults, which have a dark form.
    has_dark: bool,
    blocks: &'a [Block],
    links: &'a [Link],
    remarks: &'a [String],
}

pub(super) fn html_part(
    content: &Content,
    shop: &str,
    appearance: &Appearance,
) -> askama::Result<String> {
    let colors = appearance.colors;
    let default = Colors::default();
    HtmlPart {
        language: content.language.as_str(),
        subject: &content.subject,
        shop,
        logo_url: appearance.logo_url.as_deref(),
        colors,
        has_dark: (colors.background, colors.text) == (default.background, default.text),
        blocks: &content.blocks,
        links: &content.links,
        remarks: &content.remarks,
    }
    .render()
}
