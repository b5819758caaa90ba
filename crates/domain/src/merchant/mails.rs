//! The mails to a merchant's shoppers about their returns.
//!
//! See docs/decisions/mail.md.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use strum::VariantArray as _;
use utoipa::ToSchema;

use super::appearance::{Language, entries};
use super::patch::{replace, replace_or};
use super::urls::email;
use crate::json::{Field, Object, boolean, object, parsed, printable_text, read_fields};
use crate::printable::is_printable;

crate::words! {
    /// An event of a return about which its shopper gets a mail.
    pub enum MailEvent as "snake_case" {
        /// The return started: it was confirmed, or approved in its review.
        Confirmed,
        /// The last unit arrived at the warehouse.
        Received,
        /// The merchant refunded units.
        Refunded,
        /// The merchant accepted an exchange order.
        ExchangePlaced,
        /// The merchant declined the return in its review.
        Declined,
        /// The return expires in some days, unless a carrier scans a parcel.
        AboutToExpire,
        /// The shopper withdrew from the contract.
        Withdrawal,
    }
}

impl MailEvent {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The event of the message, as the delivery log names it.
    pub fn message_event(self) -> &'static str {
        match self {
            Self::Confirmed => "return.confirmed",
            Self::Received => "return.received",
            Self::Refunded => "return.refunded",
            Self::ExchangePlaced => "return.exchange_placed",
            Self::Declined => "return.declined",
            Self::AboutToExpire => "return.about_to_expire",
            Self::Withdrawal => "return.withdrawal",
        }
    }
}

/// The mails to shoppers about their returns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ShopperMails {
    /// The address that gets the replies of shoppers. Without it, shoppers get no mails.
    #[schema(max_length = 254, example = "returns@acme.example")]
    pub reply_to: Option<String>,
    /// The name of the sender. Absent: the name that shoppers see in the portal.
    #[schema(min_length = 1, max_length = 100, example = "Acme Returns")]
    pub sender_name: Option<String>,
    pub events: MailEvents,
    /// The merchant's own words, by language and event.
    #[schema(
        value_type = BTreeMap<String, BTreeMap<String, MailText>>,
        example = json!({ "de": { "confirmed": { "opening": "Danke für Ihre Rückgabe {rma}." } } })
    )]
    pub texts: BTreeMap<Language, BTreeMap<MailEvent, MailText>>,
}

/// The merchant's own words in a mail. `{rma}` stands for the number of the return, and `{shop}` for the name of the
/// shop.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct MailText {
    /// Instead of our subject.
    #[schema(nullable = false, min_length = 1, max_length = 200, example = "Your return {rma}")]
    pub subject: Option<String>,
    /// Instead of our first paragraph. Each line is a paragraph.
    #[schema(nullable = false, min_length = 1, max_length = 2000, example = "Thank you.")]
    pub opening: Option<String>,
}

/// Whether shoppers get a mail about each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct MailEvents {
    pub confirmed: bool,
    pub received: bool,
    pub refunded: bool,
    pub exchange_placed: bool,
    pub declined: bool,
    pub about_to_expire: bool,
    pub withdrawal: bool,
}

impl Default for MailEvents {
    /// All events.
    fn default() -> Self {
        Self {
            confirmed: true,
            received: true,
            refunded: true,
            exchange_placed: true,
            declined: true,
            about_to_expire: true,
            withdrawal: true,
        }
    }
}

impl MailEvents {
    fn has(self, event: MailEvent) -> bool {
        match event {
            MailEvent::Confirmed => self.confirmed,
            MailEvent::Received => self.received,
            MailEvent::Refunded => self.refunded,
            MailEvent::ExchangePlaced => self.exchange_placed,
            MailEvent::Declined => self.declined,
            MailEvent::AboutToExpire => self.about_to_expire,
            MailEvent::Withdrawal => self.withdrawal,
        }
    }
}

impl ShopperMails {
    /// Whether the merchant wants shoppers to get a mail about an event.
    pub fn are_sent(&self, event: MailEvent) -> bool {
        self.reply_to.is_some() && self.events.has(event)
    }

    /// The merchant's own words about an event in a language.
    pub fn text(&self, language: Language, event: MailEvent) -> Option<&MailText> {
        self.texts.get(&language)?.get(&event)
    }
}

impl MailText {
    pub fn read(text: &Object<'_>) -> Option<Self> {
        read_fields!(text => Self {
            subject: Self::read_subject(text),
            opening: Self::read_opening(text),
        })
    }

    /// Reads the field `subject`.
    pub fn read_subject(text: &Object<'_>) -> Option<Option<String>> {
        text.optional("subject", printable_text(1..=200))
    }

    /// Reads the field `opening`, which may have several lines.
    pub fn read_opening(text: &Object<'_>) -> Option<Option<String>> {
        text.optional("opening", parsed(1..=2_000, lines))
    }
}

fn lines(text: &str) -> Result<String, &'static str> {
    let text = text.replace("\r\n", "\n");
    match text.chars().all(|c| c == '\n' || is_printable(c)) {
        true => Ok(text),
        false => Err("must not contain control or bidirectional characters"),
    }
}

/// The texts of all languages. Those without words of the merchant are left out.
fn texts(field: Field<'_>) -> Option<BTreeMap<Language, BTreeMap<MailEvent, MailText>>> {
    let of_language = |document: &Object<'_>| {
        let mut texts = entries(document, |event, text| match event.parse::<MailEvent>() {
            Ok(event) => Some((event, object(MailText::read)(text)?)),
            Err(_) => text.invalid(format!("unknown event: known are {}", names(MailEvent::ALL))),
        })?;
        texts.retain(|_, text| *text != MailText::default());
        Some(texts)
    };
    let by_language = |document: &Object<'_>| {
        entries(document, |language, texts| match language.parse::<Language>() {
            Ok(language) => Some((language, object(of_language)(texts)?)),
            Err(_) => {
                texts.invalid(format!("unknown language: known are {}", names(Language::ALL)))
            }
        })
    };
    let mut texts = object(by_language)(field)?;
    texts.retain(|_, texts| !texts.is_empty());
    Some(texts)
}

fn names<T: std::fmt::Display>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Changes to the mails to shoppers. `texts` replaces all texts. Null restores the default of a field.
#[derive(Debug, Clone, Default, PartialEq, Eq, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MailsChange {
    #[schema(value_type = Option<String>, min_length = 3, max_length = 254)]
    reply_to: Option<Option<String>>,
    #[schema(value_type = Option<String>, min_length = 1, max_length = 100)]
    sender_name: Option<Option<String>>,
    #[schema(value_type = Option<MailEventsChange>)]
    events: Option<Option<MailEventsChange>>,
    #[schema(value_type = Option<BTreeMap<String, BTreeMap<String, MailText>>>)]
    texts: Option<Option<BTreeMap<Language, BTreeMap<MailEvent, MailText>>>>,
}

/// Switches of single events. Omitted ones stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MailEventsChange {
    #[schema(nullable = false)]
    confirmed: Option<bool>,
    #[schema(nullable = false)]
    received: Option<bool>,
    #[schema(nullable = false)]
    refunded: Option<bool>,
    #[schema(nullable = false)]
    exchange_placed: Option<bool>,
    #[schema(nullable = false)]
    declined: Option<bool>,
    #[schema(nullable = false)]
    about_to_expire: Option<bool>,
    #[schema(nullable = false)]
    withdrawal: Option<bool>,
}

impl MailsChange {
    pub(super) fn read(document: &Object<'_>) -> Option<Self> {
        read_fields!(document => Self {
            reply_to: document.clearable("reply_to", email),
            sender_name: document.clearable("sender_name", printable_text(1..=100)),
            events: document.clearable("events", object(MailEventsChange::read)),
            texts: document.clearable("texts", texts),
        })
    }

    pub(super) fn apply(self, mails: &mut ShopperMails) {
        let Self { reply_to, sender_name, events, texts } = self;
        replace(&mut mails.reply_to, reply_to);
        replace(&mut mails.sender_name, sender_name);
        let events = events.map(|change| change.map(|change| change.applied_to(mails.events)));
        replace_or(&mut mails.events, events, MailEvents::default());
        replace_or(&mut mails.texts, texts, BTreeMap::new());
    }
}

impl MailEventsChange {
    fn read(document: &Object<'_>) -> Option<Self> {
        read_fields!(document => Self {
            confirmed: document.optional("confirmed", boolean),
            received: document.optional("received", boolean),
            refunded: document.optional("refunded", boolean),
            exchange_placed: document.optional("exchange_placed", boolean),
            declined: document.optional("declined", boolean),
            about_to_expire: document.optional("about_to_expire", boolean),
            withdrawal: document.optional("withdrawal", boolean),
        })
    }

    fn applied_to(self, mut events: MailEvents) -> MailEvents {
        replace(&mut events.confirmed, self.confirmed);
        replace(&mut events.received, self.received);
        replace(&mut events.refunded, self.refunded);
        replace(&mut events.exchange_placed, self.exchange_placed);
        replace(&mut events.declined, self.declined);
        replace(&mut events.about_to_expire, self.about_to_expire);
        replace(&mut events.withdrawal, self.withdrawal);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;

    fn changed(mails: &ShopperMails, json: &str) -> ShopperMails {
        let document = Document::parse(json.as_bytes()).unwrap();
        let change = document.read(object(MailsChange::read)).unwrap();
        let mut mails = mails.clone();
        change.apply(&mut mails);
        mails
    }

    #[test]
    fn shoppers_get_all_mails_of_a_merchant_with_an_address_unless_it_switches_them_off() {
        let none = ShopperMails::default();
        assert!(MailEvent::ALL.iter().all(|event| !none.are_sent(*event)));
        let all = changed(&none, r#"{"reply_to": "returns@acme.example"}"#);
        assert!(MailEvent::ALL.iter().all(|event| all.are_sent(*event)));
        let less = changed(&all, r#"{"events": {"refunded": false}}"#);
        let sent = MailEvent::ALL.iter().filter(|event| less.are_sent(**event));
        assert_eq!(sent.count(), MailEvent::ALL.len() - 1);
        assert!(!less.are_sent(MailEvent::Refunded));
        let received = changed(&less, r#"{"events": {"received": false}}"#);
        assert!(!received.events.refunded && !received.events.received, "{received:?}");
        assert_eq!(changed(&received, r#"{"events": null}"#), all);
        assert_eq!(changed(&all, r#"{"reply_to": null}"#), none);
    }

    #[test]
    fn an_older_merchant_gets_no_mails_and_each_event_has_its_own_switch() {
        let stored: ShopperMails = serde_json::from_str("{}").unwrap();
        assert_eq!(stored, ShopperMails::default());
        for event in MailEvent::ALL {
            let json = format!(r#"{{"reply_to": "a@b.example", "events": {{"{event}": false}}}}"#);
            let mails = changed(&ShopperMails::default(), &json);
            let off: Vec<_> = MailEvent::ALL.iter().filter(|it| !mails.are_sent(**it)).collect();
            assert_eq!(off, [event]);
        }
    }

    #[test]
    fn a_merchant_has_its_own_words_by_language_and_event() {
        let texts = r#"{"texts": {"en": {"received": {}}, "de": {
            "confirmed": {"subject": "Danke, {rma}", "opening": "Erste Zeile\r\nZweite Zeile"},
            "refunded": {}
        }}}"#;
        let mails = changed(&ShopperMails::default(), texts);
        assert_eq!((mails.texts.len(), mails.texts[&Language::De].len()), (1, 1));
        let text = mails.text(Language::De, MailEvent::Confirmed).unwrap();
        assert_eq!(text.subject.as_deref(), Some("Danke, {rma}"));
        assert_eq!(text.opening.as_deref(), Some("Erste Zeile\nZweite Zeile"));
        assert_eq!(mails.text(Language::En, MailEvent::Confirmed), None);
        let stored = serde_json::to_value(&mails).unwrap();
        assert_eq!(serde_json::from_value::<ShopperMails>(stored).unwrap(), mails);
        assert_eq!(changed(&mails, r#"{"reply_to": null}"#).texts, mails.texts);
        assert!(changed(&mails, r#"{"texts": null}"#).texts.is_empty());
        for (wrong, field) in [
            (r#"{"it": {}}"#, "$.texts.it"),
            (r#"{"en": {"lost": {}}}"#, "$.texts.en.lost"),
            (r#"{"en": {"received": {"subject": "a\nb"}}}"#, "$.texts.en.received.subject"),
            (r#"{"en": {"received": {"opening": "\u202e"}}}"#, "$.texts.en.received.opening"),
            (r#"{"en": {"received": {"closing": "x"}}}"#, "$.texts.en.received.closing"),
        ] {
            let json = format!(r#"{{"texts": {wrong}}}"#);
            let document = Document::parse(json.as_bytes()).unwrap();
            let invalid = document.read(object(MailsChange::read)).unwrap_err();
            assert_eq!(invalid.errors[0].field, field, "{wrong}");
        }
    }

    #[test]
    fn a_sender_cannot_add_a_header() {
        for json in [
            r#"{"sender_name": "Acme\r\nBcc: evil@evil.example"}"#,
            r#"{"sender_name": "\u202eemcA"}"#,
            r#"{"reply_to": "a@b.example\nBcc: evil@evil.example"}"#,
            r#"{"reply_to": "Acme <a@b.example>"}"#,
            r#"{"reply_to": "a@b.example, evil@evil.example"}"#,
        ] {
            let document = Document::parse(json.as_bytes()).unwrap();
            assert!(document.read(object(MailsChange::read)).is_err(), "{json}");
        }
    }
}
