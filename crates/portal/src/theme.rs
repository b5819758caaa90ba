//! A merchant's colours as a style sheet, `/theme/{merchant}/{version}.css`.
//!
//! The merchant gives four colours; the others are mixed from them, so that every text keeps the contrast
//! of WCAG 2.2. A merchant that leaves background and text at their defaults gets a dark theme too.

use actix_web::{HttpRequest, HttpResponse, get, web};
use domain::merchant::{Color, Colors, MIN_CONTRAST};
use platform::http::ClientIp;

use crate::{App, error::PageError, page::style_sheet};

/// The smallest contrast of borders and focus rings (WCAG 2.2, success criterion 1.4.11).
const MIN_BORDER_CONTRAST: f64 = 3.0;
/// Page and text of the dark theme, as in `pages.css`.
const DARK: (&str, &str) = ("#0f141b", "#e7ecf3");
/// The colours of states on light and on dark pages, as in `pages.css`: name, text, background.
const LIGHT_STATES: [(&str, &str, &str); 3] =
    [("good", "#116b3a", "#e0f4e8"), ("warn", "#7a4b00", "#fdf0d5"), ("bad", "#a81e2d", "#fde7e9")];
const DARK_STATES: [(&str, &str, &str); 3] =
    [("good", "#6fd79b", "#12311f"), ("warn", "#f2c265", "#382908"), ("bad", "#ff9aa4", "#42171d")];

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_theme);
}

#[get("/theme/{merchant}/{version}.css")]
async fn show_theme(
    app: web::Data<App>,
    request: HttpRequest,
    path: web::Path<(String, i64)>,
) -> Result<HttpResponse, PageError> {
    let (merchant, version) = path.into_inner();
    let address = ClientIp::of(&request).0;
    let mut portal = app.portals.find(&app.access, address, &merchant).await?;
    if portal.as_ref().is_some_and(|portal| portal.version < version) {
        app.portals.invalidate(&merchant).await;
        portal = app.portals.find(&app.access, address, &merchant).await?;
    }
    let portal = portal.ok_or(PageError::NotFound)?;
    // Another version's colours must not be kept under this URL.
    Ok(style_sheet(style(&portal.colors), portal.version == version))
}

fn style(colors: &Colors) -> String {
    let default = Colors::default();
    let mut style = tokens(colors);
    if (colors.background, colors.text) == (default.background, default.text) {
        let (background, text) = (color(DARK.0), color(DARK.1));
        let dark = tokens(&Colors { background, text, ..*colors });
        style.push_str(&format!("@media (prefers-color-scheme: dark) {{\n{dark}}}\n"));
    }
    style
}

/// The custom properties of one colour scheme.
fn tokens(colors: &Colors) -> String {
    let Colors { primary, text_on_primary, background, text } = *colors;
    let is_dark = background.contrast(color("#fff")) > background.contrast(color("#000"));
    // A background for text. Without enough contrast it is the page's own.
    let soft = |soft: Color| if text.contrast(soft) >= MIN_CONTRAST { soft } else { background };
    let raised = soft(mix(text, background, 6));
    let is_readable = |color: Color| {
        color.contrast(background) >= MIN_CONTRAST && color.contrast(raised) >= MIN_CONTRAST
    };
    let muted =
        (60..100).step_by(5).map(|share| mix(text, background, share)).find(|c| is_readable(*c));
    let border = (40..100).step_by(5).map(|share| mix(text, background, share));
    let border = border.into_iter().find(|c| c.contrast(background) >= MIN_BORDER_CONTRAST);
    let border = border.unwrap_or(text);
    let accent = if is_readable(primary) { primary } else { text };
    let is_visible = primary.contrast(background) >= MIN_BORDER_CONTRAST;
    let tokens = [
        ("page", background),
        ("surface", background),
        ("surface-2", raised),
        ("text", text),
        ("muted", muted.unwrap_or(text)),
        ("line", mix(text, background, 16)),
        ("line-strong", border),
        ("accent", accent),
        ("accent-strong", text),
        ("accent-soft", soft(mix(accent, background, 8))),
        ("focus", accent),
        ("brand", primary),
        ("on-brand", text_on_primary),
        ("brand-line", if is_visible { primary } else { border }),
    ];
    let states = if is_dark { DARK_STATES } else { LIGHT_STATES };
    let mut style =
        format!(":root {{\n  color-scheme: {};\n", if is_dark { "dark" } else { "light" });
    for (name, state, state_soft) in states {
        let (state, state_soft) = (color(state), soft(color(state_soft)));
        let fits = is_readable(state) && state.contrast(state_soft) >= MIN_CONTRAST;
        let state = if fits { state } else { text };
        style.push_str(&format!("  --{name}: {state};\n  --{name}-soft: {state_soft};\n"));
    }
    for (name, color) in tokens {
        style.push_str(&format!("  --{name}: {color};\n"));
    }
    style.push_str("}\n");
    style
}

/// A fixed colour of this module.
fn color(text: &str) -> Color {
    text.parse().unwrap_or(Colors::default().text)
}

/// `share` percent of the first colour and the rest of the second.
fn mix(first: Color, second: Color, share: u16) -> Color {
    let mixed = channels(first).into_iter().zip(channels(second)).map(|(first, second)| {
        let value = (first * share + second * (100 - share) + 50) / 100;
        format!("{value:02x}")
    });
    format!("#{}", mixed.collect::<String>()).parse().unwrap_or(first)
}

fn channels(color: Color) -> [u16; 3] {
    let text = color.to_string();
    [1..3, 3..5, 5..7].map(|digits| {
        text.get(digits).and_then(|digits| u16::from_str_radix(digits, 16).ok()).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colors(primary: &str, text_on_primary: &str, background: &str, text: &str) -> Colors {
        Colors {
            primary: color(primary),
            text_on_primary: color(text_on_primary),
            background: color(background),
            text: color(text),
        }
    }

    fn token(style: &str, name: &str) -> Color {
        let rest = style.split(&format!("--{name}: ")).nth(1).unwrap();
        rest.split(';').next().unwrap().parse().unwrap()
    }

    #[test]
    fn every_text_has_enough_contrast() {
        for colors in [
            Colors::default(),
            colors("#ffdd00", "#000", "#fff", "#111"),
            colors("#0a5", "#000", "#fff", "#767676"),
            colors("#fff", "#000", "#101010", "#eee"),
            colors("#0b6e4f", "#fff", "#cccccc", "#222"),
            colors("#777", "#000", "#808080", "#000"),
        ] {
            let style = tokens(&colors);
            for (text, background) in [
                ("text", "page"),
                ("text", "surface-2"),
                ("muted", "page"),
                ("muted", "surface-2"),
                ("accent", "page"),
                ("accent-strong", "accent-soft"),
                ("on-brand", "brand"),
                ("good", "good-soft"),
                ("warn", "warn-soft"),
                ("bad", "bad-soft"),
                ("bad", "page"),
                ("text", "bad-soft"),
            ] {
                let contrast = token(&style, text).contrast(token(&style, background));
                assert!(contrast >= MIN_CONTRAST, "{text} on {background}: {contrast}\n{style}");
            }
            let border = token(&style, "line-strong").contrast(token(&style, "page"));
            assert!(border >= MIN_BORDER_CONTRAST, "{border}\n{style}");
        }
    }

    #[test]
    fn own_backgrounds_have_no_dark_theme() {
        let dark = "prefers-color-scheme: dark";
        let brand = Colors { primary: color("#0b6e4f"), ..Colors::default() };
        assert!(style(&brand).contains(dark));
        assert!(!style(&colors("#0b6e4f", "#fff", "#fffdf7", "#111")).contains(dark));
        let night = style(&colors("#fff", "#000", "#101010", "#eee"));
        assert!(night.starts_with(":root {\n  color-scheme: dark;"), "{night}");
    }

    #[test]
    fn colors_are_mixed_by_channel() {
        assert_eq!(mix(color("#000"), color("#fff"), 50), color("#808080"));
        assert_eq!(mix(color("#f00"), color("#00f"), 100), color("#f00"));
    }
}
