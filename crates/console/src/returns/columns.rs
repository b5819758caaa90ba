//! The columns of the list of returns, of which a person can choose some.

use std::collections::BTreeSet;

use api::{
    delivery::State,
    returns::{LastMessage, ListedReturn},
};
use domain::returns::{Rma, RmaUnit, WorkList};
use pages::form::Fields;

use super::{active_units, currency, table::order_links};
use crate::{
    Page,
    markup::{Markup, badge, link, text, text_or_dash},
    record_list::{amount, words},
    states::Shown as _,
};

pub(super) struct ReturnColumn {
    /// The name in the URL.
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) class: &'static str,
    /// Whether the table has the column if none is chosen.
    is_usual: bool,
    pub(super) cell: fn(&ListedReturn, &Page) -> Markup,
}

impl ReturnColumn {
    const fn usual(
        name: &'static str,
        label: &'static str,
        cell: fn(&ListedReturn, &Page) -> Markup,
    ) -> Self {
        Self { name, label, class: "", is_usual: true, cell }
    }

    const fn further(
        name: &'static str,
        label: &'static str,
        cell: fn(&ListedReturn, &Page) -> Markup,
    ) -> Self {
        Self { is_usual: false, ..Self::usual(name, label, cell) }
    }

    const fn classed(self, class: &'static str) -> Self {
        Self { class, ..self }
    }
}

pub(super) static COLUMNS: [ReturnColumn; 12] = [
    ReturnColumn::usual("order", "Order", |it, _| {
        let rma = &it.details.rma;
        order_links(rma.merchant.as_str(), &active_units(rma).collect::<Vec<_>>())
    })
    .classed("wrap-anywhere"),
    ReturnColumn::usual("units", "Units", |it, _| text(active_units(&it.details.rma).count()))
        .classed("number"),
    ReturnColumn::usual("state", "State", |it, _| state(it)),
    ReturnColumn::usual("since", "Since", |it, page| page.time(it.changed_at)),
    ReturnColumn::usual("message", "Merchant knows", |it, _| message(it.last_message)),
    ReturnColumn::further("created", "Created", |it, page| page.time(it.details.rma.created_at)),
    ReturnColumn::further("method", "Method", |it, _| text(it.details.rma.return_method)),
    ReturnColumn::further("resolution", "Resolution", |it, _| {
        of_units(&it.details.rma, |unit| Some(words(unit.resolution.kind())))
    }),
    ReturnColumn::further("reason", "Reason", |it, _| {
        of_units(&it.details.rma, |unit| Some(unit.return_reason.clone()))
    }),
    ReturnColumn::further("sku", "SKU", |it, _| {
        of_units(&it.details.rma, |unit| Some(unit.sku.clone()))
    })
    .classed("wrap-anywhere"),
    ReturnColumn::further("amount", "Paid", |it, _| {
        let rma = &it.details.rma;
        text(amount(rma.paid_amount_cents(), currency(rma)))
    })
    .classed("number nowrap"),
    ReturnColumn::further("parcel", "Parcel", |it, _| {
        of_units(&it.details.rma, |unit| unit.tracking_number.clone())
    })
    .classed("wrap-anywhere"),
];

/// The columns with these names, separated by commas. The usual ones if there is none.
pub(super) fn chosen(names: &str) -> Vec<&'static ReturnColumn> {
    let is_named = |column: &&ReturnColumn| names.split(',').any(|name| name == column.name);
    let named: Vec<_> = COLUMNS.iter().filter(is_named).collect();
    if named.is_empty() { COLUMNS.iter().filter(|column| column.is_usual).collect() } else { named }
}

/// A query in which the check boxes of columns are one value, as in links.
pub(super) fn with_columns(query: &Fields) -> Fields {
    let is_box = |(name, _): &&(String, String)| name == "column";
    let names: Vec<_> =
        query.pairs().iter().filter(is_box).map(|(_, value)| value.as_str()).collect();
    if names.is_empty() {
        return query.clone();
    }
    let others = query.pairs().iter().filter(|(name, _)| name != "column" && name != "columns");
    others.cloned().chain([("columns".to_owned(), names.join(","))]).collect()
}

/// The different texts of the units.
fn of_units(rma: &Rma, value: fn(&RmaUnit) -> Option<String>) -> Markup {
    let values: BTreeSet<_> = active_units(rma).filter_map(value).collect();
    let values = Vec::from_iter(values);
    text_or_dash((!values.is_empty()).then(|| values.join(", ")))
}

fn state(listed: &ListedReturn) -> Markup {
    let rma = &listed.details.rma;
    let state = match listed.work_list {
        WorkList::Done => rma.status.badge(),
        list => list.badge(),
    };
    let unrefunded = active_units(rma).filter(|unit| unit.refunded_by.is_none());
    let cents = unrefunded.map(|unit| unit.amounts.paid()).sum();
    let due = (listed.work_list == WorkList::ToRefund)
        .then(|| text(amount(cents, currency(rma))).classed("small muted nowrap"));
    state.and_some(rma.is_overdue().then(|| badge("bad", "overdue"))).below_some(due)
}

/// Whether the merchant has received the last message.
fn message(last: Option<LastMessage>) -> Markup {
    let Some(LastMessage { delivery, state }) = last else { return text("–") };
    let url = format!("/deliveries/rma-engine/{delivery}");
    match state {
        Some(State::Delivered) => link(url, "yes"),
        Some(State::Pending) => link(url, "not yet"),
        Some(State::Dead) => badge("bad", "no").and(link(url, "dead letter")),
        // The log keeps messages for some time only.
        None => text("was sent").classed("muted"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(columns: &[&ReturnColumn]) -> Vec<&'static str> {
        columns.iter().map(|column| column.name).collect()
    }

    #[test]
    fn columns_are_chosen_by_name() {
        assert_eq!(names(&chosen("")), ["order", "units", "state", "since", "message"]);
        assert_eq!(names(&chosen("sku,order,none")), ["order", "sku"]);
        assert_eq!(names(&chosen("none")), names(&chosen("")));
    }

    #[test]
    fn check_boxes_become_one_value() {
        let query = |text: &str| serde_html_form::from_str::<Fields>(text).unwrap();
        let joined = with_columns(&query("list=done&columns=order&column=sku&column=state"));
        assert_eq!((joined.text("columns"), joined.text("list")), ("sku,state", "done"));
        assert_eq!(with_columns(&query("columns=order")).text("columns"), "order");
    }
}
