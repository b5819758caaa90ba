//! Labels as documents.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The largest document.
pub const MAX_DOCUMENT_BYTES: usize = 1_024 * 1_024;

const NO_BASE64: &str = "must be an https URL or a document in base64";
const TOO_LARGE: &str = "must be a document of up to 1 MiB";
const IS_MARKUP: &str = "must be a PDF, PNG or ZPL document, and is HTML or XML";
const UNKNOWN_FORMAT: &str = "must be a PDF, PNG or ZPL document";

crate::words! {
    /// The format of a document.
    pub enum LabelFormat as "snake_case" {
        Pdf,
        Png,
        /// The language of label printers.
        Zpl,
    }
}

/// A label as a document.
#[derive(Clone, PartialEq, Eq)]
pub struct LabelDocument {
    pub format: LabelFormat,
    pub bytes: Vec<u8>,
}

impl LabelFormat {
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Pdf => "application/pdf",
            Self::Png => "image/png",
            // It has no type of its own.
            Self::Zpl => "application/octet-stream",
        }
    }

    /// The format of a document by its first bytes. A browser that shows the document goes by the media type alone.
    fn of(document: &[u8]) -> Option<Self> {
        match document {
            [b'%', b'P', b'D', b'F', b'-', ..] => Some(Self::Pdf),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            _ if is_zpl(document.trim_ascii()) => Some(Self::Zpl),
            _ => None,
        }
    }
}

/// Some printer drivers write settings before the label.
fn is_zpl(document: &[u8]) -> bool {
    let is_start = [&b"^XA"[..], b"CT~~", b"~"].iter().any(|start| document.starts_with(start));
    is_start && document.ends_with(b"^XZ")
}

impl LabelDocument {
    /// Reads a document in base64, which may have line breaks.
    pub(super) fn from_base64(text: &str) -> Result<Self, &'static str> {
        let packed: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let bytes = STANDARD.decode(packed).map_err(|_invalid| NO_BASE64)?;
        if bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(TOO_LARGE);
        }
        match LabelFormat::of(&bytes) {
            Some(format) => Ok(Self { format, bytes }),
            None if bytes.trim_ascii().starts_with(b"<") => Err(IS_MARKUP),
            None => Err(UNKNOWN_FORMAT),
        }
    }
}

/// The document shows a shopper's address, so it is not in logs.
impl fmt::Debug for LabelDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.format, self.bytes.len())
    }
}
