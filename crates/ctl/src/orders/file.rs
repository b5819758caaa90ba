//! Reader for files of orders: messages as they are published, one JSON array, one order per line, or
//! orders that span lines; plain or gzipped.
//!
//! A file is read as a stream and may be larger than memory. The reader splits it into orders and
//! does not validate them.

mod layout;
mod source;

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use layout::{MESSAGE_START, Start};
pub(crate) use source::Source;

/// The size limit of a message.
pub(crate) const MAX_ORDER_BYTES: usize = 5 * 1024 * 1024;
const BUFFER_BYTES: usize = 256 * 1024;
/// The start of a file that shows its layout.
const HEAD_BYTES: u64 = 64 * 1024;

/// The bytes of one order in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawOrder {
    /// The line on which the order starts, counted from 1.
    pub(crate) line: u64,
    /// The column of the first byte on that line, counted from 1.
    pub(crate) column: usize,
    /// Cut to [`MAX_ORDER_BYTES`] plus one byte, which marks the order as too large.
    pub(crate) bytes: Vec<u8>,
}

impl RawOrder {
    fn new((line, column): (u64, usize), mut bytes: Vec<u8>) -> Self {
        // An order that was cut at a space must not become small enough.
        if bytes.len() <= MAX_ORDER_BYTES {
            bytes.truncate(bytes.trim_ascii_end().len());
        }
        Self { line, column, bytes }
    }
}

/// An iterator over the orders of a file.
pub(crate) struct OrderReader {
    bytes: Box<dyn BufRead + Send>,
    line: u64,
    /// The column of the next byte, counted from 1.
    column: usize,
    layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Lines,
    /// Orders that may span lines.
    Values,
    /// Inside an array, which may be that of a message; `started` after its first element.
    Array {
        started: bool,
        in_message: bool,
    },
    Ended,
}

impl OrderReader {
    pub(crate) fn new(raw: impl Read + Send + 'static) -> io::Result<Self> {
        let mut raw = BufReader::with_capacity(BUFFER_BYTES, raw);
        let mut bytes: Box<dyn BufRead + Send> = if raw.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(raw)))
        } else {
            Box::new(raw)
        };
        let mut head = Vec::new();
        bytes.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
        if head.starts_with("\u{feff}".as_bytes()) {
            head.drain(..3);
        }
        let start = Start::of(&head);
        let bytes = Box::new(io::Cursor::new(head).chain(bytes));
        let mut reader = Self { bytes, line: 1, column: 1, layout: Layout::Lines };
        reader.layout = match start {
            Start::Lines => Layout::Lines,
            Start::Values => Layout::Values,
            Start::Array => {
                reader.expect(b"[")?;
                Layout::Array { started: false, in_message: false }
            }
            Start::Message => {
                reader.enter_message()?;
                Layout::Array { started: false, in_message: true }
            }
            Start::Unknown => {
                reader.skip_space()?;
                return Err(reader.malformed(layout::UNKNOWN));
            }
        };
        Ok(reader)
    }

    /// Reads up to the array of a message.
    fn enter_message(&mut self) -> io::Result<()> {
        MESSAGE_START.iter().try_for_each(|token| self.expect(token))
    }

    /// Reads a token and the white space before it.
    fn expect(&mut self, token: &[u8]) -> io::Result<()> {
        self.skip_space()?;
        for byte in token {
            if self.bytes.fill_buf()?.first() != Some(byte) {
                let token = String::from_utf8_lossy(token);
                return Err(self.malformed(&format!("expected {token}")));
            }
            self.skip_byte();
        }
        Ok(())
    }

    /// Consumes a byte of the current line.
    fn skip_byte(&mut self) {
        self.bytes.consume(1);
        self.column += 1;
    }

    /// Skips white space and returns the next byte without consuming it.
    fn skip_space(&mut self) -> io::Result<Option<u8>> {
        loop {
            let Some(&byte) = self.bytes.fill_buf()?.first() else { return Ok(None) };
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.skip_byte();
            if byte == b'\n' {
                (self.line, self.column) = (self.line + 1, 1);
            }
        }
    }

    fn next_line(&mut self) -> io::Result<Option<RawOrder>> {
        if self.skip_space()?.is_none() {
            return Ok(None);
        }
        let start = (self.line, self.column);
        let mut bytes = Vec::new();
        let mut limited = (&mut self.bytes).take(read_limit());
        limited.read_until(b'\n', &mut bytes)?;
        if bytes.last() != Some(&b'\n') {
            self.bytes.skip_until(b'\n')?;
        }
        (self.line, self.column) = (self.line + 1, 1);
        Ok(Some(RawOrder::new(start, bytes)))
    }

    fn next_element(&mut self, started: bool, in_message: bool) -> io::Result<Option<RawOrder>> {
        let mut next = self.skip_space()?;
        if started && next == Some(b',') {
            self.skip_byte();
            next = self.skip_space()?;
        } else if started && next != Some(b']') {
            return Err(self.malformed("expected a comma or a closing bracket"));
        }
        match next {
            None => Err(self.malformed("the file ends inside the array")),
            Some(b']') => {
                self.skip_byte();
                if in_message { self.leave_message() } else { self.leave_array() }
            }
            Some(_) => self.element(Layout::Array { started, in_message }).map(Some),
        }
    }

    fn leave_array(&mut self) -> io::Result<Option<RawOrder>> {
        match self.skip_space()? {
            None => Ok(None),
            Some(_) => Err(self.malformed("unexpected content after the array")),
        }
    }

    /// Reads the end of a message, and the first order of the next one if there is one.
    fn leave_message(&mut self) -> io::Result<Option<RawOrder>> {
        self.expect(b"}")?;
        self.expect(b"}")?;
        if self.skip_space()?.is_none() {
            return Ok(None);
        }
        self.enter_message()?;
        self.next_element(false, true)
    }

    fn next_value(&mut self) -> io::Result<Option<RawOrder>> {
        match self.skip_space()? {
            None => Ok(None),
            Some(b'{') => self.element(Layout::Values).map(Some),
            Some(_) => Err(self.malformed("expected an order")),
        }
    }

    /// Reads one order. In an array, the comma or bracket behind it ends it; commas and brackets inside
    /// strings and nested values do not. Otherwise its last brace ends it.
    fn element(&mut self, layout: Layout) -> io::Result<RawOrder> {
        let is_value = layout == Layout::Values;
        let start = (self.line, self.column);
        let mut bytes = Vec::new();
        let mut depth = 0u32;
        let mut in_string = false;
        let mut escaped = false;
        loop {
            let chunk = self.bytes.fill_buf()?;
            if chunk.is_empty() {
                let part = if is_value { "an order" } else { "the array" };
                return Err(self.malformed(&format!("the file ends inside {part}")));
            }
            let mut end = None;
            for (position, byte) in chunk.iter().enumerate() {
                self.column += 1;
                match byte {
                    b'\n' => (self.line, self.column) = (self.line + 1, 1),
                    _ if escaped => escaped = false,
                    b'\\' if in_string => escaped = true,
                    b'"' => in_string = !in_string,
                    _ if in_string => {}
                    b'{' | b'[' => depth += 1,
                    b',' | b']' if depth == 0 && !is_value => {
                        self.column -= 1;
                        end = Some(position);
                        break;
                    }
                    b'}' | b']' => {
                        depth = depth.saturating_sub(1);
                        if is_value && depth == 0 {
                            end = Some(position + 1);
                            break;
                        }
                    }
                    _ => {}
                }
            }
            let length = end.unwrap_or(chunk.len());
            let capacity = (MAX_ORDER_BYTES + 1).saturating_sub(bytes.len());
            bytes.extend(chunk.iter().take(length.min(capacity)));
            self.bytes.consume(length);
            if end.is_some() {
                return Ok(RawOrder::new(start, bytes));
            }
        }
    }

    fn malformed(&self, problem: &str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {problem}", self.line))
    }
}

impl Iterator for OrderReader {
    type Item = io::Result<RawOrder>;

    fn next(&mut self) -> Option<io::Result<RawOrder>> {
        let next = match self.layout {
            Layout::Lines => self.next_line(),
            Layout::Values => self.next_value(),
            Layout::Array { started, in_message } => {
                self.layout = Layout::Array { started: true, in_message };
                self.next_element(started, in_message)
            }
            Layout::Ended => return None,
        };
        if !matches!(next, Ok(Some(_))) {
            self.layout = Layout::Ended;
        }
        next.transpose()
    }
}

/// One byte more than the size limit, to detect an order that is too large.
fn read_limit() -> u64 {
    u64::try_from(MAX_ORDER_BYTES).unwrap_or(u64::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests;
