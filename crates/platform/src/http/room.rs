//! Room for bodies: so many bytes under way for everyone together, given out before a body is read.

use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use actix_web::{FromRequest, HttpRequest, web};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{Failure, Kind, Problem};

/// Room is given out in pieces of this many bytes.
const PIECE: usize = 1024;
/// When to come back if there is no room.
const PAUSE: Duration = Duration::from_secs(1);

/// The room of a process; a service shares it with its handlers, see `Service::share`.
#[derive(Debug, Clone)]
pub struct Rooms {
    pieces: Arc<Semaphore>,
    max_body: usize,
    copies: usize,
}

/// Too much is being received at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too much is being received at the moment")]
pub struct NoRoom;

impl Failure for NoRoom {
    fn kind(&self) -> Kind {
        Kind::Unavailable
    }

    fn retry_after(&self) -> Option<Duration> {
        Some(PAUSE)
    }
}

impl Rooms {
    /// Room for so many bytes. A body and what is made of it take `copies` times the body.
    pub fn new(bytes_in_flight: usize, max_body: usize, copies: usize) -> Self {
        let mut rooms = Self { pieces: Arc::new(Semaphore::new(0)), max_body, copies };
        // At least one body of the largest size must fit, or none of them ever would.
        let pieces = (bytes_in_flight / PIECE).max(rooms.pieces_for(max_body));
        rooms.pieces = Arc::new(Semaphore::new(pieces.min(Semaphore::MAX_PERMITS)));
        rooms
    }

    /// Room for a body of this many bytes, or of any size when that is not known.
    pub fn take(&self, announced: Option<usize>) -> Result<Room, NoRoom> {
        let body = announced.unwrap_or(self.max_body).min(self.max_body);
        let pieces = u32::try_from(self.pieces_for(body)).unwrap_or(u32::MAX);
        let taken = self.pieces.clone().try_acquire_many_owned(pieces);
        taken.map(|permit| Room(Some(permit))).map_err(|_full| NoRoom)
    }

    fn pieces_for(&self, body: usize) -> usize {
        body.saturating_mul(self.copies).div_ceil(PIECE) + 1
    }
}

/// Room for the body of a request; given back when dropped. Stands before the body in a handler's
/// list, so that there is room before anything is read. The default is none.
#[derive(Debug, Default)]
pub struct Room(#[expect(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>);

impl FromRequest for Room {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let room = match request.app_data::<web::Data<Rooms>>() {
            Some(rooms) => rooms.take(announced(request)),
            None => Ok(Self(None)),
        };
        std::future::ready(room.map_err(Problem::from))
    }
}

/// How large the body says it is; a packed one may grow to any size.
fn announced(request: &HttpRequest) -> Option<usize> {
    let headers = request.headers();
    if headers.contains_key(CONTENT_ENCODING) {
        return None;
    }
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooms(bytes_in_flight: usize) -> Rooms {
        Rooms::new(bytes_in_flight, 100 * PIECE, 3)
    }

    #[test]
    fn past_the_bound_there_is_no_room_until_some_is_given_back() {
        let rooms = rooms(700 * PIECE);
        let first = rooms.take(None).unwrap();
        let _second = rooms.take(Some(100 * PIECE)).unwrap();
        assert_eq!(rooms.take(Some(100 * PIECE)).unwrap_err(), NoRoom);
        let _small = rooms.take(Some(10 * PIECE)).unwrap();
        drop(first);
        assert!(rooms.take(Some(usize::MAX)).is_ok());
    }

    #[test]
    fn one_body_of_the_largest_size_always_fits() {
        assert!(rooms(0).take(None).is_ok());
    }
}
