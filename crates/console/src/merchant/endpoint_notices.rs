//! Notices about the endpoints of a merchant: what it was told, and when.

use std::cmp::Reverse;

use api::delivery::{DeliveryView, State};
use chrono::{DateTime, Utc};
use domain::message_kind::MessageKind;
use futures_util::future::join;
use pages::api::Service;

use crate::{
    Page, PageError, SignedIn,
    deliveries::Entry,
    markup::{badge, link, text},
    parts::{self, Loaded},
    record_list::Records,
    states::Shown as _,
    table::Table,
};

/// The newest notices, which the page shows.
const SHOWN: usize = 10;

/// Loads the newest notices and the mails with notices. An rma-engine of an earlier version has none.
pub(super) async fn load(signed_in: &SignedIn, merchant: &str) -> Result<Loaded<Entry>, PageError> {
    let messages = of_kind(signed_in, merchant, MessageKind::Notice);
    let mails = of_kind(signed_in, merchant, MessageKind::Mail);
    let (messages, mails) = join(messages, mails).await;
    let Loaded { mut entries, missing } = messages?;
    entries.extend(mails?.entries);
    // Ids begin with the time.
    entries.sort_by_key(|entry| Reverse(entry.delivery.id));
    entries.truncate(SHOWN);
    Ok(Loaded { entries, missing })
}

async fn of_kind(
    signed_in: &SignedIn,
    merchant: &str,
    kind: MessageKind,
) -> Result<Loaded<Entry>, PageError> {
    let limit = SHOWN.to_string();
    let query = [("merchant", merchant), ("kind", kind.name()), ("limit", &limit)];
    let services = [Service::RmaEngine];
    let api = &signed_in.api;
    let found =
        parts::each::<Records<DeliveryView>>(api, &services, "v1/deliveries", &query).await?;
    let mut entries = Vec::new();
    for (service, list) in found.entries {
        entries.extend(list.records.into_iter().map(|delivery| Entry { service, delivery }));
    }
    Ok(Loaded { entries, missing: found.missing })
}

pub(super) fn table(entries: &[Entry], page: &Page) -> Table {
    Table::of("Notices", entries)
        .cell("State", |it| badge(it.delivery.tone(), it.delivery.state))
        .head("Notice", |it| link(it.url(), &it.delivery.event))
        .cell("About", |it| text(interface(&it.delivery)))
        .cell("To", |it| {
            text(if it.delivery.kind == "mail" { "support contact" } else { "endpoint" })
        })
        .cell("Told", |it| page.time_or(told_at(&it.delivery), "–"))
        .response(page)
        .table()
}

/// The interface that a notice is about.
fn interface(notice: &DeliveryView) -> &str {
    let key = notice.ordering_key.as_deref().unwrap_or_default();
    key.rsplit_once("endpoint:").map_or(key, |(_, interface)| interface)
}

/// The time at which the merchant accepted a notice.
fn told_at(notice: &DeliveryView) -> Option<DateTime<Utc>> {
    notice.last_attempt_at.filter(|_| notice.state == State::Delivered)
}

#[cfg(test)]
mod tests {
    use askama::Template as _;
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn only_a_notice_that_was_accepted_has_a_time() {
        let notice = |state: &str| {
            let delivery = fixtures::delivery(&json!({
                "kind": "notice", "event": "endpoint.failing", "ordering_key": "endpoint:rma",
                "state": state, "last_attempt_at": "2026-11-16T08:00:00Z", "last_status": 200,
            }));
            Entry { service: Service::RmaEngine, delivery }
        };
        assert_eq!(told_at(&notice("dead").delivery), None);
        let mail = fixtures::delivery(&json!({ "ordering_key": "mail:endpoint:rma" }));
        assert_eq!(interface(&mail), "rma");
        assert!(told_at(&notice("delivered").delivery).is_some());
        let page = fixtures::page(&fixtures::signed_in("operator", None, &json!({})));
        let shown = table(&[notice("delivered")], &page).render().unwrap();
        for part in [">endpoint.failing</a>", r#"data-label="About">rma<"#] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
}
