//! A service that the tests of a program share. Each test has merchants of its own.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use platform::{Clock, Running, Service};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Mutex;

use serde_json::Value;

use super::{Runs, SOON, TestService, run};
use crate::{Database, Issuer, Listener, Namespace};

/// Requests of all tests come from one address, and several tests have large bodies at once.
const NO_LIMITS: [(&str, &str); 2] =
    [("LIMITS__REQUESTS_PER_MINUTE", "4000000000"), ("HTTP__MAX_INFLIGHT", "4000000000")];
static TESTS: AtomicU32 = AtomicU32::new(0);

/// The service runs while at least one test uses it, so the last test leaves nothing behind.
pub struct SharedService {
    started: Mutex<Weak<Started>>,
    queues: &'static [&'static str],
    /// Whether the service accepts the tokens of an [`Issuer`]. Auth accepts its own.
    has_issuer: bool,
}

pub(super) struct Started {
    // The first field: a service that still runs would declare its queues again.
    #[expect(dead_code, reason = "it stops when it is dropped")]
    runtime: SharedRuntime,
    pub(super) database: Arc<Database>,
    pub(super) namespace: Arc<Namespace>,
    pub(super) url: String,
    pub(super) listener: Listener,
    issuer: Issuer,
    #[expect(dead_code, reason = "it runs as long as it is kept")]
    running: Running,
}

/// A runtime that does not end with the test that started it.
struct SharedRuntime(Option<Runtime>);

impl SharedService {
    /// A service whose tests see the events in `queues`; see [`TestService::listener`].
    pub const fn new(queues: &'static [&'static str]) -> Self {
        Self { started: Mutex::const_new(Weak::new()), queues, has_issuer: true }
    }

    /// A service that accepts no tokens of an [`Issuer`].
    pub const fn without_issuer(queues: &'static [&'static str]) -> Self {
        Self { started: Mutex::const_new(Weak::new()), queues, has_issuer: false }
    }

    /// The running service, or a new one, and the issuer of its tokens. All tests pass the same settings.
    pub async fn join<S: Service>(&self, settings: &[(&str, &str)]) -> (TestService, Issuer) {
        let mut place = self.started.lock().await;
        let started = match place.upgrade() {
            Some(started) => started,
            None => Arc::new(Started::new::<S>(settings, self).await),
        };
        *place = Arc::downgrade(&started);
        let suffix = format!("-{:06}", TESTS.fetch_add(1, Ordering::Relaxed));
        let issuer = started.issuer.with_suffix(&suffix);
        (TestService::sharing::<S>(started, suffix), issuer)
    }
}

impl TestService {
    fn sharing<S: Service>(started: Arc<Started>, suffix: String) -> Self {
        let stores = (started.database.clone(), started.namespace.clone());
        Self::of::<S>(started.url.clone(), stores, suffix, Runs::ForAllTests(started))
    }

    /// A listener at queues of other services: that of the shared service, or a new one.
    pub async fn listener(&self, queues: &'static [&'static str]) -> Listener {
        match &self.running {
            Runs::ForThisTest(_) => Listener::start(self.namespace.clone(), queues).await,
            Runs::ForAllTests(started) => started.listener.clone(),
        }
    }

    /// The events of this test's merchants that `listener` got from a queue.
    pub fn own_events(&self, listener: &Listener, queue: &str) -> Vec<Value> {
        let is_own = |event: &Value| {
            let merchant = &event["data"]["merchant"];
            let name = merchant.as_str().or(merchant["identifier"].as_str());
            let is_named = name.is_some_and(|name| name.ends_with(&self.suffix));
            // A listener's marker is no object.
            is_named || (self.suffix.is_empty() && event.is_object())
        };
        let events = listener.events(queue).into_iter().filter(is_own);
        events
            .map(|it| serde_json::from_str(&self.without_suffix(&it.to_string())).unwrap())
            .collect()
    }

    /// Waits until a queue got this number of events of the test's merchants, checks that it got no more, and
    /// returns them.
    pub async fn events_in(&self, listener: &Listener, queue: &str, count: usize) -> Vec<Value> {
        crate::eventually("the events are in the queue", SOON, async || {
            (self.own_events(listener, queue).len() >= count).then_some(())
        })
        .await;
        listener.catch_up().await;
        let events = self.own_events(listener, queue);
        assert_eq!(events.len(), count, "{events:?}");
        events
    }

    /// The name that a merchant of this test has in the service.
    pub fn own(&self, merchant: &str) -> String {
        format!("{merchant}{}", self.suffix)
    }

    /// A text of the service, with the names that the test uses.
    pub fn without_suffix(&self, text: &str) -> String {
        if self.suffix.is_empty() { text.to_owned() } else { text.replace(&self.suffix, "") }
    }

    /// A query of the test with the service's names of acme and rival. In a shared service, it has to name one.
    pub fn own_query(&self, query: &str) -> String {
        let names = ["'acme'", "'rival'"];
        assert!(self.suffix.is_empty() || names.iter().any(|name| query.contains(name)), "{query}");
        names.iter().fold(query.to_owned(), |query, name| {
            query.replace(name, &format!("'{}'", self.own(name.trim_matches('\''))))
        })
    }
}

impl Started {
    async fn new<S: Service>(settings: &[(&str, &str)], service: &SharedService) -> Self {
        let issuer = Issuer::start();
        let queues = service.queues;
        let identity = issuer.settings().into_iter().filter(|_| service.has_issuer);
        let settings = identity.chain(NO_LIMITS).chain(settings.iter().copied());
        let settings: Vec<_> =
            settings.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let database = Arc::new(Database::create(S::migrations()).await);
        let namespace = Arc::new(Namespace::create());
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let runtime = SharedRuntime(Some(runtime));
        let on_database = database.clone();
        let in_namespace = namespace.clone();
        let starting = handle.spawn(async move {
            let settings: Vec<_> =
                settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
            let running = run::<S>(&settings, Clock::system(), &on_database, &in_namespace).await;
            (running, Listener::start(in_namespace, queues).await)
        });
        let (running, listener) = starting.await.unwrap();
        let url = running.url.clone();
        Self { runtime, database, namespace, url, listener, issuer, running }
    }
}

impl Drop for SharedRuntime {
    fn drop(&mut self) {
        let runtime = self.0.take();
        // The runtime of a test does not allow that another one is stopped in its thread.
        let stop = || runtime.map(|it| it.shutdown_timeout(Duration::from_secs(10)));
        if std::thread::spawn(stop).join().is_err() {
            eprintln!("the shared service did not stop");
        }
    }
}
