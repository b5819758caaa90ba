//! The HTTP API of the service, for operators and merchants.

use std::time::Duration;

use jsonwebtoken::{Algorithm, Header};
use platform::Clock;
use platform::identity::{AUDIENCE, Claims, TOKEN_TYPE};
use reqwest::Method;
use serde_json::{Value, json};

use super::TestApp;
use super::deliverer::{Deliverer, keys};
use super::replica::DELIVERY_SETTINGS;

/// Issues an access token.
pub(crate) fn token(scope: &str, merchant: Option<&str>) -> String {
    let now = Clock::system().now().timestamp();
    let claims = Claims {
        iss: "test".into(),
        sub: "test-client".into(),
        aud: AUDIENCE.into(),
        client_id: "test-client".into(),
        jti: uuid::Uuid::new_v4().to_string(),
        iat: now,
        exp: now + 600,
        scope: scope.parse().unwrap(),
        merchant: merchant.map(|id| id.parse().unwrap()),
        sid: None,
    };
    let mut header = Header::new(Algorithm::EdDSA);
    header.typ = Some(TOKEN_TYPE.into());
    header.kid = Some("t".into());
    jsonwebtoken::encode(&header, &claims, &keys().1).unwrap()
}

impl TestApp {
    /// Starts with a second replica that has an HTTP API.
    pub(crate) async fn with_api(settings: &[(&'static str, &'static str)]) -> Self {
        let app = Self::start(settings).await;
        let api = testkit::run::<Deliverer>(
            &DELIVERY_SETTINGS,
            Clock::system(),
            &app.database,
            &app.namespace,
        )
        .await;
        Self { api: Some(api), ..app }
    }

    pub(crate) async fn api_request(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> (u16, Value) {
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        let url = format!("{}{path}", self.api.as_ref().unwrap().url);
        let request = client.request(method, url).bearer_auth(token).json(body);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default())
    }

    pub(crate) async fn operator_request(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> (u16, Value) {
        self.api_request(&token("operator", None), method, path, body).await
    }

    /// Starts a replay as an operator, with an idempotency key.
    pub(crate) async fn start_replay(&self, key: &str, body: &Value) -> (u16, Value) {
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        let url = format!("{}/v1/replays", self.api.as_ref().unwrap().url);
        let request = client.post(url).bearer_auth(token("operator", None)).json(body);
        let response = request.header("idempotency-key", key).send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default())
    }

    /// Sends a POST request with a text of any content type, as an operator.
    pub(crate) async fn post_text(
        &self,
        path: &str,
        content_type: &str,
        body: &'static str,
    ) -> (u16, Value) {
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        let url = format!("{}{path}", self.api.as_ref().unwrap().url);
        let request = client.post(url).bearer_auth(token("operator", None));
        let response =
            request.header("content-type", content_type).body(body).send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default())
    }

    /// The metrics of all replicas of the tests in this process.
    pub(crate) async fn metrics(&self) -> String {
        let url = format!("{}/metrics", self.api.as_ref().unwrap().url);
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        client.get(url).send().await.unwrap().text().await.unwrap()
    }

    /// Sends a GET request as an operator and returns the body.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.operator_request(Method::GET, path, &json!({})).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }
}
