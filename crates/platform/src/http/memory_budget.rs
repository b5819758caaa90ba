//! MemoryPermit for bodies: so many bytes under way for everyone together, given out before a body is read,
//! and for large answers until they are sent. One caller has a part of it only once it gets scarce,
//! so that whoever sends slowly shuts nobody else out.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceResponse};
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, web};
use bytes::Bytes;

use crate::{ErrorKind, Failure, Problem, identity::Caller};

/// MemoryPermit is given out in pieces of this many bytes.
const PIECE: usize = 1024;
/// One caller may have this part of all room, whoever else is there.
const PART: usize = 4;
/// When to come back if there is no room.
const PAUSE: Duration = Duration::from_secs(1);

/// The room of a process; a service shares it with its handlers, see `Service::share`.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    taken: Arc<Mutex<Taken>>,
    pieces: usize,
    pieces_each: usize,
    max_body: usize,
    copies: usize,
}

/// The pieces that are given out, to everyone together and to each caller.
#[derive(Debug, Default)]
struct Taken {
    pieces: usize,
    by_caller: HashMap<String, usize>,
}

/// Too much is under way at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too much is under way at the moment")]
pub struct Overloaded;

impl Failure for Overloaded {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Unavailable
    }

    fn retry_after(&self) -> Option<Duration> {
        Some(PAUSE)
    }
}

impl MemoryBudget {
    /// MemoryPermit for so many bytes. A body and what is made of it take `copies` times the body.
    pub fn new(bytes_in_flight: usize, max_body: usize, copies: usize) -> Self {
        // At least one body of the largest size must fit, or none of them ever would.
        let largest = pieces_for(max_body, copies);
        let pieces = (bytes_in_flight / PIECE).max(largest);
        let pieces_each = (pieces / PART).max(largest);
        Self { taken: Arc::default(), pieces, pieces_each, max_body, copies }
    }

    /// MemoryPermit for a caller's body of this many bytes, or of any size when that is not known.
    pub fn take(&self, caller: &str, announced: Option<usize>) -> Result<MemoryPermit, Overloaded> {
        let body = announced.unwrap_or(self.max_body).min(self.max_body);
        self.hold(caller, pieces_for(body, self.copies))
    }

    fn hold(&self, caller: &str, pieces: usize) -> Result<MemoryPermit, Overloaded> {
        let mut taken = lock(&self.taken);
        let own = taken.by_caller.get(caller).copied().unwrap_or(0);
        // Past its part a caller has room only while half of all is left to the others.
        let most = if own + pieces > self.pieces_each { self.pieces / 2 } else { self.pieces };
        if taken.pieces + pieces > most {
            return Err(Overloaded);
        }
        taken.pieces += pieces;
        taken.by_caller.insert(caller.to_owned(), own + pieces);
        drop(taken);
        let (rooms, caller) = (self.clone(), caller.to_owned());
        Ok(MemoryPermit(Some(Arc::new(Held { rooms, caller, pieces: pieces.into() }))))
    }
}

fn pieces_for(body: usize, copies: usize) -> usize {
    body.saturating_mul(copies).div_ceil(PIECE) + 1
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// MemoryPermit for the body of a request; given back when the answer is sent and whoever else holds it let
/// go of it. Stands before the body in a handler's list, and after the [`Caller`] whose it is, so that
/// there is room before anything is read. The default is none.
#[derive(Debug, Clone, Default)]
pub struct MemoryPermit(Option<Arc<Held>>);

#[derive(Debug)]
struct Held {
    rooms: MemoryBudget,
    caller: String,
    /// Changes under the lock of all rooms only.
    pieces: AtomicUsize,
}

impl MemoryPermit {
    /// Takes room for an answer of about this many bytes, which keeps it until it is sent: one that
    /// is not read stays here for a while.
    pub fn reserve_for_response(request: &HttpRequest, bytes: usize) -> Result<(), Overloaded> {
        // What it is made of, and itself.
        Self::enter(request, |rooms, caller| rooms.hold(caller, pieces_for(bytes, 2)))?;
        Ok(())
    }

    /// Takes room for a request, which has it from then on.
    fn enter(
        request: &HttpRequest,
        take: impl FnOnce(&MemoryBudget, &str) -> Result<Self, Overloaded>,
    ) -> Result<Self, Overloaded> {
        let Some(rooms) = request.app_data::<web::Data<MemoryBudget>>() else {
            return Ok(Self(None));
        };
        let mut extensions = request.extensions_mut();
        let room = take(rooms, extensions.get::<Caller>().map_or("", Caller::quota_key))?;
        extensions.insert(room.clone());
        Ok(room)
    }

    /// Leaves what the request has with its answer, as much as that needs: it may be shorter than
    /// the body was, or a long list of what is wrong with a short one.
    pub(super) fn keep(answer: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
        let room = Self::of(answer.request());
        let Some(held) = &room.0 else { return answer };
        if let BodySize::Sized(bytes) = answer.response().body().size() {
            held.resize(pieces_for(usize::try_from(bytes).unwrap_or(0), 1));
        }
        answer.map_body(|_, body| Kept { body, _room: room }.boxed())
    }

    /// The room that a request has.
    pub(super) fn of(request: &HttpRequest) -> Self {
        request.extensions().get::<Self>().cloned().unwrap_or_default()
    }

    /// Gives back what a body of this size does not need.
    pub(super) fn fit(&self, body: usize) {
        if let Some(held) = &self.0 {
            held.resize(pieces_for(body, held.rooms.copies));
        }
    }
}

impl Held {
    /// Has so many pieces from now on, whether they are free or not.
    fn resize(&self, pieces: usize) {
        let mut taken = lock(&self.rooms.taken);
        let before = self.pieces.swap(pieces, Relaxed);
        taken.pieces = taken.pieces - before + pieces;
        let Some(own) = taken.by_caller.get_mut(&self.caller) else { return };
        *own = *own - before + pieces;
        if *own == 0 {
            taken.by_caller.remove(&self.caller);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.resize(0);
    }
}

impl FromRequest for MemoryPermit {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let room = Self::enter(request, |rooms, caller| rooms.take(caller, announced(request)));
        std::future::ready(room.map_err(Problem::from))
    }
}

/// An answer with its room. The server lets go of it when the last of it is nearly sent.
struct Kept {
    body: BoxBody,
    _room: MemoryPermit,
}

impl MessageBody for Kept {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}

/// How large the body says it is; a packed one may grow to any size until it is unpacked.
fn announced(request: &HttpRequest) -> Option<usize> {
    let headers = request.headers();
    if headers.contains_key(CONTENT_ENCODING) {
        return None;
    }
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use actix_web::HttpResponse;
    use actix_web::body::to_bytes;
    use actix_web::test::TestRequest;
    use flate2::{Compression, write::GzEncoder};

    use super::super::Json;
    use super::*;

    fn rooms(bytes_in_flight: usize) -> MemoryBudget {
        MemoryBudget::new(bytes_in_flight, 100 * PIECE, 3)
    }

    #[test]
    fn past_the_bound_there_is_no_room_until_some_is_given_back() {
        let rooms = rooms(700 * PIECE);
        let first = rooms.take("a", None).unwrap();
        let _second = rooms.take("b", Some(100 * PIECE)).unwrap();
        assert_eq!(rooms.take("c", Some(100 * PIECE)).unwrap_err(), Overloaded);
        let _small = rooms.take("c", Some(10 * PIECE)).unwrap();
        drop(first);
        assert!(rooms.take("d", Some(usize::MAX)).is_ok());
    }

    #[test]
    fn a_caller_has_a_quarter_of_the_room_and_more_while_half_is_free() {
        // A body of the largest size takes 301 pieces.
        let rooms = rooms(4 * 700 * PIECE);
        let first = rooms.take("a", None).unwrap();
        let _more = [(); 3].map(|()| rooms.take("a", None).unwrap());
        assert_eq!(rooms.take("a", None).unwrap_err(), Overloaded);
        let _others = ["b", "b", "c", "c"].map(|other| rooms.take(other, None).unwrap());
        assert_eq!(rooms.take("b", None).unwrap_err(), Overloaded);
        drop(first);
        assert_eq!(rooms.take("a", None).unwrap_err(), Overloaded);
        assert!(rooms.take("d", None).is_ok());
    }

    #[test]
    fn one_body_of_the_largest_size_always_fits() {
        assert!(rooms(0).take("a", None).is_ok());
    }

    #[tokio::test]
    async fn a_packed_body_has_room_for_what_it_is_once_it_is_unpacked() {
        let rooms = rooms(0);
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(br#""ten bytes""#).unwrap();
        let (request, mut payload) = TestRequest::post()
            .app_data(web::Data::new(rooms.clone()))
            .insert_header((CONTENT_ENCODING, "gzip"))
            .insert_header(("content-type", "application/json"))
            .set_payload(packed.finish().unwrap())
            .to_http_parts();
        let room = MemoryPermit::from_request(&request, &mut payload).await.unwrap();
        assert_eq!(lock(&rooms.taken).pieces, 301);
        let _read = Json::from_request(&request, &mut payload).await.unwrap();
        assert_eq!(lock(&rooms.taken).pieces, 2);
        drop(request);
        assert_eq!(lock(&rooms.taken).by_caller[""], 2);
        drop(room);
        assert_eq!(lock(&rooms.taken).pieces, 0);
    }

    #[tokio::test]
    async fn an_answer_keeps_the_room_it_needs_until_it_is_sent() {
        let rooms = rooms(0);
        for announced in [2, 20 * PIECE] {
            let request = TestRequest::get().app_data(web::Data::new(rooms.clone()));
            let request = request.to_srv_request();
            MemoryPermit::reserve_for_response(request.request(), announced).unwrap();
            let answer = HttpResponse::Ok().body("x".repeat(10 * PIECE));
            let (request, answer) = MemoryPermit::keep(request.into_response(answer)).into_parts();
            drop(request);
            assert_eq!(lock(&rooms.taken).pieces, 11);
            assert_eq!(to_bytes(answer.into_body()).await.unwrap().len(), 10 * PIECE);
            assert_eq!(lock(&rooms.taken).pieces, 0);
        }
    }

    #[test]
    fn who_has_no_room_any_more_is_forgotten() {
        let rooms = rooms(0);
        drop(rooms.take("a", None).unwrap());
        assert!(lock(&rooms.taken).by_caller.is_empty());
    }
}
