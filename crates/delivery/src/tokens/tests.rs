use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{WeakShared, join_all};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::Instant;
use url::Url;

use super::{
    ClientCredentials, Fingerprint, Generation, Placement, Token, TokenError, Tokens, lock,
};
use crate::client::RequestError;
use crate::outcome::Jitter;
use crate::test_merchant::{TestMerchant, client, guarded_client, respond_and_close};

fn credentials(token_url: &str, placement: Placement) -> Arc<ClientCredentials> {
    Arc::new(ClientCredentials {
        token_url: Url::parse(token_url).unwrap(),
        client_id: "backhaul".to_owned(),
        client_secret: "s/cret+".into(),
        scope: Some("rmas asns".to_owned()),
        placement,
    })
}

struct Case {
    merchant: TestMerchant,
    tokens: Tokens,
    credentials: Arc<ClientCredentials>,
    started: Instant,
}

impl Case {
    fn new() -> Self {
        let merchant = TestMerchant::new();
        let credentials = credentials(&merchant.running.url("/oauth/token"), Placement::Body);
        let tokens = Tokens::new(client(), Duration::from_secs(5));
        Self { merchant, tokens, credentials, started: Instant::now() }
    }

    async fn get(&self, stale: Option<u64>, after_seconds: u64) -> Result<Token, TokenError> {
        let now = self.started + Duration::from_secs(after_seconds);
        self.tokens.get(&self.credentials, stale.map(Generation), now, Jitter::LOWEST).await
    }

    #[track_caller]
    fn check(got: &Result<Token, TokenError>, generation: u64) {
        assert_eq!(got.as_ref().unwrap().generation, Generation(generation));
    }

    /// Waits until no request is in flight.
    async fn refreshed(&self) {
        let entry = self.tokens.entries.get(&Fingerprint::of(&self.credentials)).unwrap();
        let refresh = lock(&entry).refresh.as_ref().and_then(WeakShared::upgrade);
        if let Some(refresh) = refresh {
            drop(refresh.await);
        }
    }

    async fn requests(&self) -> usize {
        self.merchant.journal("/oauth/token").await.entries.len()
    }
}

#[tokio::test]
async fn a_thousand_concurrent_callers_share_one_request() {
    let case = Case::new();
    let slow = json!([{"do": "respond", "status": 200, "delay_ms": 100, "times": "always",
        "body": {"access_token": "t", "token_type": "bearer", "expires_in": 100}}]);
    case.merchant.behave("/oauth/token", slow).await;
    for got in join_all((0..1000).map(|_| case.get(None, 0))).await {
        Case::check(&got, 1);
    }
    assert_eq!(case.requests().await, 1);
    for got in join_all((0..1000).map(|_| case.get(Some(1), 0))).await {
        Case::check(&got, 2);
    }
    assert_eq!(case.requests().await, 2);
    // A late caller with the old token gets the new one.
    Case::check(&case.get(Some(1), 0).await, 2);
    assert_eq!(case.requests().await, 2);
}

#[tokio::test]
async fn a_thousand_concurrent_callers_share_one_failure() {
    let case = Case::new();
    let failing = json!([{"do": "respond", "status": 500, "delay_ms": 100, "body": "sorry"}]);
    case.merchant.behave("/oauth/token", failing).await;
    for got in join_all((0..1000).map(|_| case.get(None, 0))).await {
        assert!(matches!(got, Err(TokenError::InvalidResponse(_))), "{got:?}");
    }
    assert_eq!(case.requests().await, 1);
    // A failure is not cached.
    Case::check(&case.get(None, 0).await, 1);
}

#[tokio::test]
async fn a_token_is_refreshed_before_it_expires() {
    let case = Case::new();
    // The sandbox's tokens live for an hour; the lowest jitter refreshes at 80 %.
    Case::check(&case.get(None, 0).await, 1);
    Case::check(&case.get(None, 2879).await, 1);
    Case::check(&case.get(None, 2880).await, 1);
    case.refreshed().await;
    Case::check(&case.get(None, 2881).await, 2);
    case.refreshed().await;
    assert_eq!(case.requests().await, 2);
}

#[tokio::test]
async fn a_failed_refresh_does_no_harm_until_the_token_expires() {
    let case = Case::new();
    Case::check(&case.get(None, 0).await, 1);
    let failing = json!([{"do": "respond", "status": 503, "times": "always"}]);
    case.merchant.behave("/oauth/token", failing).await;
    Case::check(&case.get(None, 3000).await, 1);
    case.refreshed().await;
    assert_eq!(case.requests().await, 2);
    // The refresh is repeated only after a delay.
    Case::check(&case.get(None, 3029).await, 1);
    case.refreshed().await;
    assert_eq!(case.requests().await, 2);
    Case::check(&case.get(None, 3030).await, 1);
    case.refreshed().await;
    assert_eq!(case.requests().await, 3);
    assert!(case.get(None, 3600).await.is_err());
    assert!(case.get(Some(1), 10).await.is_err());
}

#[tokio::test]
async fn a_refresh_blocks_nobody_while_the_token_is_valid() {
    let case = Case::new();
    Case::check(&case.get(None, 0).await, 1);
    case.merchant.behave("/oauth/token", json!([{"do": "hang"}])).await;
    for after_seconds in [3000, 3000, 3001] {
        let got = case.get(None, after_seconds).now_or_never().expect("a token at once");
        Case::check(&got, 1);
    }
}

#[tokio::test]
async fn a_request_completes_even_if_its_caller_stops_waiting() {
    let case = Case::new();
    let mut first = Box::pin(case.get(None, 0));
    assert!(futures_util::poll!(&mut first).is_pending());
    drop(first);
    case.refreshed().await;
    // The next caller finds its token.
    let got = case.get(None, 0).now_or_never().expect("a token at once");
    Case::check(&got, 1);
    assert_eq!(case.requests().await, 1);
}

#[tokio::test]
async fn changed_credentials_get_their_own_token() {
    let mut case = Case::new();
    let first = case.get(None, 0).await.unwrap();
    let mut changed = (*case.credentials).clone();
    changed.client_secret = "other".into();
    case.credentials = Arc::new(changed);
    let second = case.get(None, 0).await.unwrap();
    assert_ne!(first.authorization, second.authorization);
    assert!(!format!("{second:?}{:?}", case.credentials).contains("other"));
}

/// Requests a token from a server that sends this response. Returns the request and the result.
async fn exchange(placement: Placement, response: &str) -> (String, Result<Token, TokenError>) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/token", server.local_addr().unwrap());
    let length = response.split_once("\r\n\r\n").unwrap().1.len();
    let response = response.replacen("\r\n", &format!("\r\ncontent-length: {length}\r\n"), 1);
    let tokens = Tokens::new(client(), Duration::from_secs(5));
    let credentials = credentials(&url, placement);
    let requesting = tokens.get(&credentials, None, Instant::now(), Jitter::LOWEST);
    let serving = async {
        let (stream, _) = server.accept().await.unwrap();
        respond_and_close(stream, response.as_bytes()).await
    };
    let (got, seen) = tokio::join!(requesting, serving);
    (seen, got)
}

const GOOD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n\
    {\"access_token\":\"abc\",\"token_type\":\"BEARER\",\"expires_in\":90000,\"created_at\":1}";

#[tokio::test]
async fn credentials_are_sent_in_the_body_or_in_the_header() {
    let (seen, got) = exchange(Placement::Body, GOOD).await;
    assert!(seen.contains("grant_type=client_credentials"), "{seen}");
    assert!(seen.contains("client_id=backhaul&client_secret=s%2Fcret%2B"), "{seen}");
    assert!(seen.contains("scope=rmas+asns"), "{seen}");
    assert!(!seen.contains("authorization:"), "{seen}");
    let token = got.unwrap();
    assert_eq!(token.authorization, "Bearer abc");
    assert!(token.authorization.is_sensitive());

    let (seen, _) = exchange(Placement::Basic, GOOD).await;
    assert!(seen.contains("authorization: Basic YmFja2hhdWw6cyUyRmNyZXQlMkI="), "{seen}");
    assert!(!seen.contains("client_secret"), "{seen}");
}

#[tokio::test]
async fn the_token_response_of_azure_ad_is_accepted() {
    let (_, got) = exchange(
        Placement::Body,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\n\r\n\
         {\"expires_in\":\"3600\",\"ext_expires_in\":\"3600\",\"not_before\":\"1\",\
         \"resource\":\"https://acme.example\",\"access_token\":\"abc\"}",
    )
    .await;
    assert_eq!(got.unwrap().authorization, "Bearer abc");
}

#[tokio::test]
async fn a_response_without_a_token_is_an_error() {
    let refused = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\n\r\n\
        {\"error\":\"invalid_client\",\"error_description\":\"s/cret+ is wrong\"}";
    let (_, got) = exchange(Placement::Body, refused).await;
    assert_eq!(got.unwrap_err(), TokenError::Refused("invalid_client".to_owned()));
    for invalid in [
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>",
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n\
         {\"access_token\":\"a\\nb\",\"token_type\":\"bearer\"}",
    ] {
        let (_, got) = exchange(Placement::Body, invalid).await;
        assert!(matches!(got, Err(TokenError::InvalidResponse(_))), "{invalid}: {got:?}");
    }
}

#[tokio::test]
async fn a_token_of_another_type_is_refused() {
    for token_type in ["mac", "DPoP", "N_A"] {
        let response = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\
             {{\"access_token\":\"a\",\"token_type\":\"{token_type}\"}}"
        );
        let (_, result) = exchange(Placement::Body, &response).await;
        let error = result.unwrap_err().to_string();
        assert!(error.contains("and not Bearer"), "{token_type}: {error}");
    }
}

#[tokio::test]
async fn a_long_response_is_quoted_in_part() {
    let (long, ok) = ("\u{7f}".repeat(60_000), "HTTP/1.1 200 OK\r\ncontent-type: application/json");
    let invalid = format!(
        "{ok}\r\n\r\n{{\"access_token\":\"a\",\"token_type\":\"bearer\",\"expires_in\":\"{long}\"}}"
    );
    let refusal = format!("HTTP/1.1 400 Bad Request\r\n\r\n{{\"error\":\"{long}\"}}");
    for response in [invalid, refusal] {
        let why = exchange(Placement::Body, &response).await.1.unwrap_err().to_string();
        assert!(why.len() < 600, "{} bytes", why.len());
    }
}

#[tokio::test]
async fn requests_to_a_token_server_are_checked_and_bounded() {
    let get = async |tokens: Tokens, url: &str| {
        let credentials = credentials(url, Placement::Body);
        tokens.get(&credentials, None, Instant::now(), Jitter::LOWEST).await.unwrap_err()
    };
    let merchant = TestMerchant::new();
    let url = merchant.running.url("/oauth/token");
    let strict = Tokens::new(guarded_client(&[]), Duration::from_secs(5));
    let refused = get(strict, &url).await;
    assert!(matches!(refused, TokenError::Request(RequestError::AddressRefused(_))), "{refused:?}");

    let hang = json!([{"do": "hang"}, {"do": "drip"}, {"do": "huge"}]);
    merchant.behave("/oauth/token", hang).await;
    let short_timeout = Tokens::new(client(), Duration::from_millis(200));
    assert_eq!(get(short_timeout.clone(), &url).await, TokenError::Request(RequestError::TimedOut));
    assert_eq!(get(short_timeout.clone(), &url).await, TokenError::Request(RequestError::TimedOut));
    assert_eq!(get(short_timeout, &url).await, TokenError::InvalidResponse("too large".to_owned()));
}
