//! People for tests, their requests, and a clock that tests move.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::SeqCst},
};

use chrono::TimeDelta;
use platform::{Clock, Timestamp};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::app::{TestApp, text};

pub(crate) const PASSWORD: &str = "correct horse battery";

/// A clock that stands still until the test advances it.
#[derive(Clone)]
pub(crate) struct TestClock {
    start: Timestamp,
    seconds: Arc<AtomicI64>,
}

impl TestClock {
    pub(crate) fn new() -> Self {
        Self { start: Clock::system().now(), seconds: Arc::default() }
    }

    pub(crate) fn clock(&self) -> Clock {
        let clock = self.clone();
        Clock::from_fn(move || clock.start + TimeDelta::seconds(clock.seconds.load(SeqCst)))
    }

    pub(crate) fn advance(&self, time: TimeDelta) {
        self.seconds.fetch_add(time.num_seconds(), SeqCst);
    }
}

/// A person who accepted an invitation.
pub(crate) struct TestPerson {
    pub(crate) email: String,
    /// The TOTP secret in Base32.
    pub(crate) secret: String,
    pub(crate) recovery_codes: Vec<String>,
    pub(crate) session: String,
}

/// The TOTP code at a time.
pub(crate) fn code_at(secret: &str, now: Timestamp) -> String {
    let secret = totp_rs::Secret::try_from_base32(secret).unwrap();
    let totp = totp_rs::Builder::new().with_secret(secret).build().unwrap();
    totp.generate(now.timestamp().try_into().unwrap()).to_string()
}

impl TestApp {
    /// Invites a person and returns the token of the invitation.
    pub(crate) async fn invite(&self, email: &str, role: &str, merchant: Option<&str>) -> String {
        let body = json!({"email": email, "role": role, "merchant": merchant});
        let (status, invited) = self.call(Method::POST, "/v1/people", Some(body)).await;
        assert_eq!(status, StatusCode::CREATED, "{invited}");
        text(&invited["invitation"], "token")
    }

    /// Accepts an invitation, with TOTP if the role requires it.
    pub(crate) async fn accept(&self, token: &str) -> TestPerson {
        self.accept_with(token, false).await
    }

    async fn accept_with(&self, token: &str, wants_totp: bool) -> TestPerson {
        let (_, shown) = self.post("/v1/invitations/show", json!({"token": token})).await;
        let secret = text(&shown["totp"], "secret");
        let is_required = shown["totp"]["required"].as_bool().unwrap();
        let code = (is_required || wants_totp).then(|| code_at(&secret, self.clock.now()));
        let body = json!({"token": token, "password": PASSWORD, "totp_code": code,
            "totp_setup": shown["totp"]["setup"]});
        let (status, accepted) = self.post("/v1/invitations/accept", body).await;
        assert_eq!(status, StatusCode::CREATED, "{accepted}");
        let codes = accepted["recovery_codes"].as_array().unwrap();
        TestPerson {
            email: text(&shown, "email"),
            secret,
            recovery_codes: codes.iter().map(|code| code.as_str().unwrap().to_owned()).collect(),
            session: text(&accepted, "session"),
        }
    }

    /// A person who has signed in once.
    pub(crate) async fn person(
        &self,
        email: &str,
        role: &str,
        merchant: Option<&str>,
    ) -> TestPerson {
        self.accept(&self.invite(email, role, merchant).await).await
    }

    /// A person who has signed in once and set TOTP up.
    pub(crate) async fn person_with_totp(
        &self,
        email: &str,
        role: &str,
        merchant: Option<&str>,
    ) -> TestPerson {
        self.accept_with(&self.invite(email, role, merchant).await, true).await
    }

    pub(crate) async fn sign_in(
        &self,
        email: &str,
        password: &str,
        code: Option<&str>,
    ) -> (StatusCode, Value) {
        let body = json!({"email": email, "password": password, "totp_code": code});
        self.post("/v1/sessions", body).await
    }

    pub(crate) async fn request_session_token(&self, session: &str) -> (StatusCode, Value) {
        self.post("/v1/sessions/token", json!({"session": session})).await
    }

    /// The access token of a session.
    pub(crate) async fn session_token(&self, session: &str) -> String {
        let (status, token) = self.request_session_token(session).await;
        assert_eq!(status, StatusCode::OK, "{token}");
        text(&token, "access_token")
    }

    pub(crate) async fn is_signed_in(&self, session: &str) -> bool {
        match self.request_session_token(session).await.0 {
            StatusCode::OK => true,
            StatusCode::UNAUTHORIZED => false,
            status => panic!("{status}"),
        }
    }

    /// Actions and actors of the audit records, oldest first.
    pub(crate) async fn audited(&self) -> Vec<(String, String)> {
        let records = self.audit_records().await;
        let read = |record: &Value| (text(record, "action"), text(record, "actor"));
        records.iter().rev().map(read).collect()
    }
}

/// The fields that a 422 response names.
pub(crate) fn invalid_fields(body: &Value) -> Vec<&str> {
    let errors = body["errors"].as_array().unwrap();
    errors.iter().map(|error| error["field"].as_str().unwrap()).collect()
}
