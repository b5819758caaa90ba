//! Connections to a server that needs longer than callers wait.

use std::time::Duration;

use platform::database::{Pool, Settings};
use platform::{ErrorKind, Failure as _};
use secrecy::{ExposeSecret as _, SecretString};
use testkit::Database;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use url::Url;

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_nobody_waited_for_is_used_by_the_next_caller() {
    let database = Database::create(Vec::new()).await;
    let settings = database.settings();
    let mut url = Url::parse(settings.url.as_ref().unwrap().expose_secret()).unwrap();
    let server = (url.host_str().unwrap().to_owned(), url.port().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    url.set_host(Some("127.0.0.1")).unwrap();
    url.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
    let (open, mut opened) = watch::channel(false);
    let forwarding = async move {
        let (mut client, _) = listener.accept().await.unwrap();
        opened.wait_for(|open| *open).await.unwrap();
        let mut server = TcpStream::connect(server).await.unwrap();
        drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
    };
    #[expect(clippy::disallowed_methods, reason = "lives as long as the test")]
    tokio::spawn(forwarding);

    let settings = Settings {
        url: Some(SecretString::from(url.to_string())),
        acquire_timeout: Duration::from_millis(100),
        ..settings
    };
    let pool = Pool::new("test", &settings).unwrap();
    let error = pool.get().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    open.send(true).unwrap();
    // The first connection is the only one that the server accepts.
    let timeout = Duration::from_secs(300);
    drop(testkit::eventually("a connection", timeout, async || pool.get().await.ok()).await);
}
