//! Requests that are rejected before a handler sees them.

use crate::{ErrorKind, Failure};

#[derive(Debug, thiserror::Error)]
#[error("query: {0}")]
pub(super) struct BadQuery(pub(super) String);

impl Failure for BadQuery {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}

#[derive(Debug, thiserror::Error)]
#[error("this path does not exist; /openapi.json lists all paths")]
pub(super) struct NoSuchPath;

impl Failure for NoSuchPath {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Missing
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the request took too long")]
pub(super) struct RequestTimeout;

impl Failure for RequestTimeout {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Unavailable
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the request has more than one {0} header")]
pub(super) struct RepeatedHeader(pub(super) &'static str);

impl Failure for RepeatedHeader {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}
