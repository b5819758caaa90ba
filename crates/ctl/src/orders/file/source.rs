//! The source of orders: a file or standard input.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::OrderReader;

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

    /// Opens the source. The counter holds the bytes read from the file, before decompression. A source
    /// without orders is an error, because a failed export often leaves an empty file.
    pub(crate) fn open(&self) -> io::Result<(Peekable<OrderReader>, Arc<AtomicU64>)> {
        let bytes_read = Arc::new(AtomicU64::new(0));
        let raw: Box<dyn Read + Send> = match self {
            Self::File(path) => Box::new(File::open(path)?),
            Self::Stdin => Box::new(io::stdin()),
        };
        let counting = CountingReader { inner: raw, bytes_read: bytes_read.clone() };
        let mut orders = OrderReader::new(counting)?.peekable();
        if orders.peek().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "no orders found"));
        }
        Ok((orders, bytes_read))
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
