//! Discrepancies of one merchant or, for staff, of all.

mod resolve;

use actix_web::{get, web};
use api::returns::{DiscrepancyResolution, RecordedDiscrepancy};
use domain::returns::Discrepancy;
use pages::{api::Service, form::Fields, path};
use strum::VariantNames as _;

use crate::{
    PageResult, Section, SignedIn,
    actors::ClientNames,
    error::sentence,
    filter::{Condition, Options, or_any},
    list::List,
    markup::{Markup, link, or_dash, text},
    record_list::words,
    table::Table,
};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_discrepancies).configure(resolve::routes);
}

const PATH: &str = "v1/discrepancies";
/// The state that is shown without a filter, as rma-engine names it.
const OPEN: &str = "open";

const CONDITIONS: &[Condition] = &[
    Condition::MERCHANT,
    Condition::choice("state", "State", || {
        [("", OPEN), ("resolved", "resolved"), ("any", "any")]
            .map(|(state, name)| (state, name.to_owned()))
            .into()
    })
    .with_default(OPEN)
    .not_sent(),
    Condition::choice("kind", "Kind", kinds),
    Condition::text("order_identifier", "Order"),
    Condition::text("rma_identifier", "Return"),
];

static LIST: List = List {
    about: "Facts that contradict each other, for example a refund of a return that does not exist. They stop \
            nothing, but a person should check and resolve each of them.",
    has_chips: true,
    sorted_nouns: Some(("discrepancy", "discrepancies")),
    ..List::new(
        Section::Discrepancies,
        ("/discrepancies", "Discrepancies"),
        (Service::RmaEngine, PATH),
        CONDITIONS,
        [
            "No discrepancy is open. New ones appear here when order snapshots, refunds and receipts contradict \
             each other.",
            "No discrepancy matches this filter.",
        ],
    )
};

/// The kinds by name.
fn kinds() -> Options {
    let mut kinds = Discrepancy::VARIANTS.to_vec();
    kinds.sort_unstable();
    or_any(kinds.into_iter().map(|kind| (kind, words(kind))))
}

/// Whether a refund can be assigned to the return that it belongs to.
fn is_assignable(discrepancy: &RecordedDiscrepancy) -> bool {
    matches!(discrepancy.detail, Discrepancy::RefundOfUnknownReturn { .. })
}

pub(crate) fn url_of(discrepancy: &RecordedDiscrepancy) -> String {
    url(discrepancy.merchant.as_str(), discrepancy.position)
}

fn order_link(discrepancy: &RecordedDiscrepancy) -> Option<Markup> {
    let order = discrepancy.detail.order_identifier()?;
    Some(record_link(discrepancy, "orders", order))
}

/// A link to the return, if it exists.
fn return_link(discrepancy: &RecordedDiscrepancy) -> Option<Markup> {
    let rma = match &discrepancy.detail {
        Discrepancy::RefundNamesOtherReturn { rma_identifier, .. } => rma_identifier,
        detail => detail.rma_identifier()?,
    };
    Some(record_link(discrepancy, "returns", rma))
}

fn record_link(discrepancy: &RecordedDiscrepancy, kind: &str, identifier: &str) -> Markup {
    let merchant = discrepancy.merchant.as_str();
    link(format!("/{}", path!("merchants", merchant, kind, identifier)), identifier)
}

/// Whether a person can resolve it. A refund can be assigned to its return even after it was resolved with
/// only a note.
fn can_be_resolved(discrepancy: &RecordedDiscrepancy) -> bool {
    match &discrepancy.resolution {
        None => true,
        Some(resolution) => is_assignable(discrepancy) && resolution.rma_identifier.is_none(),
    }
}

fn url(merchant: &str, position: i64) -> String {
    format!("/{}", path!("merchants", merchant, "discrepancies", position.to_string()))
}

/// The state as rma-engine names it.
fn wanted_state(state: &str) -> &str {
    match state {
        "" => OPEN,
        "any" => "",
        state => state,
    }
}

/// Replaces the ids of the clients that resolved discrepancies by their names.
async fn name_clients(signed_in: &SignedIn, discrepancies: &mut [RecordedDiscrepancy]) {
    let resolved = discrepancies.iter().filter_map(|it| it.resolution.as_ref());
    let names = ClientNames::load(signed_in, resolved.map(|it| it.by.as_str())).await;
    for resolution in discrepancies.iter_mut().filter_map(|it| it.resolution.as_mut()) {
        resolution.by = names.name(&resolution.by).to_owned();
    }
}

#[get("/discrepancies")]
async fn list_discrepancies(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let state = wanted_state(query.text("state"));
    let (view, mut records) =
        LIST.load::<RecordedDiscrepancy>(&signed_in, &query, &[("state", state)]).await?;
    name_clients(&signed_in, &mut records).await;
    let page = signed_in.page(LIST.section);
    let table = Table::of(LIST.title, &records)
        .head("Discrepancy", |it| link(url_of(it), sentence(&it.message)))
        .cell("Kind", |it| text(words(it.detail.kind())))
        .cell_if(page.person.is_staff(), "Merchant", |it| text(&it.merchant))
        .wrapped("Order", |it| or_dash(order_link(it)))
        .wrapped("Return", |it| or_dash(return_link(it)))
        .cell("Since", |it| page.time(it.at))
        .cell("Resolved", |it| {
            let resolved =
                |by: &DiscrepancyResolution| page.time(by.at).and("by").and(text(&by.by));
            or_dash(it.resolution.as_ref().map(resolved))
        });
    let table = table.table();
    view.show(page, table)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::{Value, json};

    use super::*;
    use crate::{
        filter::Filter,
        fixtures::{app_with_changed_merchant, signed_in},
    };

    #[test]
    fn a_discrepancy_leads_to_its_order_and_return() {
        let links = |detail: Value| {
            let discrepancy = json!({
                "merchant": "acme", "position": 1, "at": "2026-11-16T08:00:00Z", "message": "m",
                "detail": detail,
            });
            let found: RecordedDiscrepancy = serde_json::from_value(discrepancy).unwrap();
            let links = [order_link(&found), return_link(&found)];
            (links.map(|link| link.map(|it| it.to_string())), is_assignable(&found))
        };
        let order = Some(r#"<a href="/merchants/acme/orders/A">A</a>"#.to_owned());
        let rma = Some(r#"<a href="/merchants/acme/returns/R">R</a>"#.to_owned());
        let refund = |kind: &str| json!({ "kind": kind, "refund_identifier": "1", "order_identifier": "A", "rma_identifier": "R" });
        assert_eq!(links(refund("refund_of_unknown_return")), ([order.clone(), None], true));
        let other = links(refund("refund_names_other_return"));
        assert_eq!(other, ([order.clone(), rma.clone()], false));
        let unit = json!({ "order_identifier": "A", "order_line_item_identifier": "1", "unit": 1 });
        let damaged = json!({ "kind": "received_damaged", "rma_identifier": "R", "unit": unit });
        assert_eq!(links(damaged), ([order, rma], false));
    }

    #[actix_web::test]
    async fn a_client_that_resolved_a_discrepancy_has_its_name() {
        let app = app_with_changed_merchant();
        let api = app.api.caller(Ipv4Addr::LOCALHOST.into(), None);
        let ada = SignedIn { api, ..signed_in("support", None, &json!({})) };
        let resolved = |by: &str| {
            let detail = json!({ "kind": "received_over", "rma_identifier": "R", "quantity": 1 });
            let at = "2026-11-16T08:00:00Z";
            let discrepancy = json!({
                "merchant": "acme", "position": 1, "at": at, "message": "m", "detail": detail,
                "resolution": { "at": at, "by": by, "note": "n" },
            });
            serde_json::from_value::<RecordedDiscrepancy>(discrepancy).unwrap()
        };
        let mut found = ["bh_1", "bh_2", "ada@acme.example"].map(resolved);
        name_clients(&ada, &mut found).await;
        let names = found.map(|it| it.resolution.unwrap().by);
        assert_eq!(names, ["Shop", "bh_2", "ada@acme.example"]);
    }

    #[test]
    fn the_states_are_those_of_the_api() {
        let find = |state: &str| {
            let query = [("state".to_owned(), state.to_owned())].into_iter().collect();
            let signed_in = signed_in("support", None, &json!({}));
            let filter = Filter::read(&signed_in, "/discrepancies", CONDITIONS, &query);
            (filter.is_valid(), wanted_state(filter.value("state")).to_owned())
        };
        for state in ["open", "resolved"] {
            assert_eq!(find(state), (true, state.to_owned()));
        }
        assert_eq!(find("any"), (true, String::new()));
        assert!(!find("closed").0);
    }

    #[test]
    fn open_ones_are_shown_first() {
        assert_eq!((wanted_state(""), wanted_state("any")), ("open", ""));
        assert_eq!(wanted_state("resolved"), "resolved");
    }
}
