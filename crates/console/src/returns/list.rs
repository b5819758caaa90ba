//! The list of returns, with a tab for each step that returns need next.

use actix_web::{get, web};
use api::returns::{ListedReturn, ReturnCounts};
use askama::Template;
use domain::returns::{ResolutionKind, ReturnMethod, WorkList};
use futures_util::future::join;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    text::grouped,
};

use super::{
    columns::{COLUMNS, ReturnColumn, chosen, with_columns},
    return_url,
};
use crate::{
    Page, PageResult, Section, SignedIn,
    filter::{Condition, Filter, Kind, Options, or_any},
    html,
    list::{List, ListView},
    markup::{link, text},
    record_list::{Listed, load, merchant_filter, query_string, words},
    table::Table,
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_returns);
}

const TIME: Kind = Kind::Time("Write a date and a time, for example 2026-11-16T08:00.");
const AMOUNT: Kind = Kind::Amount("Write an amount, for example 100 or 99.50.");

const CONDITIONS: &[Condition] = &[
    Condition::MERCHANT,
    Condition::new("list", "List", Kind::Hidden).not_sent(),
    Condition::new("columns", "Columns", Kind::Hidden).not_sent(),
    Condition::choice("message", "Merchant knows", message_states).sent_as("message_state"),
    Condition::choice("method", "Method", || {
        or_any(ReturnMethod::ALL.iter().map(|it| (it.as_str(), words(it))))
    })
    .sent_as("return_method"),
    Condition::choice("resolution", "Resolution", || {
        or_any(ResolutionKind::ALL.iter().map(|it| (it.as_str(), words(it))))
    }),
    Condition::new("reason", "Reason", Kind::Text("TOO_SMALL")).sent_as("return_reason"),
    Condition::text("sku", "SKU"),
    Condition::new("from", "Created from", TIME),
    Condition::new("to", "Created before", TIME),
    Condition::new("min", "Paid at least", AMOUNT).sent_as("min_amount_cents"),
    Condition::new("max", "Paid at most", AMOUNT).sent_as("max_amount_cents"),
];

/// The states of the last message.
fn message_states() -> Options {
    let states = [("delivered", "yes"), ("pending", "not yet"), ("dead", "no, dead letter")];
    or_any(states.map(|(state, words)| (state, words.to_owned())))
}

pub(super) static LIST: List = List {
    has_chips: true,
    sorted_nouns: Some(("return", "returns")),
    ..List::new(
        Section::Returns,
        ("/returns", "Returns"),
        (Service::RmaEngine, "v1/returns"),
        CONDITIONS,
        [
            "There is no return yet. One appears here when a shopper starts it in the portal, or a client with \
             the API.",
            "No return matches this filter.",
        ],
    )
};

/// The count of a tab.
type Count = fn(&ReturnCounts) -> i64;

/// The tabs of lists: value in the URL, name and count.
const TABS: [(&str, &str, Option<Count>); 7] = [
    ("", "All", None),
    ("to_review", "To review", Some(|counts| counts.to_review)),
    ("not_sent", "Not sent", Some(|counts| counts.not_sent)),
    ("on_its_way", "On its way", Some(|counts| counts.on_its_way)),
    ("to_refund", "To refund", Some(|counts| counts.to_refund)),
    (OVERDUE, "Overdue", Some(|counts| counts.overdue)),
    ("done", "Done", None),
];

const OVERDUE: &str = "overdue";

struct Tab {
    name: &'static str,
    url: String,
    /// Nothing without a response of the service.
    count: Option<String>,
    is_current: bool,
}

/// A check box for a column.
struct Choice {
    column: &'static ReturnColumn,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "returns.html")]
struct ReturnsPage {
    page: Page,
    view: ListView,
    table: Table,
    tabs: Vec<Tab>,
    columns: Vec<Choice>,
    /// Names and URLs of the files with all returns of the filter.
    exports: Vec<(&'static str, String)>,
    /// The fields that the form of columns keeps.
    kept: Vec<(&'static str, String)>,
}

#[get("/returns")]
async fn list_returns(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let query = with_columns(&query);
    let sent = request_of(query.text("list"));
    let merchant = merchant_filter(&signed_in, query.text("merchant"))?;
    let (loaded, counts) = join(
        LIST.load::<ListedReturn>(&signed_in, &query, &sent),
        load_counts(&signed_in, merchant),
    )
    .await;
    let (view, returns) = loaded?;
    let page = signed_in.page(LIST.section);
    let columns = chosen(view.filter.value("columns"));
    let is_chosen = |name: &str| columns.iter().any(|column| column.name == name);
    let choice =
        |column: &'static ReturnColumn| Choice { column, is_chosen: is_chosen(column.name) };
    let kept = view.filter.url_pairs().into_iter();
    let kept = kept.filter(|(name, value)| *name != "columns" && !value.is_empty());
    html(&ReturnsPage {
        tabs: tabs(&view.filter, counts.ok().as_ref()),
        columns: COLUMNS.iter().map(choice).collect(),
        exports: exports(&view.filter),
        kept: kept.map(|(name, value)| (name, value.to_owned())).collect(),
        table: table(&returns, &columns, &page),
        page,
        view,
    })
}

async fn load_counts(
    signed_in: &SignedIn,
    merchant: Option<&str>,
) -> Result<ReturnCounts, ApiError> {
    load(signed_in, Service::RmaEngine, merchant, "v1/return_counts", &[]).await
}

/// The conditions of a tab in the request.
pub(super) fn request_of(list: &str) -> Vec<(&'static str, &'static str)> {
    let known = list.parse::<WorkList>().map(|list| ("work_list", list.as_str()));
    let overdue = (list == OVERDUE).then_some((OVERDUE, "true"));
    known.ok().or(overdue).into_iter().collect()
}

/// Names, values in the request, and media types of the formats.
pub(super) const FORMATS: [(&str, &str, &str); 2] =
    [("CSV", "csv", "text/csv; charset=utf-8"), ("NDJSON", "ndjson", "application/x-ndjson")];

/// Names and URLs of the files with all returns of a filter.
fn exports(filter: &Filter) -> Vec<(&'static str, String)> {
    let url = |format: &str| {
        let mut pairs = filter.url_pairs();
        pairs.retain(|(name, _)| *name != "columns");
        pairs.push(("format", format));
        format!("/returns/export?{}", query_string(&pairs))
    };
    FORMATS.map(|(name, format, _)| (name, url(format))).into()
}

/// The tabs, each with the same filter. Discrepancies have a list of their own.
fn tabs(filter: &Filter, counts: Option<&ReturnCounts>) -> Vec<Tab> {
    let current = filter.value("list");
    let text_of = |count: Count| {
        counts.map(count).map(|number| match number {
            ReturnCounts::MAX.. => format!("{}+", grouped(ReturnCounts::MAX)),
            number => grouped(number),
        })
    };
    let tab = |(list, name, count): (&str, &'static str, Option<Count>)| {
        let mut filter = filter.clone();
        filter.set("list", list);
        Tab { name, url: filter.url(), count: count.and_then(text_of), is_current: list == current }
    };
    let mut tabs: Vec<_> = TABS.into_iter().map(tab).collect();
    let merchant = filter.value("merchant");
    let query = query_string(&[("merchant", merchant), ("state", "open")]);
    let discrepancies = Tab {
        name: "Discrepancies",
        url: format!("/discrepancies?{query}"),
        count: text_of(|counts| counts.discrepancies),
        is_current: false,
    };
    tabs.insert(tabs.len() - 1, discrepancies);
    tabs
}

fn table(returns: &[ListedReturn], columns: &[&ReturnColumn], page: &Page) -> Table {
    let mut table = Table::of(LIST.title, returns)
        .head("Return", |it| link(return_url(&it.details.rma), &it.details.rma.rma_identifier))
        .cell_if(page.person.is_staff(), "Merchant", |it| text(&it.details.rma.merchant));
    for column in columns {
        table = table.classed(column.class, column.label, |it| (column.cell)(it, page));
    }
    table.table()
}

#[cfg(test)]
mod tests {
    use actix_web::{HttpRequest, HttpResponse, http::StatusCode};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::fixtures;

    fn listed(list: &str, state: &str) -> Value {
        let amounts = json!({ "product_amount_cents": 2600, "discount_amount_cents": 0,
                              "tax_amount_cents": 94 });
        let unit = json!({ "order_identifier": "A/1", "sku": "BOOT <M>", "amounts": amounts });
        let mut rma = json!(fixtures::rma("CREATED", &[unit]));
        rma["currency"] = json!("USD");
        rma["work_list"] = json!(list);
        rma["changed_at"] = json!("2026-11-16T08:00:00Z");
        rma["last_message"] = json!({ "delivery": Uuid::nil(), "state": state });
        rma
    }

    /// A service that has one return on each list, whose reason is the query of the request.
    fn engine(services: &mut web::ServiceConfig) {
        let list = async |request: HttpRequest| {
            let mut listed = listed("to_refund", "dead");
            listed["units"][0]["return_reason"] = json!(request.query_string());
            HttpResponse::Ok().json(json!({ "returns": [listed], "next": "abc" }))
        };
        let count = async || {
            let counts = json!({ "to_review": 3, "not_sent": 41, "on_its_way": 1000, "to_refund": 1,
                                 "done": 7, "overdue": 0, "discrepancies": 2 });
            HttpResponse::Ok().json(counts)
        };
        services
            .route("/v1/returns", web::get().to(list))
            .route("/v1/return_counts", web::get().to(count));
    }

    /// A service that finds nothing in the first pages of a filter.
    fn slow_engine(services: &mut web::ServiceConfig) {
        let list = async |query: web::Query<Fields>| {
            let page: usize = query.text("after").parse().unwrap_or_default();
            let found = if page == 3 { vec![listed("done", "delivered")] } else { Vec::new() };
            HttpResponse::Ok().json(json!({ "returns": found, "next": (page + 1).to_string() }))
        };
        services.route("/v1/returns", web::get().to(list));
    }

    async fn show(engine: fn(&mut web::ServiceConfig), query: &str) -> String {
        let app = fixtures::app_with_services(engine);
        let (status, page) = fixtures::get_page(app, routes, &format!("/returns?{query}")).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page
    }

    #[actix_web::test]
    async fn a_row_says_what_comes_next_and_what_the_merchant_knows() {
        let page = show(engine, "").await;
        for part in [
            r#"href="/merchants/acme/returns/RMA-1""#,
            r#"href="/merchants/acme/orders/A%2F1""#,
            r#"<span class="badge warn">to refund</span><br><span class="small muted nowrap">26.94 USD"#,
            r#"<span class="badge bad">no</span> <a href="/deliveries/rma-engine/0000"#,
            r#">To review <span class="muted">3</span></a>"#,
            r#">On its way <span class="muted">1,000+</span></a>"#,
            r#"<a href="/discrepancies?state=open">Discrepancies <span class="muted">2</span></a>"#,
            r#"<a href="/returns" aria-current="page">All</a>"#,
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("BOOT"), "{page}");
    }

    #[actix_web::test]
    async fn the_filter_and_the_tab_are_conditions_of_the_request() {
        let query = "list=to_refund&method=mail-back&min=99.5&column=sku&column=reason";
        let page = show(engine, query).await;
        let sent = "return_method=mail-back&amp;min_amount_cents=9950&amp;limit=50&amp;work_list=to_refund";
        assert!(page.replace("&#38;", "&amp;").contains(sent), "{page}");
        assert!(page.contains("BOOT &#60;M&#62;") && !page.contains("Merchant knows</th>"));
        let kept = "/returns?list=overdue&#38;columns=sku%2Creason&#38;method=mail-back";
        assert!(page.contains(kept), "{page}");
        assert!(show(engine, "list=overdue").await.contains("overdue=true"));
    }

    #[actix_web::test]
    async fn empty_pages_of_a_rare_filter_are_passed_over() {
        assert!(show(slow_engine, "sku=RARE").await.contains("RMA-1"));
        let page = show(slow_engine, "sku=RARE&after=4").await;
        assert!(page.contains("Nothing matches in the part that was searched"), "{page}");
        assert!(page.contains("after=9"), "{page}");
    }

    #[test]
    fn a_tab_without_a_count_is_shown() {
        let operator = fixtures::signed_in("operator", None, &json!({}));
        let filter = Filter::read(&operator, "/returns", CONDITIONS, &Fields::default());
        let tabs = tabs(&filter, None);
        assert!(tabs.iter().all(|tab| tab.count.is_none()));
        assert_eq!(tabs.len(), 8);
    }
}
