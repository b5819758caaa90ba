//! Each step of the onboarding: its evidence, or the instructions.

use api::delivery::EndpointView;
use chrono::{DateTime, Utc};
use domain::message_kind::MessageKind;
use pages::{
    api::Part,
    text::{count, grouped},
};

use super::{
    facts::{Facts, reason},
    step::{Step, StepState},
};
use crate::parts::Loaded;

/// The result of looking at the facts of a step: the evidence if it is done.
type Evidence = Part<Option<String>>;

fn step(
    title: &'static str,
    evidence: Evidence,
    instructions: String,
    link: Option<(String, &'static str)>,
) -> Step {
    let (state, text, link) = match evidence {
        Part::Loaded(Some(evidence)) => (StepState::Done, evidence, None),
        Part::Loaded(None) => (StepState::Open, instructions, link),
        Part::Missing(service) => {
            let text = format!("The service {service} does not respond. The step may be done.");
            (StepState::Unknown(service), text, None)
        }
    };
    Step { title, state, text, link }
}

/// The evidence in the facts of a service, if they were loaded.
fn evidence<T>(part: &Part<T>, find: impl FnOnce(&T) -> Option<String>) -> Evidence {
    match part {
        Part::Loaded(facts) => Part::Loaded(find(facts)),
        Part::Missing(service) => Part::Missing(*service),
    }
}

pub(super) fn token_step(
    facts: &Facts,
    clients: String,
    ago: impl Fn(DateTime<Utc>) -> String,
) -> Step {
    let used = evidence(&facts.clients, |clients| {
        Some(format!("The last token was requested {}.", ago(clients.last_used_at()?)))
    });
    let has_client = matches!(&facts.clients, Part::Loaded(clients) if clients.has_client());
    let (instructions, link) = if has_client {
        let text = "Request a token with the id and the secret of your client. Your systems send it \
                    with every request.";
        (text, ("/reference".to_owned(), "How to request a token"))
    } else {
        let text = "Create an API client. It has an id and a secret, which your systems use to \
                    request tokens.";
        (text, (clients, "Create a client"))
    };
    step("Fetch a token", used, instructions.to_owned(), Some(link))
}

pub(super) fn order_step(facts: &Facts, ago: impl Fn(DateTime<Utc>) -> String) -> Step {
    let published = evidence(&facts.orders, |orders| {
        (orders.count > 0)
            .then(|| format!("{} stored.", count(orders.count, "order is", "orders are")))
    });
    let mut text =
        "Publish an order when a shopper places it, and again whenever it changes.".to_owned();
    if let Part::Loaded(orders) = &facts.orders
        && let Some(rejection) = orders.rejections.first()
    {
        let order = rejection.order_identifier.as_deref().unwrap_or("without an identifier");
        text = format!("Order {order} was rejected {}.", ago(rejection.rejected_at));
        if let Some(reason) = reason(rejection) {
            text.push_str(&format!(" {reason}."));
        }
    }
    step(
        "Publish an order",
        published,
        text,
        Some(("/reference".to_owned(), "How to publish orders")),
    )
}

pub(super) fn endpoint_step(facts: &Facts, endpoints: String) -> Step {
    let set = evidence(&facts.merchant, |merchant| {
        let set = MessageKind::WEBHOOKS
            .iter()
            .filter(|kind| merchant.endpoints.contains_key(kind.name()));
        let set = set.count();
        (set > 0).then(|| {
            format!("{set} of {} kinds of message have an endpoint.", MessageKind::WEBHOOKS.len())
        })
    });
    let text = "Tell Backhaul the URLs that receive messages. Each endpoint gets a secret that signs \
                its messages.";
    step("Set your endpoints", set, text.to_owned(), Some((endpoints, "Set an endpoint")))
}

pub(super) fn message_step(
    endpoints: &Loaded<EndpointView>,
    url: String,
    ago: impl Fn(DateTime<Utc>) -> String,
) -> Step {
    let entries = || endpoints.entries.iter();
    let message = entries().filter_map(|one| one.last_success.as_ref()).map(|one| one.at).max();
    let sample =
        entries().filter_map(|one| one.last_accepted_sample.as_ref()).map(|one| one.at).max();
    let accepted = match (message, sample, endpoints.missing.first()) {
        (Some(at), ..) => Part::Loaded(Some(format!("The last message was accepted {}.", ago(at)))),
        (None, Some(at), _) => {
            Part::Loaded(Some(format!("The last sample was accepted {}.", ago(at))))
        }
        (None, None, Some(service)) => Part::Missing(*service),
        (None, None, None) => Part::Loaded(None),
    };
    let text = "Send a sample to each endpoint. An endpoint accepts a message by responding with a \
                2xx status.";
    step("Accept a message", accepted, text.to_owned(), Some((url, "Send a sample")))
}

pub(super) fn history_step(
    facts: &Facts,
    is_old: impl Fn(DateTime<Utc>) -> bool,
    ago: impl Fn(DateTime<Utc>) -> String,
) -> Step {
    let imported = evidence(&facts.orders, |orders| {
        let oldest = orders.created_at.as_ref()?.oldest;
        is_old(oldest).then(|| {
            format!("The oldest of {} orders was placed {}.", grouped(orders.count), ago(oldest))
        })
    });
    let text = "Publish the orders of the last six months, so that shoppers can return them too.";
    let link = Some(("/reference".to_owned(), "How to publish orders"));
    step("Import your history", imported, text.to_owned(), link)
}

pub(super) fn return_step(facts: &Facts) -> Step {
    let seen = evidence(&facts.returns, |returns| {
        (!returns.records.is_empty()).then(|| "There are returns.".to_owned())
    });
    let text = "Wait for the first return, or start one for a test order. Its messages show that \
                everything works together.";
    step(
        "See a return",
        seen,
        text.to_owned(),
        Some(("/reference".to_owned(), "How to start a return")),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::fixtures;

    fn facts(clients: Value, orders: Value) -> Facts {
        Facts {
            merchant: Part::Loaded(
                serde_json::from_value(json!({ "endpoints": { "rma": {} } })).unwrap(),
            ),
            clients: Part::Loaded(serde_json::from_value(clients).unwrap()),
            orders: Part::Loaded(fixtures::order_summary(&orders)),
            returns: Part::Missing(pages::api::Service::RmaEngine),
        }
    }

    fn ago(at: DateTime<Utc>) -> String {
        at.format("at %H:%M").to_string()
    }

    #[test]
    fn a_client_without_a_token_leads_to_the_token() {
        let client = |used: Option<&str>| json!({ "clients": [{ "last_used_at": used }] });
        let link = |clients: Value| {
            let step = token_step(&facts(clients, json!({})), "/clients".to_owned(), ago);
            (step.is_done(), step.link.map(|(url, _)| url))
        };
        assert_eq!(link(json!({ "clients": [] })), (false, Some("/clients".to_owned())));
        assert_eq!(link(client(None)), (false, Some("/reference".to_owned())));
        assert_eq!(link(client(Some("2026-11-16T08:00:00Z"))), (true, None));
    }

    #[test]
    fn an_accepted_sample_counts_until_there_is_a_message() {
        let step = |fields: Value| {
            let entries = vec![fixtures::endpoint(&fields)];
            let endpoints = Loaded { entries, missing: Vec::new() };
            let step = message_step(&endpoints, "/endpoints".to_owned(), ago);
            (step.is_done(), step.text)
        };
        let at = |hour: u32| json!({ "at": format!("2026-11-16T{hour:02}:00:00Z"), "status": 200 });
        assert!(!step(json!({ "last_accepted_sample": null })).0);
        let sample = step(json!({ "last_accepted_sample": at(9) }));
        assert_eq!(sample, (true, "The last sample was accepted at 09:00.".to_owned()));
        let both = step(json!({ "last_accepted_sample": at(9), "last_success": at(8) }));
        assert_eq!(both, (true, "The last message was accepted at 08:00.".to_owned()));
    }

    #[test]
    fn a_rejected_order_is_explained() {
        let rejected = json!({ "count": 0, "rejections": [{
            "rejected_at": "2026-11-16T08:00:00Z", "order_identifier": "1001",
            "errors": [{ "field": "$.orders[0].currency", "code": "missing_field" }],
        }] });
        let step = order_step(&facts(json!({}), rejected), ago);
        assert_eq!(
            step.text,
            "Order 1001 was rejected at 08:00. $.orders[0].currency: missing_field."
        );
    }

    #[test]
    fn an_old_order_shows_the_import() {
        let orders = json!({ "count": 1204, "created_at": {
            "oldest": "2026-05-16T08:00:00Z", "newest": "2026-05-16T08:00:00Z" } });
        let facts = facts(json!({}), orders);
        let step = history_step(&facts, |_| true, ago);
        assert_eq!(step.text, "The oldest of 1,204 orders was placed at 08:00.");
        assert!(!history_step(&facts, |_| false, ago).is_done());
    }
}
