//! Reading a request body: bounded in size and time, unpacked when gzipped, parsed strictly.

use std::{future::Future, io::Read as _, pin::Pin};

use actix_web::{FromRequest, HttpRequest, dev::Payload, error::PayloadError, http::header, web};
use bytes::{Bytes, BytesMut};
use domain::json::{Document, ParseError};
use flate2::read::MultiGzDecoder;
use futures_util::StreamExt;

use super::{MemoryPermit, Settings};
use crate::{ErrorKind, Failure, Problem};

/// Why a body could not be read.
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
        }
    }
}

type Reading<T> = Pin<Box<dyn Future<Output = Result<T, Problem>>>>;

/// The bytes of a body, unpacked.
pub struct Body(pub Bytes);

impl FromRequest for Body {
    type Error = Problem;
    type Future = Reading<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move { Ok(Self(read(&request, payload).await?)) })
    }
}

/// A JSON document, parsed strictly; what it must contain is the handler's business.
pub struct Json(pub Document);

impl FromRequest for Json {
    type Error = Problem;
    type Future = Reading<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let source = JsonSource::from_request(request, payload);
        Box::pin(async move { Ok(Self(source.await?.document)) })
    }
}

/// A JSON document and the bytes it was read from, for whoever keeps it as it came.
pub struct JsonSource {
    pub document: Document,
    pub bytes: Bytes,
}

impl FromRequest for JsonSource {
    type Error = Problem;
    type Future = Reading<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, payload) = (request.clone(), payload.take());
        Box::pin(async move {
            if !is_json(&request) {
                return Err(BodyError::ContentType("application/json").into());
            }
            let bytes = read(&request, payload).await?;
            let document = Document::parse(&bytes).map_err(BodyError::from)?;
            Ok(Self { document, bytes })
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
    let kind = essence(request);
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// The media type of a request, lower case, without parameters.
fn essence(request: &HttpRequest) -> String {
    let line = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    line.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

async fn read(request: &HttpRequest, payload: Payload) -> Result<Bytes, BodyError> {
    let settings = request.app_data::<web::Data<Settings>>();
    let (limit, patience) = settings.map_or((1 << 20, std::time::Duration::from_secs(15)), |s| {
        (s.max_body_bytes, s.body_timeout)
    });
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
    let raw = tokio::time::timeout(patience, collect(payload, limit)).await;
    let raw = raw.map_err(|_elapsed| BodyError::TooSlow)??;
    let body = if gzipped { unpack(&raw, limit)? } else { raw };
    MemoryPermit::of(request).fit(body.len());
    Ok(body)
}

async fn collect(mut payload: Payload, limit: usize) -> Result<Bytes, BodyError> {
    let (mut first, mut body) = (Bytes::new(), BytesMut::new());
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| match error {
            PayloadError::Overflow => BodyError::TooLarge(limit),
            _ => BodyError::Truncated,
        })?;
        if first.len() + body.len() + chunk.len() > limit {
            return Err(BodyError::TooLarge(limit));
        }
        // A small body comes in one piece, which needs no copy.
        if first.is_empty() && body.is_empty() {
            first = chunk;
        } else {
            body.extend_from_slice(&std::mem::take(&mut first));
            body.extend_from_slice(&chunk);
        }
    }
    Ok(if body.is_empty() { first } else { body.freeze() })
}

fn unpack(packed: &[u8], limit: usize) -> Result<Bytes, BodyError> {
    let bound = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let mut body = Vec::with_capacity(packed.len().saturating_mul(4).min(limit));
    MultiGzDecoder::new(packed)
        .take(bound)
        .read_to_end(&mut body)
        .map_err(|_damaged| BodyError::BadGzip)?;
    if body.len() > limit { Err(BodyError::TooLarge(limit)) } else { Ok(body.into()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn gzip_is_bounded_by_its_unpacked_size() {
        assert_eq!(unpack(&pack(b"hello"), 5).unwrap(), "hello");
        assert!(matches!(unpack(&pack(b"hello!"), 5), Err(BodyError::TooLarge(5))));
        assert!(matches!(
            unpack(&pack(&vec![0; 50_000_000]), 1000),
            Err(BodyError::TooLarge(1000))
        ));
        let packed = pack(b"hello");
        assert!(matches!(unpack(&packed[..packed.len() - 4], 5), Err(BodyError::BadGzip)));
        assert!(matches!(unpack(b"hello", 5), Err(BodyError::BadGzip)));
    }
}
