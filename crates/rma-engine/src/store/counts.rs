//! Counts of returns for work lists. A count ends at a limit, so that it reads a limited number of entries of an index.

use api::returns::ReturnCounts;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::returns::WorkList;
use platform::database::{DatabaseError, Each, IndexRange, prepared, sql};

use super::ALL_MERCHANTS;

platform::rows! {
    struct CountsRow {
        to_review: i64,
        not_sent: i64,
        on_its_way: i64,
        to_refund: i64,
        done: i64,
        overdue: i64,
        discrepancies: i64,
    }
}

/// Counts the returns of each work list, those that are overdue, and the open discrepancies, of one merchant or of all.
pub(crate) async fn count(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
) -> Result<ReturnCounts, DatabaseError> {
    let is_of_all = merchant.is_none();
    let created: &[&str] = &["created_at", "rma_identifier"];
    let lists = WorkList::ALL.iter().map(|list| {
        let list = list.as_str();
        let rows = ("return_work_lists", "true", created);
        format!("{} AS {list}", counted(is_of_all, rows, Some(("work_list", list))))
    });
    let overdue = counted(is_of_all, ("returns", "overdue", created), None);
    let open = ("discrepancies", "true", &["position"][..]);
    let open = counted(is_of_all, open, Some(("state", "open")));
    let others = [format!("{overdue} AS overdue"), format!("{open} AS discrepancies")];
    let columns: Vec<_> = lists.chain(others).collect();
    let query =
        sql(format!("SELECT {}", columns.join(", ")), Each(merchant.map(MerchantId::as_str)));
    let row: CountsRow = prepared(query).get_result(conn).await?;
    let CountsRow { to_review, not_sent, on_its_way, to_refund, done, overdue, discrepancies } =
        row;
    Ok(ReturnCounts { to_review, not_sent, on_its_way, to_refund, done, overdue, discrepancies })
}

/// A query of the number of rows of a table with a condition that an index has, and a column with a value.
fn counted(
    is_of_all: bool,
    (table, condition, sorted): (&str, &str, &[&str]),
    value: Option<(&str, &str)>,
) -> String {
    let merchant = (!is_of_all).then(|| ("merchant", "$1".to_owned()));
    let value = value.map(|(column, value)| (column, format!("'{value}'")));
    let fixed: Vec<_> = merchant.into_iter().chain(value).collect();
    let range = IndexRange { fixed: &fixed, sorted };
    format!(
        "(SELECT count(*) FROM ( \
             SELECT FROM {table} WHERE {} AND {condition} AND {} ORDER BY {} LIMIT {} \
         ) AS counted)",
        if is_of_all { ALL_MERCHANTS } else { "true" },
        range.condition(None, None),
        range.order("ASC"),
        ReturnCounts::MAX
    )
}
