//! Reading what an operator says of a merchant.

use std::collections::BTreeMap;

use chrono_tz::Tz;
use url::Url;

use super::policy::PolicyChange;
use super::{Authentication, CredentialsIn, Interface, Settings, SupportContact};
use crate::{
    access::MerchantId,
    exchange::has_placeholder,
    json::{Field, Object, array, boolean, currency, integer, object, one_of, parsed, text},
};

const SETTINGS: [&str; 11] = [
    "name",
    "time_zone",
    "currency",
    "managed_receiving",
    "return_window_days",
    "final_sale_tags",
    "returns",
    "strict_amounts",
    "strict_refund_dates",
    "support_contact",
    "base_url",
];

/// A new merchant: `identifier`, `name`, and any of the settings.
pub fn read_new_merchant(document: &Object<'_>) -> Option<(MerchantId, Settings)> {
    let mut known = SETTINGS.to_vec();
    known.push("identifier");
    document.reject_unknown(&known);
    let identifier = document.required("identifier", parsed(1..=63, str::parse::<MerchantId>));
    let name = document.required("name", text(1..=200));
    let change = SettingsChange::read_fields(document);
    let mut settings = Settings::new(name?);
    change?.apply(&mut settings);
    Some((identifier?, settings))
}

/// What to change of a merchant's settings; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsChange {
    name: Option<String>,
    time_zone: Option<String>,
    currency: Option<String>,
    managed_receiving: Option<bool>,
    return_window_days: Option<u16>,
    final_sale_tags: Option<Vec<String>>,
    returns: Option<PolicyChange>,
    strict_amounts: Option<bool>,
    strict_refund_dates: Option<bool>,
    support_contact: Option<Option<SupportContact>>,
    base_url: Option<Option<String>>,
}

impl SettingsChange {
    pub fn read(document: &Object<'_>) -> Option<Self> {
        document.reject_unknown(&SETTINGS);
        Self::read_fields(document)
    }

    fn read_fields(document: &Object<'_>) -> Option<Self> {
        let name = document.optional("name", text(1..=200));
        let time_zone = document.optional("time_zone", time_zone);
        let currency =
            document.optional("currency", |field| currency(field).map(|c| c.code().to_owned()));
        let managed_receiving = document.optional("managed_receiving", boolean);
        let window = document.optional("return_window_days", integer(0..=3650));
        let final_sale_tags = document.optional("final_sale_tags", array(0..=100, text(1..=100)));
        let returns = document.optional("returns", object(PolicyChange::read));
        let strict_amounts = document.optional("strict_amounts", boolean);
        let strict_refund_dates = document.optional("strict_refund_dates", boolean);
        let support_contact = document.optional("support_contact", object(support_contact));
        let base_url = document.optional("base_url", base_address);
        Some(Self {
            name: name?,
            time_zone: time_zone?,
            currency: currency?,
            managed_receiving: managed_receiving?,
            return_window_days: window?.and_then(|days| days.try_into().ok()),
            final_sale_tags: final_sale_tags?,
            returns: returns?,
            strict_amounts: strict_amounts?,
            strict_refund_dates: strict_refund_dates?,
            support_contact: emptied(document, "support_contact", support_contact?),
            base_url: emptied(document, "base_url", base_url?),
        })
    }

    pub fn apply(self, settings: &mut Settings) {
        self.returns.unwrap_or_default().apply(&mut settings.returns);
        set(&mut settings.name, self.name);
        set(&mut settings.time_zone, self.time_zone);
        set(&mut settings.currency, self.currency);
        set(&mut settings.managed_receiving, self.managed_receiving);
        set(&mut settings.return_window_days, self.return_window_days);
        set(&mut settings.final_sale_tags, self.final_sale_tags);
        set(&mut settings.strict_amounts, self.strict_amounts);
        set(&mut settings.strict_refund_dates, self.strict_refund_dates);
        set(&mut settings.support_contact, self.support_contact);
        set(&mut settings.base_url, self.base_url);
    }
}

pub(super) fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// `null` empties a setting, a value sets it, absence leaves it.
pub(super) fn emptied<T>(document: &Object<'_>, key: &str, value: Option<T>) -> Option<Option<T>> {
    match value {
        Some(value) => Some(Some(value)),
        None if document.is_null(key) => Some(None),
        None => None,
    }
}

fn support_contact(contact: &Object<'_>) -> Option<SupportContact> {
    contact.reject_unknown(&["email", "name", "phone"]);
    let email = contact.required("email", email);
    let name = contact.optional("name", text(1..=200));
    let phone = contact.optional("phone", text(1..=50));
    Some(SupportContact { email: email?, name: name?, phone: phone? })
}

fn email(field: Field<'_>) -> Option<String> {
    parsed(3..=254, |text| {
        let whole =
            text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
        let plain = !text.chars().any(|c| c.is_whitespace() || c.is_control());
        if whole && plain { Ok(text.to_owned()) } else { Err("must be an e-mail address") }
    })(field)
}

fn time_zone(field: Field<'_>) -> Option<String> {
    parsed(1..=64, |text| match text.parse::<Tz>() {
        Ok(zone) => Ok(zone.name().to_owned()),
        Err(_) => Err("must be an IANA time zone, like Europe/Berlin"),
    })(field)
}

/// An http(s) address without credentials. Whether it may be dialled is decided when it is.
fn address(field: Field<'_>) -> Option<String> {
    parsed(1..=2000, |text| {
        let refused = "must be an http or https URL without credentials or fragment";
        let url = Url::parse(text).map_err(|_not_a_url| refused)?;
        let web = matches!(url.scheme(), "http" | "https") && url.has_host();
        let bare =
            url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if web && bare { Ok(text.to_owned()) } else { Err(refused) }
    })(field)
}

/// An address that paths are put behind, so nothing may follow its own.
fn base_address(field: Field<'_>) -> Option<String> {
    let own = address(field)?;
    match Url::parse(&own) {
        Ok(url) if url.query().is_none() => Some(own),
        _ => field.invalid("must not have a query: paths are put behind it"),
    }
}

/// How an endpoint is to be; secrets in the clear, signing secrets not among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointChange {
    pub url: Option<String>,
    pub path: Option<String>,
    pub headers: BTreeMap<String, String>,
    pub authentication: Authentication<String>,
    pub timeout_ms: Option<u32>,
}

impl EndpointChange {
    pub fn read(document: &Object<'_>, interface: Interface) -> Option<Self> {
        document.reject_unknown(&["url", "path", "headers", "authentication", "timeout_ms"]);
        let url = document.optional("url", |field| placed(field, address(field)?, interface));
        let path = document.optional("path", |field| placed(field, path(field)?, interface));
        let headers = document.optional("headers", object(headers));
        let authentication = document.optional("authentication", object(authentication));
        let timeout = document.optional("timeout_ms", integer(100..=120_000));
        if document.has("url") && document.has("path") {
            document.invalid("path", "give the whole url or a path, not both");
        }
        Some(Self {
            url: url?,
            path: path?,
            headers: headers?.unwrap_or_default(),
            authentication: authentication?.unwrap_or(Authentication::None),
            timeout_ms: timeout?.and_then(|millis| millis.try_into().ok()),
        })
    }
}

/// A question about a product must say where in the path its identifier goes.
fn placed(field: Field<'_>, text: String, interface: Interface) -> Option<String> {
    let missing = interface == Interface::Variants && !has_placeholder(&text);
    if missing { field.invalid("must hold {variant_identifier} in its path") } else { Some(text) }
}

fn path(field: Field<'_>) -> Option<String> {
    parsed(1..=1000, |text| {
        let plain = text.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'?' | b'#' | b'\\'));
        if text.starts_with('/') && plain {
            Ok(text.to_owned())
        } else {
            Err("must be a path that begins with /")
        }
    })(field)
}

fn headers(document: &Object<'_>) -> Option<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    let mut complete = true;
    for (name, field) in document.entries() {
        let value =
            header_name(name).map_or_else(|reason| field.invalid(reason), |()| header_value(field));
        match value {
            Some(value) => drop(headers.insert(name.to_ascii_lowercase(), value)),
            None => complete = false,
        }
    }
    complete.then_some(headers)
}

/// A header an operator may set: a token that is neither ours nor HTTP's own.
fn header_name(name: &str) -> Result<(), &'static str> {
    const OURS: [&str; 9] = [
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
        "traceparent",
        "transfer-encoding",
        "te",
        "upgrade",
    ];
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let name = name.to_ascii_lowercase();
    if name.is_empty() || name.len() > 100 || !name.bytes().all(token) {
        return Err("is not a header name");
    }
    if OURS.contains(&name.as_str())
        || name.starts_with("webhook-")
        || name.starts_with("x-service-")
    {
        return Err("this header is set by the service");
    }
    Ok(())
}

/// A header that holds an API key: also `Authorization`, which such an endpoint has no other use
/// for.
fn key_header(name: &str) -> Result<(), &'static str> {
    if name.eq_ignore_ascii_case("authorization") { Ok(()) } else { header_name(name) }
}

fn header_value(field: Field<'_>) -> Option<String> {
    parsed(0..=1000, |text| {
        let plain = text.chars().all(|c| matches!(c, ' '..='~'));
        if plain { Ok(text.to_owned()) } else { Err("must be printable ASCII") }
    })(field)
}

fn authentication(document: &Object<'_>) -> Option<Authentication<String>> {
    const KINDS: [(&str, &str); 5] = [
        ("none", "none"),
        ("basic", "basic"),
        ("bearer", "bearer"),
        ("api_key", "api_key"),
        ("oauth2", "oauth2"),
    ];
    let secret = |key| document.required(key, header_value);
    let known = |own: &[&str]| document.reject_unknown(&[&["kind"], own].concat());
    match document.required("kind", one_of(&KINDS))? {
        "basic" => {
            known(&["username", "password"]);
            let username = document.required("username", header_value);
            let password = secret("password");
            Some(Authentication::Basic { username: username?, password: password? })
        }
        "bearer" => {
            known(&["token"]);
            Some(Authentication::Bearer { token: secret("token")? })
        }
        "api_key" => {
            known(&["header", "key"]);
            let header = document.required(
                "header",
                parsed(1..=100, |name| key_header(name).map(|()| name.to_ascii_lowercase())),
            );
            let key = secret("key");
            Some(Authentication::ApiKey { header: header?, key: key? })
        }
        "oauth2" => {
            known(&["token_url", "client_id", "client_secret", "scope", "credentials_in"]);
            let token_url = document.required("token_url", address);
            let client_id = document.required("client_id", header_value);
            let client_secret = secret("client_secret");
            let scope = document.optional("scope", header_value);
            let places = [("body", CredentialsIn::Body), ("basic", CredentialsIn::Basic)];
            let credentials_in = document.optional("credentials_in", one_of(&places));
            Some(Authentication::Oauth2 {
                token_url: token_url?,
                client_id: client_id?,
                client_secret: client_secret?,
                scope: scope?,
                credentials_in: credentials_in?.unwrap_or(CredentialsIn::Basic),
            })
        }
        _ => {
            known(&[]);
            Some(Authentication::None)
        }
    }
}

#[cfg(test)]
mod tests;
