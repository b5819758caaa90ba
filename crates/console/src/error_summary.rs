//! The summary of the errors of a form. It comes before the fields, so it is made from the page when all of them
//! are rendered.

const ALERTS: [&str; 2] =
    [r#"<p class="note bad" role="alert""#, r#"<div class="note bad" role="alert""#];
const FIELD_ERROR: &str = r#"<p class="field-error" id=""#;

/// An error beside a field. The texts are HTML.
#[derive(Debug, PartialEq, Eq)]
struct FieldError<'a> {
    id: &'a str,
    label: Option<&'a str>,
    text: &'a str,
}

/// Adds to the page of a rejected form: "Error:" before the title, the focus on the summary, and links from the
/// summary to the fields.
pub(crate) fn add_to(page: &str) -> String {
    let links = links(&field_errors(page));
    let page = page.replacen("<title>", "<title>Error: ", 1);
    if let Some((before, attributes, text, after)) = alert(&page) {
        return format!(
            r#"{before}<div{attributes} tabindex="-1" autofocus>{text}{links}</div>{after}"#
        );
    }
    match split_after(&page, "<main", ">") {
        Some((before, after)) if !links.is_empty() => format!(
            r#"{before}<div class="note bad" role="alert" tabindex="-1" autofocus><p>Nothing was saved. Please correct this:</p>{links}</div>{after}"#
        ),
        _ => page,
    }
}

/// The text before the first alert, its attributes and content, and the text after it.
fn alert(page: &str) -> Option<(&str, &str, String, &str)> {
    let (start, tag) = ALERTS
        .iter()
        .zip(["p", "div"])
        .filter_map(|(alert, tag)| Some((page.find(alert)?, tag)))
        .min()?;
    let (before, rest) = page.split_at_checked(start)?;
    let (attributes, rest) = rest.strip_prefix(&format!("<{tag}"))?.split_once('>')?;
    let (text, after) = rest.split_once(&format!("</{tag}>"))?;
    let text = if tag == "p" { format!("<p>{text}</p>") } else { text.to_owned() };
    Some((before, attributes, text, after))
}

fn field_errors(page: &str) -> Vec<FieldError<'_>> {
    let error = |part: &'_ str| -> Option<(usize, usize)> {
        let id = part.find("-error\">")?;
        let text = part.find("</p>")?;
        Some((id, text))
    };
    let parts = page.split(FIELD_ERROR).skip(1);
    let errors = parts.filter_map(|part| {
        let (id_end, text_end) = error(part)?;
        let id = part.get(..id_end)?;
        let text = part.get(id_end + "-error\">".len()..text_end)?.trim();
        (!text.is_empty()).then(|| FieldError { id, label: label(page, id), text })
    });
    errors.collect()
}

/// The label of a field, or its accessible name.
fn label<'a>(page: &'a str, id: &str) -> Option<&'a str> {
    let (_, rest) = page.split_once(&format!(r#"<label for="{id}">"#))?;
    rest.split_once("</label>").map(|(label, _)| label)
}

fn links(errors: &[FieldError<'_>]) -> String {
    if errors.is_empty() {
        return String::new();
    }
    let items: String = errors
        .iter()
        .map(|FieldError { id, label, text }| match label {
            Some(label) => format!(r##"<li><a href="#{id}">{label}</a>: {text}</li>"##),
            None => format!(r##"<li><a href="#{id}">{text}</a></li>"##),
        })
        .collect();
    format!("<ul>{items}</ul>")
}

/// The text up to the end of a tag, and the rest.
fn split_after<'a>(page: &'a str, start: &str, end: &str) -> Option<(&'a str, &'a str)> {
    let start = page.find(start)?;
    let end = start + page.get(start..)?.find(end)? + end.len();
    page.split_at_checked(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &str = concat!(
        r#"<label for="name">Name</label><input id="name">"#,
        r#"<p class="field-error" id="name-error">Must not be empty.</p>"#,
        r#"<p class="field-error" id="role-error"></p>"#,
    );

    #[test]
    fn the_summary_has_the_focus_and_links_to_the_fields() {
        let page = format!(
            r#"<title>Person</title><main id="content"><p class="note bad" role="alert">1 field is not valid.</p>{FIELDS}</main>"#
        );
        let shown = add_to(&page);
        assert!(shown.starts_with("<title>Error: Person</title>"), "{shown}");
        let summary = concat!(
            r#"<div class="note bad" role="alert" tabindex="-1" autofocus><p>1 field is not valid.</p>"#,
            r##"<ul><li><a href="#name">Name</a>: Must not be empty.</li></ul></div>"##,
        );
        assert!(shown.contains(summary), "{shown}");
        assert!(!shown.contains("#role"), "{shown}");
    }

    #[test]
    fn a_form_without_a_message_gets_a_summary() {
        let shown =
            add_to(&format!(r#"<title>Welcome</title><main class="narrow">{FIELDS}</main>"#));
        let start =
            r#"<main class="narrow"><div class="note bad" role="alert" tabindex="-1" autofocus>"#;
        assert!(shown.contains(start) && shown.contains("Please correct this"), "{shown}");
    }

    #[test]
    fn a_page_without_errors_of_fields_keeps_its_message() {
        let page = r#"<main><div class="note bad" role="alert"><p>No.</p></div></main>"#;
        let shown = add_to(page);
        let expected = r#"<main><div class="note bad" role="alert" tabindex="-1" autofocus><p>No.</p></div></main>"#;
        assert_eq!(shown, expected);
        assert_eq!(add_to("<main></main>"), "<main></main>");
    }
}
