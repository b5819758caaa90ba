//! The portals of merchants: names, colours, languages, links and return options, as rma-engine has them.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use chrono::{DateTime, NaiveDate, Utc};
use chrono_tz::Tz;
use domain::merchant::{Colors, LookupKey};
use moka::future::Cache;
use pages::{
    api::{ApiError, Service},
    path,
};
use serde::Deserialize;
use texts::Language;
use url::Url;

use crate::access::Access;

/// A change of a merchant's settings shows within this time.
const CACHE_TTL: Duration = Duration::from_secs(5);
const MAX_CACHED: u64 = 10_000;
/// The length of the longest host name.
const MAX_NAME_BYTES: usize = 253;

/// The portal of one merchant.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Portal {
    pub(crate) merchant: String,
    /// Changes with every change of the settings.
    pub(crate) version: i64,
    pub(crate) name: String,
    pub(crate) logo_url: Option<String>,
    #[serde(default)]
    pub(crate) colors: Colors,
    #[serde(default)]
    languages: Vec<domain::merchant::Language>,
    pub(crate) policy_url: Option<String>,
    pub(crate) contact_url: Option<String>,
    pub(crate) contact_email: Option<String>,
    #[serde(default)]
    image_hosts: Vec<String>,
    #[serde(default)]
    pub(crate) lookup_keys: Vec<LookupKey>,
    #[serde(default)]
    pub(crate) withdrawal: bool,
    /// Whether shoppers get mails. A service of an earlier version sends none, and knows no language of a return.
    #[serde(default)]
    pub(crate) mails: bool,
    /// IANA time zone of return windows.
    #[serde(default)]
    time_zone: String,
    /// The currency of shipping costs and of the bonus. Orders in another currency have neither.
    #[serde(default)]
    pub(crate) currency: String,
    #[serde(default)]
    pub(crate) free_exchange_shipping: bool,
    #[serde(default)]
    pub(crate) reasons: Vec<Reason>,
    #[serde(default)]
    pub(crate) methods: Vec<MethodOffer>,
    pub(crate) gift_card: Option<GiftCard>,
    /// By the id of the rule and the code of the language.
    #[serde(default)]
    rule_texts: BTreeMap<String, BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Reason {
    pub(crate) code: String,
    /// The label without a language, of the merchant's return options.
    #[serde(default)]
    label: String,
    /// By the code of the language.
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) offers_exchange: bool,
}

impl Reason {
    /// The label in a language, else the general one, else the one of another language.
    pub(crate) fn label(&self, language: Language) -> &str {
        let general = Some(&self.label).filter(|label| !label.is_empty());
        let label = self.labels.get(language.translation()).or(general);
        label.or_else(|| self.labels.values().next()).unwrap_or(&self.code)
    }
}

/// A return method and its cost.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct MethodOffer {
    /// `mail-back`, `express-returns` or `customer-keep`.
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) shipping_cost_cents: i64,
}

/// The gift card that shoppers can choose instead of a refund.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct GiftCard {
    #[serde(default)]
    pub(crate) bonus_credit_amount_cents: i64,
}

impl Portal {
    /// The languages of this portal, the default one first.
    pub(crate) fn languages(&self) -> Vec<Language> {
        let languages: Vec<_> = self.languages.iter().copied().map(Language::from).collect();
        if languages.is_empty() { Language::TRANSLATED.to_vec() } else { languages }
    }

    /// The day of a time at the merchant's place.
    pub(crate) fn day(&self, at: &DateTime<Utc>) -> NaiveDate {
        self.local(at).date_naive()
    }

    /// A time at the merchant's place.
    pub(crate) fn local(&self, at: &DateTime<Utc>) -> DateTime<Tz> {
        at.with_timezone(&self.time_zone.parse().unwrap_or(Tz::UTC))
    }

    pub(crate) fn reason(&self, code: &str) -> Option<&Reason> {
        self.reasons.iter().find(|reason| reason.code == code)
    }

    /// The merchant's words about a rule.
    pub(crate) fn rule_text(&self, rule: Option<&str>, language: Language) -> Option<&str> {
        let texts = self.rule_texts.get(rule?)?;
        texts.get(language.translation()).map(String::as_str)
    }

    /// The hosts of the pictures on this portal's pages.
    pub(crate) fn image_hosts(&self) -> impl Iterator<Item = String> {
        let logo = self.logo_url.as_deref().and_then(authority);
        self.image_hosts.iter().cloned().chain(logo)
    }

    /// The URL of a product picture, if its host is one of the merchant's. The browser would not load
    /// other pictures.
    pub(crate) fn image<'a>(&self, url: Option<&'a str>) -> Option<&'a str> {
        let url = url?;
        let host = authority(url)?;
        self.image_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(&host)).then_some(url)
    }
}

/// The host of a web address, with the port if it is not the default one.
fn authority(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// The portals that were shown lately, by merchant and by host name.
pub(crate) struct Portals {
    cache: Cache<String, Option<Arc<Portal>>>,
}

impl Portals {
    pub(crate) fn new() -> Self {
        Self { cache: Cache::builder().max_capacity(MAX_CACHED).time_to_live(CACHE_TTL).build() }
    }

    /// The portal of a merchant identifier or of a host name.
    pub(crate) async fn find(
        &self,
        access: &Access,
        address: IpAddr,
        name: &str,
    ) -> Result<Option<Arc<Portal>>, ApiError> {
        let is_possible = name.len() <= MAX_NAME_BYTES
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        if !is_possible || name.is_empty() {
            return Ok(None);
        }
        let load = async {
            let api = access.caller(address).await?;
            let path = path!("v1", "portals", name);
            match api.get::<Portal>(Service::RmaEngine, &path, &[]).await {
                Ok(portal) => Ok(Some(Arc::new(portal))),
                Err(ApiError::NotFound) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let found = self.cache.try_get_with(name.to_owned(), load).await;
        found.map_err(|error: Arc<ApiError>| ApiError::clone(&error))
    }

    /// Removes a portal from the cache, because a browser has seen a newer version.
    pub(crate) async fn invalidate(&self, name: &str) {
        self.cache.invalidate(name).await;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// The portals of a process that has just shown that of `acme`.
    pub(crate) async fn shown() -> Portals {
        let portals = Portals::new();
        portals.cache.insert("acme".to_owned(), Some(Arc::new(portal()))).await;
        portals
    }

    fn portal() -> Portal {
        serde_json::from_value(json!({
            "merchant": "acme", "version": 3, "name": "Acme",
            "logo_url": "http://localhost:8090/logo.svg", "languages": ["de", "en"],
            "image_hosts": ["cdn.acme.test"], "time_zone": "Europe/Berlin", "lookup_keys": ["email"],
            "withdrawal": true,
            "reasons": [
                { "code": "SMALL", "label": "Too small", "labels": { "de": "Zu klein" } },
                { "code": "OLD", "labels": {} },
            ],
        }))
        .unwrap()
    }

    #[test]
    fn pictures_come_from_the_merchants_hosts() {
        let portal = portal();
        let hosts: Vec<_> = portal.image_hosts().collect();
        assert_eq!(hosts, ["cdn.acme.test", "localhost:8090"]);
        for (url, is_shown) in [
            ("https://cdn.acme.test/a.png", true),
            ("https://CDN.acme.test/a.png", true),
            ("https://cdn.acme.test:444/a.png", false),
            ("https://other.test/a.png", false),
            ("javascript:alert(1)", false),
            ("", false),
        ] {
            assert_eq!(portal.image(Some(url)).is_some(), is_shown, "{url}");
        }
    }

    #[test]
    fn days_are_those_of_the_merchants_time_zone() {
        let at: DateTime<Utc> = "2026-12-02T23:30:00Z".parse().unwrap();
        assert_eq!(portal().day(&at).to_string(), "2026-12-03");
        assert_eq!(Portal::default().day(&at).to_string(), "2026-12-02");
    }

    #[test]
    fn a_reason_has_a_label_in_every_language() {
        let portal = portal();
        let label = |code, language| portal.reason(code).unwrap().label(language).to_owned();
        assert_eq!(label("SMALL", Language::De), "Zu klein");
        assert_eq!(label("SMALL", Language::Fr), "Too small");
        assert_eq!(label("OLD", Language::En), "OLD");
        assert_eq!(portal.languages(), [Language::De, Language::En]);
    }
}
