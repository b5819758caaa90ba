//! Extractors that run one after the other; the arguments of a handler are otherwise extracted concurrently.

use std::{future::Future, pin::Pin};

use actix_web::{Error, FromRequest, HttpRequest, dev::Payload};

/// The second extractor starts when the first is done: `Sequential<Caller, Json>` reads a body, and acquires
/// memory for it, once its sender is known. Only the second may read the body.
#[derive(Debug)]
pub struct Sequential<A, B>(pub A, pub B);

impl<A: FromRequest + 'static, B: FromRequest + 'static> FromRequest for Sequential<A, B> {
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Error>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let mut payload = payload.take();
        Box::pin(async move {
            let first = A::from_request(&request, &mut Payload::None).await.map_err(Into::into)?;
            let second = B::from_request(&request, &mut payload).await.map_err(Into::into)?;
            Ok(Self(first, second))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        cell::RefCell,
        future::{Ready, ready},
        rc::Rc,
        sync::atomic::{AtomicBool, Ordering::SeqCst},
    };

    use actix_web::{error::ErrorUnauthorized, test::TestRequest, web::Data};
    use futures_util::FutureExt as _;
    use tokio::sync::oneshot;

    use super::*;

    type Decision = RefCell<Option<oneshot::Receiver<bool>>>;

    /// A caller that is authenticated when the test decides.
    struct Authenticated;

    impl FromRequest for Authenticated {
        type Error = Error;
        type Future = Pin<Box<dyn Future<Output = Result<Self, Error>>>>;

        fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
            let decision = request.app_data::<Rc<Decision>>().unwrap().take().unwrap();
            Box::pin(async move {
                let is_authenticated = decision.await.unwrap();
                if is_authenticated { Ok(Self) } else { Err(ErrorUnauthorized("unknown")) }
            })
        }
    }

    /// An extractor whose start is visible.
    struct Costly;

    impl FromRequest for Costly {
        type Error = Error;
        type Future = Ready<Result<Self, Error>>;

        fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
            request.app_data::<Data<AtomicBool>>().unwrap().store(true, SeqCst);
            ready(Ok(Self))
        }
    }

    #[track_caller]
    fn check(is_authenticated: bool) {
        let (decide, decision) = oneshot::channel();
        let started = Data::new(AtomicBool::new(false));
        let request = TestRequest::default()
            .app_data(Rc::new(Decision::new(Some(decision))))
            .app_data(started.clone())
            .to_http_request();
        let mut both =
            Sequential::<Authenticated, Costly>::from_request(&request, &mut Payload::None);
        assert!((&mut both).now_or_never().is_none());
        assert!(!started.load(SeqCst), "the second extractor started before the first was done");
        decide.send(is_authenticated).unwrap();
        assert_eq!(both.now_or_never().unwrap().is_ok(), is_authenticated);
        assert_eq!(started.load(SeqCst), is_authenticated);
    }

    #[test]
    fn the_second_starts_when_the_first_is_done() {
        check(true);
    }

    #[test]
    fn the_second_never_starts_when_the_first_fails() {
        check(false);
    }
}
