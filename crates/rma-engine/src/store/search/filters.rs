//! The filters that a search checks for each return that its index offers.

use api::delivery::State;
use domain::merchant::ReturnMethod;
use domain::returns::{RmaStatus, WorkList};
use platform::Timestamp;
use serde_json::{Map, Value, json};

use super::parameters::Parameters;
use super::source::IndexedBy;
use super::{CHANGED_AT, Search};

#[derive(Default, PartialEq)]
pub(super) struct Filters {
    status: Option<&'static str>,
    is_overdue: bool,
    email: Option<String>,
    /// A part of the column `facts`.
    facts: Option<Value>,
    min_amount_cents: Option<i64>,
    max_amount_cents: Option<i64>,
    work_list: Option<&'static str>,
    message_state: Option<&'static str>,
    created_from: Option<Timestamp>,
    created_to: Option<Timestamp>,
    changed_to: Option<Timestamp>,
}

impl Filters {
    /// All filters but that of the index.
    pub(super) fn new(search: &Search) -> Self {
        let indexed_by = IndexedBy::new(search);
        let is_checked = |by: IndexedBy| by != indexed_by;
        let is_of_changes = indexed_by == IndexedBy::Changes;
        Self {
            status: search.status.filter(|_| is_checked(IndexedBy::Status)).map(RmaStatus::as_str),
            is_overdue: search.is_overdue && is_checked(IndexedBy::Overdue),
            email: search.email.clone().filter(|_| is_checked(IndexedBy::Email)),
            facts: facts(search, is_checked(IndexedBy::Sku)),
            min_amount_cents: search.min_amount_cents,
            max_amount_cents: search.max_amount_cents,
            work_list: search
                .work_list
                .filter(|_| is_checked(IndexedBy::WorkList))
                .map(WorkList::as_str),
            message_state: search.message_state.map(State::name),
            created_from: search.from.filter(|_| is_of_changes),
            created_to: search.to.filter(|_| is_of_changes),
            changed_to: search.updated_to.filter(|_| !is_of_changes),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The conditions in SQL, which are the same for all filters: a connection keeps the plan of each text.
    pub(super) fn conditions(self, parameters: &mut Parameters) -> String {
        format!(
            include_str!("checked_filters.sql"),
            status = parameters.add(self.status),
            is_overdue = parameters.add(self.is_overdue),
            email = parameters.add(self.email),
            facts = parameters.add(self.facts),
            min = parameters.add(self.min_amount_cents),
            max = parameters.add(self.max_amount_cents),
            work_list = parameters.add(self.work_list),
            message_state = parameters.add(self.message_state),
            created_from = parameters.add(self.created_from),
            created_to = parameters.add(self.created_to),
            changed_to = parameters.add(self.changed_to),
            changed_at = CHANGED_AT,
            state_of_message = delivery::state_of("returns.last_delivery"),
        )
    }
}

fn facts(search: &Search, is_sku_checked: bool) -> Option<Value> {
    let sku = search.sku.as_deref().filter(|_| is_sku_checked);
    let facts = [
        ("return_method", search.return_method.map(ReturnMethod::as_str).map(Value::from)),
        ("resolutions", search.resolution.map(|it| json!([it]))),
        ("return_reasons", search.return_reason.as_ref().map(|it| json!([it]))),
        ("skus", sku.map(|it| json!([it]))),
    ];
    let facts = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let facts: Map<_, _> = facts.collect();
    (!facts.is_empty()).then_some(Value::Object(facts))
}
