//! Who may come in, before anything is read: so many requests a minute for each address, and so
//! many bytes under way for everyone together.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use actix_web::{FromRequest, HttpRequest, web};
use platform::http::Peer;
use platform::limits::PerMinute;
use platform::{Failure, Kind, Problem};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{App, Limits};

/// Room is given out in pieces of this many bytes.
const PIECE: usize = 1024;
/// A body and what is made of it, as a multiple of the body.
const COPIES: usize = 3;
/// When to come back if there is no room.
const NO_ROOM_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Admission {
    requests: PerMinute<IpAddr>,
    room: Arc<Semaphore>,
    max_body: usize,
}

/// Why a request did not come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("too many requests from this address")]
    TooMany(Duration),
    #[error("too much is being received at the moment")]
    NoRoom,
}

impl Failure for Refusal {
    fn kind(&self) -> Kind {
        match self {
            Self::TooMany(_) => Kind::Limited,
            Self::NoRoom => Kind::Unavailable,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::TooMany(pause) => Some(*pause),
            Self::NoRoom => Some(NO_ROOM_PAUSE),
        }
    }
}

impl Admission {
    pub(crate) fn new(limits: &Limits, max_body: usize) -> Self {
        // At least one body of the largest size must fit, or none of them ever would.
        let pieces = (limits.bytes_in_flight / PIECE).max(pieces_for(max_body));
        Self {
            requests: PerMinute::new(limits.requests_per_minute),
            room: Arc::new(Semaphore::new(pieces.min(Semaphore::MAX_PERMITS))),
            max_body,
        }
    }

    pub(crate) fn forget_idle(&self) {
        self.requests.forget_idle();
    }

    fn count(&self, address: IpAddr) -> Result<(), Refusal> {
        self.requests.take(&client(address)).map_err(Refusal::TooMany)
    }

    /// Room for a body of this many bytes, or of any size when that is not known.
    fn make_room(&self, announced: Option<usize>) -> Result<OwnedSemaphorePermit, Refusal> {
        let body = announced.unwrap_or(self.max_body).min(self.max_body);
        let pieces = u32::try_from(pieces_for(body)).unwrap_or(u32::MAX);
        self.room.clone().try_acquire_many_owned(pieces).map_err(|_full| Refusal::NoRoom)
    }
}

/// Whoever has an IPv6 address has 2^64 of them, so all of those count as one.
fn client(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

fn pieces_for(body: usize) -> usize {
    body.saturating_mul(COPIES).div_ceil(PIECE) + 1
}

/// A request within its address's limit. Comes first in a handler's list: whatever else is wrong
/// with a request, it counts.
pub(crate) struct Admitted;

impl FromRequest for Admitted {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let counted = match request.app_data::<web::Data<App>>() {
            Some(app) => app.admission.count(Peer::of(request).0),
            None => Ok(()),
        };
        std::future::ready(counted.map(|()| Self).map_err(Problem::from))
    }
}

/// Room for the body of a request; given back when the request is answered.
pub(crate) struct Room(
    #[expect(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>,
);

impl FromRequest for Room {
    type Error = Problem;
    type Future = std::future::Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let room = match request.app_data::<web::Data<App>>() {
            Some(app) => app.admission.make_room(announced(request)).map(Some),
            None => Ok(None),
        };
        std::future::ready(room.map(Self).map_err(Problem::from))
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
    use std::num::NonZeroU32;

    use super::*;

    fn admission(requests_per_minute: u32, bytes_in_flight: usize) -> Admission {
        let requests_per_minute = NonZeroU32::new(requests_per_minute).unwrap();
        Admission::new(&Limits { requests_per_minute, bytes_in_flight }, 100 * PIECE)
    }

    #[test]
    fn each_address_is_counted_for_itself() {
        let admission = admission(2, 0);
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert_eq!((admission.count(one), admission.count(one)), (Ok(()), Ok(())));
        assert!(matches!(admission.count(one), Err(Refusal::TooMany(_))));
        assert_eq!(admission.count(other), Ok(()));
    }

    #[test]
    fn an_ipv6_network_is_one_client() {
        let admission = admission(1, 0);
        let address = |text: &str| text.parse().unwrap();
        assert_eq!(admission.count(address("2001:db8:0:1::1")), Ok(()));
        assert!(admission.count(address("2001:db8:0:1:ffff::2")).is_err());
        assert_eq!(admission.count(address("2001:db8:0:2::1")), Ok(()));
    }

    #[test]
    fn past_the_bound_there_is_no_room_until_some_is_given_back() {
        let admission = admission(1, 700 * PIECE);
        let first = admission.make_room(None).unwrap();
        let _second = admission.make_room(Some(100 * PIECE)).unwrap();
        assert_eq!(admission.make_room(Some(100 * PIECE)).unwrap_err(), Refusal::NoRoom);
        let _small = admission.make_room(Some(10 * PIECE)).unwrap();
        drop(first);
        assert!(admission.make_room(Some(usize::MAX)).is_ok());
    }

    #[test]
    fn one_body_of_the_largest_size_always_fits() {
        assert!(admission(1, 0).make_room(None).is_ok());
    }
}
