//! The returns that a search reads: the part of an index that has them in the order of the list, or those with an
//! identifier.

use domain::returns::{RmaStatus, WorkList};
use platform::Timestamp;
use platform::database::IndexRange;

use super::Search;
use super::parameters::Parameters;
use super::times::Times;
use crate::store::ALL_MERCHANTS;

/// The columns that sort returns.
const SORTED: [&str; 2] = ["created_at", "rma_identifier"];

/// The columns that sort the changes of returns.
const CHANGES_SORTED: [&str; 2] = ["recorded_at", "position"];

/// The condition of an entry of the timeline that is the last one of its return.
const IS_LAST_CHANGE: &str = "listed.position = ( \
         SELECT later.position FROM timeline AS later \
         WHERE later.merchant = listed.merchant AND later.rma_identifier = listed.rma_identifier \
         ORDER BY later.position DESC LIMIT 1 \
     )";

/// Returns of all merchants whose identifier begins with a text, or with a SKU, that a search reads.
const MAX_OF_TEXT: u32 = 50;

/// The return of a row of another table. `LATERAL` with `LIMIT` reads only this one: with a join, PostgreSQL reads all
/// returns by time if it overestimates the rows of the other table.
const RETURN_OF_ROW: &str = "LATERAL ( \
         SELECT * FROM returns AS own \
         WHERE own.rma_identifier = listed.rma_identifier AND own.merchant = listed.merchant LIMIT 1 \
     ) AS returns";

/// The filter whose index offers the returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexedBy {
    Changes,
    Identifier,
    Email,
    Sku,
    Overdue,
    WorkList,
    Status,
    Time,
}

impl IndexedBy {
    /// The first filter of a search, with those that few returns match before others.
    pub(super) fn new(search: &Search) -> Self {
        let identifiers = [
            &search.rma_identifier,
            &search.rma_identifier_prefix,
            &search.order_identifier,
            &search.tracking_number,
        ];
        let filters = [
            (search.updated_from.is_some(), Self::Changes),
            (identifiers.into_iter().any(Option::is_some), Self::Identifier),
            (search.email.is_some(), Self::Email),
            (search.sku.is_some(), Self::Sku),
            (search.is_overdue, Self::Overdue),
            (search.work_list.is_some(), Self::WorkList),
            (search.status.is_some(), Self::Status),
        ];
        let first = filters.into_iter().find(|(is_set, _)| *is_set);
        first.map_or(Self::Time, |(_, by)| by)
    }
}

/// The part of an index with the returns of a list.
struct Index {
    table: &'static str,
    /// The first columns of the index with their values.
    fixed: Vec<(&'static str, String)>,
    sorted: [&'static str; 2],
    /// The condition of a partial index.
    condition: &'static str,
}

impl Index {
    /// `None` if an identifier finds the returns. The SKU of all merchants is one: its index has returns in their order
    /// within a merchant only.
    fn new(search: &Search, parameters: &mut Parameters) -> Option<Self> {
        let by = IndexedBy::new(search);
        if by == IndexedBy::Identifier || (by == IndexedBy::Sku && search.merchant.is_none()) {
            return None;
        }
        let mut own = |column: &'static str, value: &str| (column, parameters.add(value));
        let merchant = search.merchant.as_ref().map(|it| own("merchant", it.as_str()));
        let list = search.work_list.map(WorkList::as_str);
        let status = search.status.map(RmaStatus::as_str);
        let (table, column, condition) = match by {
            IndexedBy::Email => {
                let email = search.email.as_ref().map(|it| own("customer_email", it));
                ("returns", email, "customer_email IS NOT NULL")
            }
            IndexedBy::Sku => {
                let sku = search.sku.as_ref().map(|it| own("sku", it));
                let fixed = sku.into_iter().chain(merchant).collect();
                let (table, sorted) = ("return_skus", SORTED);
                return Some(Self { table, fixed, sorted, condition: "true" });
            }
            IndexedBy::WorkList => {
                ("return_work_lists", list.map(|it| own("work_list", it)), "true")
            }
            IndexedBy::Status => ("returns", status.map(|it| own("status", it)), "true"),
            IndexedBy::Overdue => ("returns", None, "overdue"),
            IndexedBy::Changes => ("timeline", None, "true"),
            IndexedBy::Identifier | IndexedBy::Time => ("returns", None, "true"),
        };
        let fixed = merchant.into_iter().chain(column).collect();
        let sorted = if by == IndexedBy::Changes { CHANGES_SORTED } else { SORTED };
        Some(Self { table, fixed, sorted, condition })
    }

    /// A query of a part of the index.
    fn rows(&self, is_of_all: bool, times: &Times, direction: &str, limit: &str) -> String {
        let range = IndexRange { fixed: &self.fixed, sorted: &self.sorted };
        let (from, to) = times.bounds();
        format!(
            "SELECT * FROM {} WHERE {} AND {} AND {} ORDER BY {} {limit}",
            self.table,
            if is_of_all { ALL_MERCHANTS } else { "true" },
            self.condition,
            range.condition(from, to),
            range.order(direction),
        )
    }

    /// The name of the rows in the query.
    fn alias(&self) -> &'static str {
        if self.table == "returns" { "returns" } else { "listed" }
    }

    /// The order of the rows, as PostgreSQL knows it: a column with an equality is not part of it.
    fn order(&self, direction: &str) -> String {
        let fixed = self.fixed.last().map(|(column, _)| *column);
        let columns = fixed.into_iter().chain(self.sorted);
        let columns = columns.map(|column| format!("{}.{column} {direction}", self.alias()));
        columns.collect::<Vec<_>>().join(", ")
    }

    /// The columns that sort the rows, with the name of the rows.
    fn sorted(&self) -> [String; 2] {
        self.sorted.map(|column| format!("{}.{column}", self.alias()))
    }
}

/// The parts of a query of the table `returns`.
pub(super) struct Source {
    pub(super) from: String,
    pub(super) conditions: String,
    pub(super) order: String,
    /// The columns that sort the returns.
    pub(super) sorted: [String; 2],
}

impl Source {
    /// The returns of the page; of an index, up to `most`. Changes end at `horizon`.
    pub(super) fn new(
        search: &Search,
        horizon: Option<Timestamp>,
        parameters: &mut Parameters,
        most: i64,
    ) -> Self {
        let times = times(search, horizon, parameters);
        let direction = search.order().direction();
        let Some(index) = Index::new(search, parameters) else {
            return Self::by_identifier(search, parameters, &times);
        };
        let limit = format!("LIMIT {}", parameters.add(most));
        let rows = index.rows(search.merchant.is_none(), &times, direction, &limit);
        let from = match index.alias() {
            "returns" => format!("({rows}) AS returns"),
            listed => format!("({rows}) AS {listed}, {RETURN_OF_ROW}"),
        };
        let sorted = index.sorted();
        let [time, _] = &sorted;
        let mut conditions = times.end(time);
        if horizon.is_some() {
            conditions = format!("{conditions} AND {IS_LAST_CHANGE}");
        }
        Self { from, conditions, order: index.order(direction), sorted }
    }

    /// A query of the place of the return with this number in an index.
    pub(super) fn place(
        search: &Search,
        horizon: Option<Timestamp>,
        parameters: &mut Parameters,
        number: i64,
    ) -> Option<String> {
        let index = Index::new(search, parameters)?;
        let times = times(search, horizon, parameters);
        let direction = search.order().direction();
        let limit = format!("OFFSET {} LIMIT 1", parameters.add(number - 1));
        let rows = index.rows(search.merchant.is_none(), &times, direction, &limit);
        let [time, id] = index.sorted();
        Some(format!(
            "SELECT {time} AS sorted_at, {id}::text AS sorted_id FROM ({rows}) AS {} WHERE {}",
            index.alias(),
            times.end(&time)
        ))
    }

    fn by_identifier(search: &Search, parameters: &mut Parameters, times: &Times) -> Self {
        let sorted = SORTED.map(|column| format!("returns.{column}"));
        let [time, id] = &sorted;
        let columns = [time.as_str(), id.as_str()];
        let range = IndexRange { fixed: &[], sorted: &columns };
        let order = range.order(search.order().direction());
        let merchant = search.merchant.as_ref().map(|it| parameters.add(it.as_str()));
        let (from, identifiers) = with_identifiers(search, parameters, merchant.as_deref());
        let (first, last) = times.bounds();
        let merchant = merchant.map_or("true".to_owned(), |it| format!("returns.merchant = {it}"));
        let conditions =
            [merchant, identifiers, range.condition(first, last), times.end(time)].join(" AND ");
        Self { from, conditions, order, sorted }
    }
}

fn times(search: &Search, horizon: Option<Timestamp>, parameters: &mut Parameters) -> Times {
    match horizon {
        Some(horizon) => Times::of_changes(search, horizon, parameters),
        None => Times::of_creation(search, parameters),
    }
}

/// The returns with the identifiers or the SKU of a search, and further conditions.
fn with_identifiers(
    search: &Search,
    parameters: &mut Parameters,
    merchant: Option<&str>,
) -> (String, String) {
    let mut own = Vec::new();
    if let Some(identifier) = &search.rma_identifier {
        own.push(format!("returns.rma_identifier = {}", parameters.add(identifier.as_str())));
    }
    if let Some(prefix) = &search.rma_identifier_prefix {
        own.push(range_of_prefix(&parameters.add(prefix.as_str())));
    }
    let units = [
        ("order_identifier", &search.order_identifier),
        ("tracking_number", &search.tracking_number),
    ];
    let mut of_units = Vec::new();
    for (column, value) in units {
        let Some(value) = value else { continue };
        of_units.push(format!("{column} = {}", parameters.add(value.as_str())));
    }
    let own = own.join(" AND ");
    if !of_units.is_empty() {
        of_units.extend(merchant.map(|it| format!("merchant = {it}")));
        let rows = format!(
            "SELECT DISTINCT rma_identifier, merchant FROM return_units WHERE {}",
            of_units.join(" AND ")
        );
        let own = if own.is_empty() { "true".to_owned() } else { own };
        return (format!("({rows}) AS listed, {RETURN_OF_ROW}"), own);
    }
    if own.is_empty() {
        let sku = parameters.add(search.sku.as_deref());
        let rows = format!(
            "SELECT rma_identifier, merchant FROM return_skus WHERE sku = {sku} \
             ORDER BY sku, merchant, created_at, rma_identifier LIMIT {MAX_OF_TEXT}"
        );
        return (format!("({rows}) AS listed, {RETURN_OF_ROW}"), "true".to_owned());
    }
    // The identifiers are random, so few are the same or begin with the same text. With `LIMIT`, this is planned on its
    // own: by the statistics of an empty table, a scan of all returns by time seems to cost as little.
    let rows = format!(
        "SELECT * FROM returns WHERE {own} ORDER BY rma_identifier, merchant LIMIT {MAX_OF_TEXT}"
    );
    (format!("({rows}) AS returns"), "true".to_owned())
}

/// The condition of identifiers that begin with a parameter. The last character sorts behind all others.
fn range_of_prefix(place: &str) -> String {
    let column = "returns.rma_identifier";
    format!("{column} >= {place} AND {column} < {place} || chr(1114111)")
}
