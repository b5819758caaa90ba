//! Pieces of HTML for the cells of tables. Texts are escaped.

use std::{
    borrow::Borrow,
    fmt::{self, Display},
};

use askama::filters;
use chrono::{DateTime, Utc};
use pages::text::Moment;

use crate::Page;

/// A piece of HTML.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Markup(String);

impl Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Markup {
    /// This piece, a space and another piece.
    pub(crate) fn and(self, other: impl Display) -> Self {
        Self(format!("{self} {other}"))
    }

    /// This piece and another one without a space.
    pub(crate) fn with(self, other: impl Display) -> Self {
        Self(format!("{self}{other}"))
    }

    /// This piece and another one in the next line.
    pub(crate) fn below(self, other: impl Display) -> Self {
        Self(format!("{self}<br>{other}"))
    }

    /// This piece, followed by another one if there is one.
    pub(crate) fn and_some(self, other: Option<Self>) -> Self {
        match other {
            Some(other) => self.and(other),
            None => self,
        }
    }

    /// This piece, with another one in the next line if there is one.
    pub(crate) fn below_some(self, other: Option<Self>) -> Self {
        match other {
            Some(other) => self.below(other),
            None => self,
        }
    }

    /// This piece in a `span` of a class.
    pub(crate) fn classed(self, class: &str) -> Self {
        Self(format!(r#"<span class="{class}">{self}</span>"#))
    }
}

pub(crate) fn text(text: impl Display) -> Markup {
    let Ok(escaped) = filters::escape(text, filters::Html);
    Markup(escaped.to_string())
}

pub(crate) fn link(url: impl Display, name: impl Display) -> Markup {
    Markup(format!(r#"<a href="{}">{}</a>"#, text(url), text(name)))
}

/// A link to another site.
pub(crate) fn outside(url: &str, name: &str) -> Markup {
    Markup(format!(r#"<a href="{}" rel="noopener noreferrer">{}</a>"#, text(url), text(name)))
}

pub(crate) fn badge(tone: &str, name: impl Display) -> Markup {
    text(name).classed(format!("badge {tone}").trim_end())
}

/// A link that looks like a button. Screen readers also read out `about`.
pub(crate) fn button(url: impl Display, name: &str, about: impl Display) -> Markup {
    let url = text(url);
    let about = text(about).classed("visually-hidden");
    Markup(format!(r#"<a class="button small" href="{url}">{name}{about}</a>"#))
}

/// Buttons beside each other.
pub(crate) fn row(buttons: impl IntoIterator<Item = Markup>) -> Markup {
    let buttons = buttons.into_iter().reduce(Markup::and).unwrap_or_default();
    Markup(format!(r#"<div class="row">{buttons}</div>"#))
}

pub(crate) fn code(name: impl Display) -> Markup {
    Markup(format!(r#"<code class="small">{}</code>"#, text(name)))
}

/// A text behind a click.
pub(crate) fn details(summary: &str, body: impl Display) -> Markup {
    Markup(format!("<details><summary>{summary}</summary><pre>{}</pre></details>", text(body)))
}

/// A value, or a dash if there is none.
pub(crate) fn or_dash(value: Option<Markup>) -> Markup {
    value.unwrap_or_else(|| text("–"))
}

/// A text, or a dash if there is none.
pub(crate) fn text_or_dash(value: Option<impl Display>) -> Markup {
    or_dash(value.map(text))
}

/// A time: relative, with the exact time on request.
pub(crate) fn time(at: Moment) -> Markup {
    let (iso, exact) = (at.iso(), at.exact());
    Markup(format!(
        r#"<time datetime="{iso}" title="{exact}"><span class="relative-time">{at}</span><span class="exact-time">{exact}</span></time>"#
    ))
}

impl Page {
    /// A time in the zone of the page.
    pub(crate) fn time(&self, at: impl Borrow<DateTime<Utc>>) -> Markup {
        time(self.moment(*at.borrow()))
    }

    /// A time, or a word if there is none.
    pub(crate) fn time_or(&self, at: impl Borrow<Option<DateTime<Utc>>>, none: &str) -> Markup {
        at.borrow().map_or_else(|| text(none), |at| self.time(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let cell =
            link("/a?b&c", "<b>").and(badge("", "\"")).below(text("x").classed("small muted"));
        let expected = "<a href=\"/a?b&#38;c\">&#60;b&#62;</a> <span class=\"badge\">&#34;</span><br>\
                        <span class=\"small muted\">x</span>";
        assert_eq!(cell.to_string(), expected);
        assert_eq!(text_or_dash(None::<&str>).to_string(), "–");
    }
}
