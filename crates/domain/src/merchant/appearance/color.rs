//! Colours, and the contrast between them as WCAG 2.2 defines it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::json::FieldError;

/// The smallest contrast of text and its background (WCAG 2.2, success criterion 1.4.3).
pub const MIN_CONTRAST: f64 = 4.5;

/// The colours of the portal. Each text colour has a contrast of at least 4.5:1 to its background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Colors {
    /// The background of buttons and of the page's head.
    pub primary: Color,
    pub text_on_primary: Color,
    pub background: Color,
    pub text: Color,
}

impl Default for Colors {
    /// Dark grey on white.
    fn default() -> Self {
        Self {
            primary: Color([0x1f, 0x29, 0x37]),
            text_on_primary: Color([0xff; 3]),
            background: Color([0xff; 3]),
            text: Color([0x11, 0x18, 0x27]),
        }
    }
}

impl Colors {
    /// One error for each text colour that is hard to read on its background.
    pub fn low_contrasts(&self) -> impl Iterator<Item = FieldError> {
        let pairs = [
            ("text_on_primary", self.text_on_primary, "primary", self.primary),
            ("text", self.text, "background", self.background),
        ];
        pairs.into_iter().filter_map(|(key, text, background_key, background)| {
            let contrast = text.contrast(background);
            // Two digits, rounded down, so that 4.499 is not shown as 4.50.
            let shown = (contrast * 100.0).floor() / 100.0;
            (contrast < MIN_CONTRAST).then(|| {
                let detail = format!(
                    "{text} has a contrast of {shown:.2}:1 to {background_key} {background}: \
                     at least {MIN_CONTRAST}:1 is needed"
                );
                FieldError::invalid(format!("$.appearance.colors.{key}"), detail)
            })
        })
    }
}

/// An opaque colour of the sRGB space. Its text has six hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^#([0-9a-fA-F]{3}){1,2}$", example = "#0b6e4f")]
pub struct Color([u8; 3]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a colour with 3 or 6 hexadecimal digits, like #0b6e4f")]
pub struct InvalidColor;

impl Color {
    /// The contrast of two colours, from 1 to 21.
    pub fn contrast(self, other: Self) -> f64 {
        let one = self.luminance();
        let other = other.luminance();
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// The relative luminance: 0 for black, 1 for white.
    fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(|channel| {
            let channel = f64::from(channel) / 255.0;
            if channel <= 0.04045 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}

impl FromStr for Color {
    type Err = InvalidColor;

    fn from_str(text: &str) -> Result<Self, InvalidColor> {
        let digits = text.strip_prefix('#').ok_or(InvalidColor)?.chars();
        let digits: Option<Vec<u32>> = digits.map(|digit| digit.to_digit(16)).collect();
        let channels = match *digits.ok_or(InvalidColor)? {
            [r, g, b] => [r * 17, g * 17, b * 17],
            [r, red, g, green, b, blue] => [r * 16 + red, g * 16 + green, b * 16 + blue],
            _ => return Err(InvalidColor),
        };
        // Two hexadecimal digits always fit into a byte.
        Ok(Self(channels.map(|channel| u8::try_from(channel).unwrap_or(u8::MAX))))
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl TryFrom<String> for Color {
    type Error = InvalidColor;

    fn try_from(text: String) -> Result<Self, InvalidColor> {
        text.parse()
    }
}

impl From<Color> for String {
    fn from(color: Color) -> Self {
        color.to_string()
    }
}
