//! Reader for files of orders: one order per line or one JSON array, plain or gzipped.
//!
//! A file is read as a stream and may be larger than memory. The reader splits it into orders and
//! does not validate them.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

/// The size limit of a message.
pub(crate) const MAX_ORDER_BYTES: usize = 5 * 1024 * 1024;
const BUFFER_BYTES: usize = 256 * 1024;

/// The bytes of one order in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawOrder {
    /// The line on which the order starts, counted from 1.
    pub(crate) line: u64,
    /// Cut to [`MAX_ORDER_BYTES`] plus one byte, which marks the order as too large.
    pub(crate) bytes: Vec<u8>,
}

impl RawOrder {
    fn new(line: u64, mut bytes: Vec<u8>) -> Self {
        // An order that was cut at a space must not become small enough.
        if bytes.len() <= MAX_ORDER_BYTES {
            bytes.truncate(bytes.trim_ascii_end().len());
        }
        Self { line, bytes }
    }
}

/// A file of orders, or standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    File(PathBuf),
    Stdin,
}

impl From<&str> for Source {
    fn from(argument: &str) -> Self {
        if argument == "-" { Self::Stdin } else { Self::File(argument.into()) }
    }
}

impl Source {
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdin => None,
        }
    }

    /// The name as the caller wrote it.
    pub(crate) fn name(&self) -> Cow<'_, str> {
        self.path().map_or("-".into(), Path::to_string_lossy)
    }

    /// Opens the source. The counter holds the bytes read from the file, before decompression.
    pub(crate) fn open(&self) -> io::Result<(OrderReader, Arc<AtomicU64>)> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let raw: Box<dyn Read + Send> = match self {
            Self::File(path) => Box::new(File::open(path)?),
            Self::Stdin => Box::new(io::stdin()),
        };
        let counting = CountingReader { inner: raw, bytes_read: bytes_read.clone() };
        Ok((OrderReader::new(counting)?, bytes_read))
    }
}

struct CountingReader<R> {
    inner: R,
    bytes_read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(count.try_into().unwrap_or(0), Ordering::Relaxed);
        Ok(count)
    }
}

/// An iterator over the orders of a file.
pub(crate) struct OrderReader {
    bytes: Box<dyn BufRead + Send>,
    line: u64,
    layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Lines,
    /// Inside an array; `started` after its first element.
    Array {
        started: bool,
    },
    Ended,
}

impl OrderReader {
    pub(crate) fn new(raw: impl Read + Send + 'static) -> io::Result<Self> {
        let mut raw = BufReader::with_capacity(BUFFER_BYTES, raw);
        let bytes: Box<dyn BufRead + Send> = if raw.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(raw)))
        } else {
            Box::new(raw)
        };
        let mut reader = Self { bytes, line: 1, layout: Layout::Lines };
        if reader.bytes.fill_buf()?.starts_with("\u{feff}".as_bytes()) {
            reader.bytes.consume(3);
        }
        if reader.skip_space()? == Some(b'[') {
            reader.bytes.consume(1);
            reader.layout = Layout::Array { started: false };
        }
        Ok(reader)
    }

    /// Skips white space and returns the next byte without consuming it.
    fn skip_space(&mut self) -> io::Result<Option<u8>> {
        loop {
            let Some(&byte) = self.bytes.fill_buf()?.first() else { return Ok(None) };
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.line += u64::from(byte == b'\n');
            self.bytes.consume(1);
        }
    }

    fn next_line(&mut self) -> io::Result<Option<RawOrder>> {
        if self.skip_space()?.is_none() {
            return Ok(None);
        }
        let line = self.line;
        let mut bytes = Vec::new();
        let mut limited = (&mut self.bytes).take(read_limit());
        limited.read_until(b'\n', &mut bytes)?;
        if bytes.last() != Some(&b'\n') {
            self.bytes.skip_until(b'\n')?;
        }
        self.line += 1;
        Ok(Some(RawOrder::new(line, bytes)))
    }

    fn next_element(&mut self, started: bool) -> io::Result<Option<RawOrder>> {
        let mut next = self.skip_space()?;
        if started && next == Some(b',') {
            self.bytes.consume(1);
            next = self.skip_space()?;
        } else if started && next != Some(b']') {
            return Err(self.malformed("expected a comma or a closing bracket"));
        }
        match next {
            None => Err(self.malformed("the file ends inside the array")),
            Some(b']') => {
                self.bytes.consume(1);
                match self.skip_space()? {
                    None => Ok(None),
                    Some(_) => Err(self.malformed("unexpected content after the array")),
                }
            }
            Some(_) => self.element().map(Some),
        }
    }

    /// Reads up to the comma or bracket that ends the element. Commas and brackets inside strings
    /// and nested values do not end it.
    fn element(&mut self) -> io::Result<RawOrder> {
        let (line, mut bytes) = (self.line, Vec::new());
        let (mut depth, mut in_string, mut escaped) = (0u32, false, false);
        loop {
            let chunk = self.bytes.fill_buf()?;
            if chunk.is_empty() {
                return Err(self.malformed("the file ends inside the array"));
            }
            let mut end = None;
            for (position, byte) in chunk.iter().enumerate() {
                match byte {
                    b'\n' => self.line += 1,
                    _ if escaped => escaped = false,
                    b'\\' if in_string => escaped = true,
                    b'"' => in_string = !in_string,
                    _ if in_string => {}
                    b'{' | b'[' => depth += 1,
                    b',' | b']' if depth == 0 => {
                        end = Some(position);
                        break;
                    }
                    b'}' | b']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            let length = end.unwrap_or(chunk.len());
            let capacity = (MAX_ORDER_BYTES + 1).saturating_sub(bytes.len());
            bytes.extend(chunk.iter().take(length.min(capacity)));
            self.bytes.consume(length);
            if end.is_some() {
                return Ok(RawOrder::new(line, bytes));
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
            Layout::Array { started } => {
                self.layout = Layout::Array { started: true };
                self.next_element(started)
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
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;

    use super::*;

    fn read(file: impl Into<Vec<u8>>) -> Result<Vec<(u64, String)>, String> {
        let orders = OrderReader::new(io::Cursor::new(file.into())).map_err(|e| e.to_string())?;
        let text = |order: RawOrder| (order.line, String::from_utf8(order.bytes).unwrap());
        orders.map(|order| order.map(text).map_err(|e| e.to_string())).collect()
    }

    #[track_caller]
    fn check(file: &str, expected: &[(u64, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(line, text)| (*line, (*text).to_owned())).collect();
        assert_eq!(read(file).as_deref(), Ok(&expected[..]));
        let mut gzipped = GzEncoder::new(Vec::new(), Compression::fast());
        gzipped.write_all(file.as_bytes()).unwrap();
        assert_eq!(read(gzipped.finish().unwrap()).as_deref(), Ok(&expected[..]));
    }

    #[test]
    fn each_line_is_an_order() {
        check("", &[]);
        check("{}\n{\"a\": 1}\n", &[(1, "{}"), (2, "{\"a\": 1}")]);
        check("\n\n{}\r\n\n  {\"a\":1}  ", &[(3, "{}"), (5, "{\"a\":1}")]);
        check("\u{feff}{}\n", &[(1, "{}")]);
        check("not JSON\n{}", &[(1, "not JSON"), (2, "{}")]);
    }

    #[test]
    fn each_array_element_is_an_order() {
        check("[]", &[]);
        check(" \n[ {} ]\n", &[(2, "{}")]);
        check(
            "[{\"a\": [1, 2]},\n {\"b\": \"],}\\\"\"}\n]",
            &[(1, "{\"a\": [1, 2]}"), (2, "{\"b\": \"],}\\\"\"}")],
        );
        check("[1,\n\n\"x\"]", &[(1, "1"), (3, "\"x\"")]);
    }

    #[test]
    fn a_malformed_array_is_an_error() {
        assert_eq!(read("[{}").unwrap_err(), "line 1: the file ends inside the array");
        assert_eq!(read("[{}\n,").unwrap_err(), "line 2: the file ends inside the array");
        assert_eq!(read("[{}]\n{}").unwrap_err(), "line 2: unexpected content after the array");
    }

    #[test]
    fn an_order_that_is_too_large_is_cut() {
        let large = "x ".repeat(MAX_ORDER_BYTES);
        for file in [format!("{{}}\n{large}\n{{}}\n"), format!("[{{}},\n{large},\n{{}}]")] {
            let sizes = read(file).unwrap().into_iter().map(|(line, text)| (line, text.len()));
            assert_eq!(sizes.collect::<Vec<_>>(), [(1, 2), (2, MAX_ORDER_BYTES + 1), (3, 2)]);
        }
    }

    proptest! {
        #[test]
        fn both_layouts_give_the_same_orders(texts in prop::collection::vec(".{0,20}", 0..8)) {
            let orders: Vec<_> = texts.iter().map(|text| serde_json::json!({ "text": text })).collect();
            let written: Vec<_> = orders.iter().map(ToString::to_string).collect();
            let texts = |read: Vec<(u64, String)>| read.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
            prop_assert_eq!(&texts(read(written.join("\n")).unwrap()), &written);
            prop_assert_eq!(&texts(read(format!("[{}]", written.join(" ,\n"))).unwrap()), &written);
        }
    }
}
