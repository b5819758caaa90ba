//! QR codes as inline SVG.

use qrcode::{Color, QrCode};

/// The empty border that readers need, in modules.
const BORDER: usize = 4;

/// A QR code with a text for people who do not see it. `None` if the content is too long for a code.
pub fn svg(content: &str, title: &str) -> Option<String> {
    let code = QrCode::new(content).ok()?;
    let width = code.width();
    let mut path = String::new();
    for (row, modules) in code.to_colors().chunks(width).enumerate() {
        for (column, color) in modules.iter().enumerate() {
            if *color == Color::Dark {
                path.push_str(&format!("M{} {}h1v1h-1z", column + BORDER, row + BORDER));
            }
        }
    }
    let title = askama::filters::escape(title, askama::filters::Html).ok()?;
    let size = width + 2 * BORDER;
    Some(format!(
        r#"<svg viewBox="0 0 {size} {size}" role="img" aria-label="{title}" shape-rendering="crispEdges"><path fill="black" d="{path}"/></svg>"#
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_a_border_and_three_finder_patterns() {
        let svg = svg("otpauth://totp/a", "T <b>").unwrap();
        assert!(svg.starts_with(r#"<svg viewBox="0 0 33 33""#), "{svg}");
        assert!(!svg.contains("<b>"), "{svg}");
        // The corners of the finder patterns; the code has 25 modules.
        for corner in ["M4 4h", "M28 4h", "M4 28h"] {
            assert!(svg.contains(corner), "{corner} in {svg}");
        }
    }

    #[test]
    fn a_content_that_is_too_long_has_no_code() {
        assert_eq!(svg(&"x".repeat(5000), "t"), None);
    }
}
