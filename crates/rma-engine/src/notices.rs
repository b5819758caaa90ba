//! Tells merchants about their own endpoints, each event of an endpoint at most once an hour.
//!
//! ```text
//! event of a service --> facts of an endpoint and an event --> due: one message with all of them
//! ```
//!
//! The first facts are due after a minute, in which others join them, and further ones an hour after the last notice.
//! A failure and its recovery cancel each other out while neither is told.
//!
//! A merchant is told by a message to its endpoint for notices, and by a mail to its support contact if this
//! installation sends mails. A merchant that has neither is told nothing, and is not told later either. Of the endpoint
//! for notices itself only the mail tells: each message that it does not accept would be the fact of another one.
//! Nothing tells of mails.
//!
//! See docs/decisions/notices.md.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use delivery::{Deliveries, NewMessage};
use diesel_async::AsyncPgConnection;
use domain::delivery::{DeliveryDead, EndpointHealthChanged, EndpointPaused};
use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use domain::notice::{Notice, NoticeEvent, NoticeFacts};
use platform::database::{DatabaseError, Pool};
use platform::{Clock, Process, Timestamp, chain};

use crate::App;
use crate::settings::WebPages;
use crate::store::notices::{self, NoticeKey, Pending, StoredNotice};

/// The time from the first fact to its notice.
const DELAY: TimeDelta = TimeDelta::minutes(1);
/// The time between two notices of the same event of an endpoint.
const INTERVAL: TimeDelta = TimeDelta::hours(1);
/// Notices in one transaction.
const BATCH: i64 = 100;
/// The interface that receives notices.
const NOTICES: Interface = Interface::Message(MessageKind::Notice);

/// Facts about endpoints, in the order of their events.
#[derive(Debug, Default)]
pub(crate) struct NewFacts(Vec<(NoticeKey, NoticeFacts)>);

impl NewFacts {
    /// Adds a dead delivery.
    pub(crate) fn add_dead(&mut self, dead: &DeliveryDead) {
        let interface = Interface::Message(dead.kind);
        let event = NoticeEvent::DeliveryDead;
        let key = NoticeKey { merchant: dead.merchant.clone(), interface, event };
        self.add(key, NoticeFacts::one(dead.last_attempt_at, dead.status));
    }

    /// Adds the failure or the recovery of an endpoint.
    pub(crate) fn add_health(&mut self, changed: &EndpointHealthChanged) {
        let interface = Interface::Message(changed.kind);
        let event = match changed.recovered_at {
            None => NoticeEvent::EndpointFailing,
            Some(_) => NoticeEvent::EndpointRecovered,
        };
        let key = NoticeKey { merchant: changed.merchant.clone(), interface, event };
        let mut fact = NoticeFacts::one(changed.failing_since, changed.status);
        fact.last_at = changed.recovered_at.unwrap_or(changed.failing_since);
        self.add(key, fact);
    }

    /// Adds an endpoint that was paused.
    pub(crate) fn add_paused(&mut self, paused: &EndpointPaused) {
        let event = NoticeEvent::EndpointDisabled;
        let merchant = paused.merchant.clone();
        let key = NoticeKey { merchant, interface: paused.interface, event };
        self.add(key, NoticeFacts::without_status(paused.paused_at));
    }

    fn add(&mut self, key: NoticeKey, fact: NoticeFacts) {
        if key.interface != Interface::Message(MessageKind::Mail) {
            self.0.push((key, fact));
        }
    }

    /// Stores the facts, to be told later.
    pub(crate) async fn record(
        &self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let keys = self.0.iter().map(|(key, _)| key.clone());
        let keys: BTreeSet<_> =
            keys.flat_map(|key| [key.opposite(), Some(key)]).flatten().collect();
        let stored = notices::lock(conn, &Vec::from_iter(&keys)).await?;
        let mut stored: BTreeMap<_, _> =
            stored.into_iter().map(|it| (it.key.clone(), it)).collect();
        for (key, fact) in &self.0 {
            add_fact(&mut stored, key, fact, now);
        }
        notices::save(conn, &Vec::from_iter(stored.into_values())).await
    }
}

/// Adds a fact, unless it takes back one that is not told yet.
fn add_fact(
    stored: &mut BTreeMap<NoticeKey, StoredNotice>,
    key: &NoticeKey,
    fact: &NoticeFacts,
    now: Timestamp,
) {
    let opposite = match key.opposite() {
        Some(opposite) => stored.get_mut(&opposite),
        None => None,
    };
    let is_taken_back = opposite.is_some_and(|opposite| opposite.pending.take().is_some());
    if is_taken_back {
        return;
    }
    let Some(notice) = stored.get_mut(key) else { return };
    match &mut notice.pending {
        Some(pending) => pending.facts.add(fact),
        None => {
            let due_at = due_at(notice.told_at, now);
            notice.pending = Some(Pending { facts: fact.clone(), due_at });
        }
    }
}

/// The time at which a merchant is told the facts that are new at `now`.
fn due_at(told_at: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let next = told_at.map(|at| at + INTERVAL);
    next.map_or(now + DELAY, |next| next.max(now + DELAY))
}

/// Starts the task that tells merchants. Every replica runs it.
pub(crate) fn start(app: &App, process: &Process, console: &WebPages, poll_interval: Duration) {
    let teller = Teller {
        pool: app.pool.clone(),
        clock: app.clock.clone(),
        deliveries: app.messages.deliveries.clone(),
        console_url: console.public_url.trim_end_matches('/').to_owned(),
    };
    process.tasks.spawn("notices", |stop| async move {
        if stop.run_until_cancelled(teller.deliveries.merchants_loaded()).await.is_none() {
            return;
        }
        while !stop.is_cancelled() {
            let has_more = teller.tell_due().await.unwrap_or_else(|error| {
                tracing::warn!(error = chain(&error), "merchants cannot be told about endpoints");
                false
            });
            let pause = if has_more { Duration::ZERO } else { poll_interval };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    });
}

struct Teller {
    pool: Pool,
    clock: Clock,
    deliveries: Deliveries,
    console_url: String,
}

impl Teller {
    /// Tells merchants what is due. Returns whether there may be more.
    async fn tell_due(&self) -> Result<bool, DatabaseError> {
        let now = self.clock.now();
        let mut conn = self.pool.get().await?;
        conn.transaction(async |conn| {
            let mut due = notices::lock_due(conn, now, BATCH).await?;
            if due.is_empty() {
                return Ok(false);
            }
            let mut messages = Vec::new();
            for notice in &mut due {
                let Some(pending) = notice.pending.take() else { continue };
                let told = self.messages(&notice.key, pending.facts)?;
                if !told.is_empty() {
                    notice.told_at = Some(now);
                }
                messages.extend(told);
            }
            notices::save(conn, &due).await?;
            self.deliveries.append(conn, now, &messages).await?;
            Ok(i64::try_from(due.len()) == Ok(BATCH))
        })
        .await
    }

    /// The message to the endpoint for notices and the mail, as far as the merchant has an endpoint and a contact.
    fn messages(
        &self,
        key: &NoticeKey,
        facts: NoticeFacts,
    ) -> Result<Vec<NewMessage>, DatabaseError> {
        let NoticeKey { merchant, interface, event } = key;
        let Some(known) = self.deliveries.merchant(merchant) else { return Ok(Vec::new()) };
        let notice = Notice::new(*event, *interface, facts, self.console_url(key));
        let has_endpoint = known.endpoints.contains_key(&NOTICES) && *interface != NOTICES;
        let contact = known.settings.support_contact.as_ref();
        let contact = contact.filter(|_| self.deliveries.sends_mail());
        let mail = contact.map(|contact| notice.mail(&known.settings.name, &contact.email));
        let webhook = has_endpoint.then(|| {
            let ordering_key = format!("endpoint:{interface}");
            self.message(key, MessageKind::Notice, ordering_key, serde_json::to_vec(&notice))
        });
        let mail = mail.map(|mail| {
            let ordering_key = format!("mail:endpoint:{interface}");
            self.message(key, MessageKind::Mail, ordering_key, serde_json::to_vec(&mail))
        });
        webhook.into_iter().chain(mail).collect()
    }

    fn message(
        &self,
        NoticeKey { merchant, event, .. }: &NoticeKey,
        kind: MessageKind,
        ordering_key: String,
        body: serde_json::Result<Vec<u8>>,
    ) -> Result<NewMessage, DatabaseError> {
        let body = body.map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
        Ok(NewMessage {
            merchant: merchant.clone(),
            kind,
            version: self.deliveries.message_version(merchant, kind),
            ordering_key: Some(ordering_key),
            event: event.as_str().to_owned(),
            body: body.into(),
        })
    }

    /// The page of the console about the facts.
    fn console_url(&self, NoticeKey { merchant, interface, event }: &NoticeKey) -> String {
        let console = &self.console_url;
        match event {
            NoticeEvent::EndpointFailing
            | NoticeEvent::EndpointDisabled
            | NoticeEvent::EndpointRecovered => {
                format!("{console}/merchants/{merchant}/endpoints")
            }
            NoticeEvent::DeliveryDead => {
                format!("{console}/deliveries?merchant={merchant}&kind={interface}&state=dead")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merchant_is_told_after_a_minute_and_then_once_an_hour() {
        let at = |minutes| Timestamp::UNIX_EPOCH + TimeDelta::minutes(minutes);
        assert_eq!(due_at(None, at(10)), at(11));
        assert_eq!(due_at(Some(at(10)), at(11)), at(70));
        assert_eq!(due_at(Some(at(10)), at(69)), at(70));
        assert_eq!(due_at(Some(at(10)), at(70)), at(71));
        assert_eq!(due_at(Some(at(10)), at(700)), at(701));
    }

    const EVENTS: [NoticeEvent; 3] =
        [NoticeEvent::EndpointFailing, NoticeEvent::EndpointRecovered, NoticeEvent::DeliveryDead];

    /// The events that are told after these, in the order of the enum.
    fn told(events: &[NoticeEvent]) -> Vec<NoticeEvent> {
        let interface = Interface::Message(MessageKind::Rma);
        let key = |event| NoticeKey { merchant: "acme".parse().unwrap(), interface, event };
        let new = |event| StoredNotice { key: key(event), pending: None, told_at: None };
        let mut stored: BTreeMap<_, _> = EVENTS.map(|event| (key(event), new(event))).into();
        for event in events {
            let fact = NoticeFacts::one(Timestamp::UNIX_EPOCH, None);
            add_fact(&mut stored, &key(*event), &fact, Timestamp::UNIX_EPOCH);
        }
        let pending = stored.into_values().filter(|notice| notice.pending.is_some());
        pending.map(|notice| notice.key.event).collect()
    }

    #[test]
    fn a_failure_and_its_recovery_cancel_each_other_out_until_one_is_told() {
        let [failing, recovered, dead] = EVENTS;
        assert_eq!(told(&[failing]), [failing]);
        assert_eq!(told(&[recovered]), [recovered]);
        assert!(told(&[failing, recovered]).is_empty());
        assert!(told(&[recovered, failing]).is_empty());
        assert_eq!(told(&[failing, recovered, failing]), [failing]);
        assert_eq!(told(&[dead, failing, dead]), [failing, dead]);
    }
}
