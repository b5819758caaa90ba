//! Sessions of people, as the account page and the page of a person show them.

use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, Part, Service},
    path,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::{SignedIn, record_list::Records};

/// A session as auth describes it.
#[derive(Deserialize)]
pub(crate) struct SessionView {
    pub(crate) id: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) last_used_at: DateTime<Utc>,
    #[serde(default)]
    pub(crate) address: String,
    user_agent: Option<String>,
    #[serde(default)]
    pub(crate) current: bool,
}

impl SessionView {
    pub(crate) fn device(&self) -> String {
        device(self.user_agent.as_deref().unwrap_or_default())
    }
}

/// The own sessions, or those of another person.
pub(crate) async fn load(
    signed_in: &SignedIn,
    person: &str,
) -> Result<Part<Vec<SessionView>>, ApiError> {
    let query = [("person", person)];
    let list: Result<Records<_>, _> = signed_in.api.get(Service::Auth, "v1/sessions", &query).await;
    Part::new(list.map(|list| list.records))
}

pub(crate) async fn end(signed_in: &SignedIn, id: &str) -> Result<(), ApiError> {
    delete(signed_in, &path!("v1", "sessions", id)).await
}

/// Ends all sessions of a person, or the own ones.
pub(crate) async fn end_all(signed_in: &SignedIn, person: Option<&str>) -> Result<(), ApiError> {
    let query = person.map(|person| {
        let person: String = form_urlencoded::byte_serialize(person.as_bytes()).collect();
        format!("?person={person}")
    });
    delete(signed_in, &format!("v1/sessions{}", query.unwrap_or_default())).await
}

async fn delete(signed_in: &SignedIn, path: &str) -> Result<(), ApiError> {
    let _: Value =
        signed_in.api.send_json(Service::Auth, Method::DELETE, None, path, &json!({})).await?;
    Ok(())
}

/// The browser and the system in plain words, from the `User-Agent` header.
fn device(user_agent: &str) -> String {
    // Browsers name others for compatibility, so the order matters.
    const BROWSERS: [(&str, &str); 8] = [
        ("Edg", "Edge"),
        ("OPR/", "Opera"),
        ("SamsungBrowser/", "Samsung Internet"),
        ("Firefox/", "Firefox"),
        ("FxiOS/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("CriOS/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    const SYSTEMS: [(&str, &str); 7] = [
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Android", "Android"),
        ("Windows", "Windows"),
        ("CrOS", "ChromeOS"),
        ("Mac OS X", "Mac"),
        ("Linux", "Linux"),
    ];
    let find = |names: &[(&str, &'static str)]| {
        names.iter().find(|(part, _)| user_agent.contains(part)).map(|(_, name)| *name)
    };
    match (find(&BROWSERS), find(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) if user_agent.is_empty() => "Unknown device".to_owned(),
        (None, None) => user_agent.chars().take(40).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_plain_names() {
        for (user_agent, name) in [
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/148.0.0.0 Safari/537.36 Edg/148.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
                 HeadlessChrome/148.0.0.0 Safari/537.36",
                "Chrome on Linux",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 \
                 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1",
                "Safari on iPhone",
            ),
            (
                "Mozilla/5.0 (Android 16; Mobile; rv:150.0) Gecko/150.0 Firefox/150.0",
                "Firefox on Android",
            ),
            ("curl/8.5.0", "curl/8.5.0"),
            ("", "Unknown device"),
        ] {
            assert_eq!(device(user_agent), name);
        }
    }
}
