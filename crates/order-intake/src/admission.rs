//! Who may come in, before anything is read: so many requests a minute for each address.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, web};
use platform::http::Peer;
use platform::limits::PerMinute;
use platform::{Failure, Kind, Problem};

use crate::App;

pub(crate) struct Admission {
    requests: PerMinute<IpAddr>,
}

/// Why a request did not come in: try again after so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests from this address")]
pub(crate) struct TooMany(Duration);

impl Failure for TooMany {
    fn kind(&self) -> Kind {
        Kind::Limited
    }

    fn retry_after(&self) -> Option<Duration> {
        Some(self.0)
    }
}

impl Admission {
    pub(crate) fn new(requests_per_minute: NonZeroU32) -> Self {
        Self { requests: PerMinute::new(requests_per_minute) }
    }

    pub(crate) fn forget_idle(&self) {
        self.requests.forget_idle();
    }

    fn count(&self, address: IpAddr) -> Result<(), TooMany> {
        self.requests.take(&client(address)).map_err(TooMany)
    }
}

/// Whoever has an IPv6 address has 2^64 of them, so all of those count as one.
fn client(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(requests_per_minute: u32) -> Admission {
        Admission::new(NonZeroU32::new(requests_per_minute).unwrap())
    }

    #[test]
    fn each_address_is_counted_for_itself() {
        let admission = admission(2);
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        assert_eq!((admission.count(one), admission.count(one)), (Ok(()), Ok(())));
        assert!(matches!(admission.count(one), Err(TooMany(_))));
        assert_eq!(admission.count(other), Ok(()));
    }

    #[test]
    fn an_ipv6_network_is_one_client() {
        let admission = admission(1);
        let address = |text: &str| text.parse().unwrap();
        assert_eq!(admission.count(address("2001:db8:0:1::1")), Ok(()));
        assert!(admission.count(address("2001:db8:0:1:ffff::2")).is_err());
        assert_eq!(admission.count(address("2001:db8:0:2::1")), Ok(()));
    }
}
