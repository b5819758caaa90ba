//! Request bodies: bounded in size, time and memory, decompressed when gzipped, parsed strictly.

use std::{future::Future, io::Read as _, pin::Pin, time::Duration};

use actix_web::{
    FromRequest, HttpMessage as _, HttpRequest, dev::Payload, error::PayloadError, http::header,
};
use bytes::{Bytes, BytesMut};
use domain::json::{Document, Field, ParseError};
use flate2::read::MultiGzDecoder;
use futures_util::StreamExt;

use super::{BodyLimits, RequestMemory};
use crate::{ErrorKind, Failure, Overloaded, Problem, identity::Caller};

/// A larger body is parsed and read off the HTTP workers, on which all other requests would wait meanwhile.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// The reason why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the body did not arrive in time")]
    TooSlow,
    #[error("the body ended before it was complete")]
    Truncated,
    #[error("the body is not valid gzip")]
    BadGzip,
    #[error("content encoding {0:?} is not supported, send gzip or none")]
    Encoding(String),
    #[error("content type must be {0}")]
    ContentType(&'static str),
    #[error(transparent)]
    NotJson(#[from] ParseError),
    #[error("the body is not a form")]
    NotForm,
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    #[error("the body was not read to its end")]
    Abandoned(#[from] tokio::task::JoinError),
}

impl Failure for BodyError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLarge(_) => ErrorKind::TooLarge,
            Self::TooSlow => ErrorKind::TooSlow,
            Self::Truncated | Self::BadGzip | Self::NotJson(_) | Self::NotForm => {
                ErrorKind::Malformed
            }
            Self::Encoding(_) | Self::ContentType(_) => ErrorKind::Unsupported,
            Self::Overloaded(overloaded) => overloaded.kind(),
            Self::Abandoned(_) => ErrorKind::Internal,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Overloaded(overloaded) => overloaded.retry_after(),
            _ => None,
        }
    }
}

type Reading<T> = Pin<Box<dyn Future<Output = Result<T, Problem>>>>;

/// The bytes of a body, decompressed.
#[derive(Debug)]
pub struct Body(pub Bytes);

impl FromRequest for Body {
    type Error = Problem;
    type Future = Reading<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let payload = payload.take();
        Box::pin(async move { Ok(Self(read_body(&request, payload).await?)) })
    }
}

/// A JSON document, parsed strictly. Only [`Json::read`] and [`Json::read_with`] give access to it, so that no handler
/// reads a large document on an HTTP worker.
pub struct Json(Document);

impl Json {
    /// Reads the fields of the document.
    pub async fn read<T: Send + 'static>(
        self,
        reader: impl FnMut(Field<'_>) -> Option<T> + Send + 'static,
    ) -> Result<T, Problem> {
        Ok(self.read_with(|document| document.read(reader)).await??)
    }

    /// Does everything that takes longer with a larger document: validation, and for example a digest.
    pub async fn read_with<T: Send + 'static>(
        self,
        read: impl FnOnce(&Document) -> T + Send + 'static,
    ) -> Result<T, BodyError> {
        let Self(document) = self;
        process_body(document.text().len(), move || read(&document)).await
    }
}

impl FromRequest for Json {
    type Error = Problem;
    type Future = Reading<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let source = JsonSource::from_request(request, payload);
        Box::pin(async move { Ok(Self(source.await?.document)) })
    }
}

/// A JSON document and the bytes it was parsed from.
pub struct JsonSource {
    document: Document,
    bytes: Bytes,
    memory: RequestMemory,
}

impl JsonSource {
    /// Reads the document like [`Json::read_with`]. The memory is for handlers that keep what they read longer than
    /// the request.
    pub async fn read_with<T: Send + 'static>(
        self,
        read: impl FnOnce(&Document, &[u8]) -> T + Send + 'static,
    ) -> Result<(T, RequestMemory), BodyError> {
        let Self { document, bytes, memory } = self;
        let read = process_body(bytes.len(), move || read(&document, &bytes)).await?;
        Ok((read, memory))
    }
}

impl FromRequest for JsonSource {
    type Error = Problem;
    type Future = Reading<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let payload = payload.take();
        Box::pin(async move {
            if !is_json(&request) {
                return Err(BodyError::ContentType("application/json").into());
            }
            let (bytes, memory) = read(&request, payload).await?;
            let source = bytes.clone();
            let document = process_body(bytes.len(), move || Document::parse(&source)).await?;
            Ok(Self { document: document.map_err(BodyError::from)?, bytes, memory })
        })
    }
}

/// The fields of a form body, in order, repeated ones included.
pub struct Form(pub Vec<(String, String)>);

impl Form {
    pub fn parse(bytes: &[u8]) -> Result<Self, BodyError> {
        let text = std::str::from_utf8(bytes).map_err(|_not_utf8| BodyError::NotForm)?;
        Ok(Self(url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()))
    }
}

fn is_json(request: &HttpRequest) -> bool {
    let media_type = media_type(request);
    media_type == "application/json"
        || (media_type.starts_with("application/") && media_type.ends_with("+json"))
}

/// The media type of a request, lower case, without parameters.
fn media_type(request: &HttpRequest) -> String {
    let line = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    line.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// Reads a body within the limits, for extractors with an error of their own.
pub async fn read_body(request: &HttpRequest, payload: Payload) -> Result<Bytes, BodyError> {
    Ok(read(request, payload).await?.0)
}

async fn read(
    request: &HttpRequest,
    payload: Payload,
) -> Result<(Bytes, RequestMemory), BodyError> {
    let limits = request.app_data::<BodyLimits>().copied().unwrap_or_default();
    let BodyLimits { max_bytes, max_public_bytes, timeout } = limits;
    let has_token = request.extensions().contains::<Caller>();
    let limit = if has_token { max_bytes } else { max_public_bytes };
    let encoding =
        request.headers().get(header::CONTENT_ENCODING).map(|value| value.to_str().unwrap_or("?"));
    let gzipped = match encoding.map(|value| value.trim().to_ascii_lowercase()).as_deref() {
        None | Some("identity" | "") => false,
        Some("gzip" | "x-gzip") => true,
        Some(other) => return Err(BodyError::Encoding(other.to_owned())),
    };
    let announced =
        request.headers().get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > limit) {
        return Err(BodyError::TooLarge(limit));
    }
    let memory = RequestMemory::acquire_for_body(request)?;
    let raw = tokio::time::timeout(timeout, collect(payload, limit, &memory)).await;
    let raw = raw.map_err(|_elapsed| BodyError::TooSlow)??;
    // A gzipped body may have any length.
    memory.enlarge_for_body(if gzipped { limit } else { raw.len() })?;
    let body = if gzipped { off_worker(move || decompress(&raw, limit)).await?? } else { raw };
    memory.shrink_to_body(body.len());
    Ok((body, memory))
}

/// Runs work on a body of so many bytes, off the HTTP workers if the body is large.
async fn process_body<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BodyError> {
    if bytes > MAX_INLINE_BYTES { off_worker(work).await } else { Ok(work()) }
}

/// Runs work that takes milliseconds on a thread of its own. The memory budget limits the number of such threads.
async fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BodyError> {
    Ok(tokio::task::spawn_blocking(work).await?)
}

async fn collect(
    mut payload: Payload,
    limit: usize,
    memory: &RequestMemory,
) -> Result<Bytes, BodyError> {
    let mut first = Bytes::new();
    let mut body = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| match error {
            PayloadError::Overflow => BodyError::TooLarge(limit),
            _ => BodyError::Truncated,
        })?;
        let arrived = first.len() + body.len() + chunk.len();
        if arrived > limit {
            return Err(BodyError::TooLarge(limit));
        }
        memory.enlarge_for_arrived(arrived)?;
        // A small body arrives in one chunk and is not copied.
        if first.is_empty() && body.is_empty() {
            first = chunk;
        } else {
            body.extend_from_slice(&std::mem::take(&mut first));
            body.extend_from_slice(&chunk);
        }
    }
    Ok(if body.is_empty() { first } else { body.freeze() })
}

fn decompress(gzipped: &[u8], limit: usize) -> Result<Bytes, BodyError> {
    let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut body = Vec::with_capacity(gzipped.len().saturating_mul(4).min(limit));
    MultiGzDecoder::new(gzipped)
        .take(bound)
        .read_to_end(&mut body)
        .map_err(|_damaged| BodyError::BadGzip)?;
    if body.len() > limit { Err(BodyError::TooLarge(limit)) } else { Ok(body.into()) }
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, thread};

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[actix_web::test]
    async fn a_large_document_is_read_off_the_http_workers() {
        let worker = thread::current().id();
        for (length, is_off_worker) in [(1, false), (MAX_INLINE_BYTES, true)] {
            let body = || {
                let text = format!("\"{}\"", "a".repeat(length));
                Json(Document::parse(text.as_bytes()).unwrap())
            };
            let validated_by = body().read(|_| Some(thread::current().id())).await.unwrap();
            let read_by = body().read_with(|_| thread::current().id()).await.unwrap();
            for thread in [validated_by, read_by] {
                assert_eq!(thread != worker, is_off_worker, "{length}");
            }
        }
    }

    #[test]
    fn gzip_is_bounded_by_its_decompressed_size() {
        assert_eq!(decompress(&gzip(b"hello"), 5).unwrap(), "hello");
        assert!(matches!(decompress(&gzip(b"hello!"), 5), Err(BodyError::TooLarge(5))));
        assert!(matches!(
            decompress(&gzip(&vec![0; 50_000_000]), 1000),
            Err(BodyError::TooLarge(1000))
        ));
        let gzipped = gzip(b"hello");
        assert!(matches!(decompress(&gzipped[..gzipped.len() - 4], 5), Err(BodyError::BadGzip)));
        assert!(matches!(decompress(b"hello", 5), Err(BodyError::BadGzip)));
    }
}
