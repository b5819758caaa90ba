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
use crate::client::Fault;
use crate::fixture::{Merchant, answer_and_close, client, guarded};
use crate::outcome::Jitter;

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
    merchant: Merchant,
    tokens: Tokens,
    credentials: Arc<ClientCredentials>,
    begun: Instant,
}

impl Case {
    fn new() -> Self {
        let merchant = Merchant::new();
        let credentials = credentials(&merchant.running.url("/oauth/token"), Placement::Body);
        let tokens = Tokens::new(client(), Duration::from_secs(5));
        Self { merchant, tokens, credentials, begun: Instant::now() }
    }

    async fn get(&self, stale: Option<u64>, after_seconds: u64) -> Result<Token, TokenError> {
        let now = self.begun + Duration::from_secs(after_seconds);
        self.tokens.get(&self.credentials, stale.map(Generation), now, Jitter::LOWEST).await
    }

    #[track_caller]
    fn check(got: &Result<Token, TokenError>, generation: u64) {
        assert_eq!(got.as_ref().unwrap().generation, Generation(generation));
    }

    /// Waits until no call is under way.
    async fn landed(&self) {
        let slot = self.tokens.slots.get(&Fingerprint::of(&self.credentials)).unwrap();
        let flight = lock(&slot).flight.as_ref().and_then(WeakShared::upgrade);
        if let Some(flight) = flight {
            drop(flight.await);
        }
    }

    async fn calls(&self) -> usize {
        self.merchant.journal("/oauth/token").await.entries.len()
    }
}

#[tokio::test]
async fn a_thousand_who_need_a_token_cost_one_call() {
    let case = Case::new();
    let slow = json!([{"do": "answer", "status": 200, "delay_ms": 100, "times": "always",
        "body": {"access_token": "t", "token_type": "bearer", "expires_in": 100}}]);
    case.merchant.behave("/oauth/token", slow).await;
    for got in join_all((0..1000).map(|_| case.get(None, 0))).await {
        Case::check(&got, 1);
    }
    assert_eq!(case.calls().await, 1);
    for got in join_all((0..1000).map(|_| case.get(Some(1), 0))).await {
        Case::check(&got, 2);
    }
    assert_eq!(case.calls().await, 2);
    // Whoever comes late with the old token finds the new one.
    Case::check(&case.get(Some(1), 0).await, 2);
    assert_eq!(case.calls().await, 2);
}

#[tokio::test]
async fn a_thousand_who_wait_for_a_failing_server_cost_one_call_too() {
    let case = Case::new();
    let failing = json!([{"do": "answer", "status": 500, "delay_ms": 100, "body": "sorry"}]);
    case.merchant.behave("/oauth/token", failing).await;
    for got in join_all((0..1000).map(|_| case.get(None, 0))).await {
        assert!(matches!(got, Err(TokenError::Unusable(_))), "{got:?}");
    }
    assert_eq!(case.calls().await, 1);
    // A failure is not remembered.
    Case::check(&case.get(None, 0).await, 1);
}

#[tokio::test]
async fn a_token_is_renewed_ahead_of_its_end() {
    let case = Case::new();
    // The sandbox's tokens live for an hour, and the lowest roll renews at 80 %.
    Case::check(&case.get(None, 0).await, 1);
    Case::check(&case.get(None, 2879).await, 1);
    Case::check(&case.get(None, 2880).await, 1);
    case.landed().await;
    Case::check(&case.get(None, 2881).await, 2);
    case.landed().await;
    assert_eq!(case.calls().await, 2);
}

#[tokio::test]
async fn a_renewal_that_fails_does_no_harm_while_the_token_lives() {
    let case = Case::new();
    Case::check(&case.get(None, 0).await, 1);
    let failing = json!([{"do": "answer", "status": 503, "times": "always"}]);
    case.merchant.behave("/oauth/token", failing).await;
    Case::check(&case.get(None, 3000).await, 1);
    case.landed().await;
    assert_eq!(case.calls().await, 2);
    // Not every message tries it again.
    Case::check(&case.get(None, 3029).await, 1);
    case.landed().await;
    assert_eq!(case.calls().await, 2);
    Case::check(&case.get(None, 3030).await, 1);
    case.landed().await;
    assert_eq!(case.calls().await, 3);
    assert!(case.get(None, 3600).await.is_err());
    assert!(case.get(Some(1), 10).await.is_err());
}

#[tokio::test]
async fn nobody_who_holds_a_token_waits_for_the_next() {
    let case = Case::new();
    Case::check(&case.get(None, 0).await, 1);
    case.merchant.behave("/oauth/token", json!([{"do": "hang"}])).await;
    for after_seconds in [3000, 3000, 3001] {
        let got = case.get(None, after_seconds).now_or_never().expect("an answer at once");
        Case::check(&got, 1);
    }
}

#[tokio::test]
async fn a_call_goes_on_though_nobody_waits_for_it_any_more() {
    let case = Case::new();
    let mut first = Box::pin(case.get(None, 0));
    assert!(futures_util::poll!(&mut first).is_pending());
    drop(first);
    case.landed().await;
    // Whoever comes next finds its token.
    let got = case.get(None, 0).now_or_never().expect("an answer at once");
    Case::check(&got, 1);
    assert_eq!(case.calls().await, 1);
}

#[tokio::test]
async fn changed_credentials_get_a_token_of_their_own() {
    let mut case = Case::new();
    let first = case.get(None, 0).await.unwrap();
    let mut changed = (*case.credentials).clone();
    changed.client_secret = "other".into();
    case.credentials = Arc::new(changed);
    let second = case.get(None, 0).await.unwrap();
    assert_ne!(first.authorization, second.authorization);
    assert!(!format!("{second:?}{:?}", case.credentials).contains("other"));
}

/// What a token server sees, and what we make of its answer.
async fn exchange(placement: Placement, answer: &str) -> (String, Result<Token, TokenError>) {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/token", server.local_addr().unwrap());
    let length = answer.split_once("\r\n\r\n").unwrap().1.len();
    let answer = answer.replacen("\r\n", &format!("\r\ncontent-length: {length}\r\n"), 1);
    let tokens = Tokens::new(client(), Duration::from_secs(5));
    let credentials = credentials(&url, placement);
    let asking = tokens.get(&credentials, None, Instant::now(), Jitter::LOWEST);
    let serving = async {
        let (stream, _) = server.accept().await.unwrap();
        answer_and_close(stream, answer.as_bytes()).await
    };
    let (got, seen) = tokio::join!(asking, serving);
    (seen, got)
}

const GOOD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n\
    {\"access_token\":\"abc\",\"token_type\":\"BEARER\",\"expires_in\":90000,\"created_at\":1}";

#[tokio::test]
async fn credentials_stand_in_the_body_or_in_the_header() {
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
async fn an_answer_without_a_token_says_why() {
    let refused = "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\n\r\n\
        {\"error\":\"invalid_client\",\"error_description\":\"s/cret+ is wrong\"}";
    let (_, got) = exchange(Placement::Body, refused).await;
    assert_eq!(got.unwrap_err(), TokenError::Refused("invalid_client".to_owned()));
    for odd in [
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>",
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n\
         {\"access_token\":\"a\\nb\",\"token_type\":\"bearer\"}",
    ] {
        let (_, got) = exchange(Placement::Body, odd).await;
        assert!(matches!(got, Err(TokenError::Unusable(_))), "{odd}: {got:?}");
    }
}

#[tokio::test]
async fn an_answer_that_says_too_much_is_quoted_in_part() {
    let (long, ok) = ("\u{7f}".repeat(60_000), "HTTP/1.1 200 OK\r\ncontent-type: application/json");
    let odd = format!(
        "{ok}\r\n\r\n{{\"access_token\":\"a\",\"token_type\":\"bearer\",\"expires_in\":\"{long}\"}}"
    );
    let refusal = format!("HTTP/1.1 400 Bad Request\r\n\r\n{{\"error\":\"{long}\"}}");
    for answer in [odd, refusal] {
        let why = exchange(Placement::Body, &answer).await.1.unwrap_err().to_string();
        assert!(why.len() < 600, "{} bytes", why.len());
    }
}

#[tokio::test]
async fn a_token_server_is_guarded_and_bounded_like_an_endpoint() {
    let get = async |tokens: Tokens, url: &str| {
        let credentials = credentials(url, Placement::Body);
        tokens.get(&credentials, None, Instant::now(), Jitter::LOWEST).await.unwrap_err()
    };
    let merchant = Merchant::new();
    let url = merchant.running.url("/oauth/token");
    let strict = Tokens::new(guarded(&[]), Duration::from_secs(5));
    let refused = get(strict, &url).await;
    assert!(matches!(refused, TokenError::Fault(Fault::AddressRefused(_))), "{refused:?}");

    let hang = json!([{"do": "hang"}, {"do": "drip"}, {"do": "huge"}]);
    merchant.behave("/oauth/token", hang).await;
    let hasty = Tokens::new(client(), Duration::from_millis(200));
    assert_eq!(get(hasty.clone(), &url).await, TokenError::Fault(Fault::TimedOut));
    assert_eq!(get(hasty.clone(), &url).await, TokenError::Fault(Fault::TimedOut));
    assert_eq!(get(hasty, &url).await, TokenError::Unusable("it is too large".to_owned()));
}
