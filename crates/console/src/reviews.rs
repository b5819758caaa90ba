//! The work list of returns that wait for review by the merchant.

use actix_web::{get, web};
use domain::returns::{Rma, RmaStatus};
use pages::{api::Service, form::Fields};

use crate::{
    Page, PageResult, Section, SignedIn,
    list::List,
    markup::{Markup, button, text},
    returns::{CONDITIONS, return_table, return_url},
    table::Table,
};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_reviews);
}

static LIST: List = List {
    about: "Returns that a rule of the merchant sent to review. Their units cannot be returned a second time, and nothing \
            else happens until a person approves or declines them. If nobody decides in time, the rule decides.",
    sorted_nouns: Some(("return", "returns")),
    ..List::new(
        Section::Reviews,
        ("/reviews", "Returns to review"),
        (Service::RmaEngine, "v1/returns"),
        CONDITIONS,
        ["No return waits for review.", "No return in review matches this filter."],
    )
};

#[get("/reviews")]
async fn list_reviews(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let in_review = [("status", RmaStatus::Requested.as_str())];
    let (view, returns) = LIST.load::<Rma>(&signed_in, &query, &in_review).await?;
    let page = signed_in.page(LIST.section);
    let table = review_table(&returns, &page);
    view.show(page, table)
}

fn review_table(returns: &[Rma], page: &Page) -> Table {
    return_table(LIST.title, returns, page, |it| it.active_units().collect())
        .wrapped("The shopper says", |it| {
            let mut comments: Vec<_> =
                it.active_units().filter_map(|unit| unit.comment.as_ref()).collect();
            // The portal has one comment for all units of a line.
            comments.dedup();
            let quoted = comments.iter().map(|comment| text(format!("“{comment}”")));
            quoted.reduce(Markup::below).unwrap_or_default()
        })
        .cell("Rule", |it| text(it.review.as_ref().map_or("", |review| review.rule.as_str())))
        .cell("Since", |it| page.time(it.created_at))
        .cell("Decide until", |it| page.time_or(it.review.as_ref().map(|it| it.due_at), "–"))
        .cell_if(page.person.may_manage(), "Actions", |it| {
            let about = format!(" return {}", it.rma_identifier);
            button(format!("{}/review", return_url(it)), "Review …", about)
        })
        .table()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn a_row_has_what_a_decision_needs() {
        let unit = |number: i32, comment: &str| json!({ "unit": number, "order_identifier": "A/1", "comment": comment });
        let mut rma = fixtures::rma(
            "REQUESTED",
            &[unit(1, "Too <tight>"), unit(2, "Scratched"), unit(3, "Scratched"), json!({})],
        );
        let review = json!({
            "rule": "often", "within_days": 3, "due_at": "2026-11-20T00:00:00Z", "then": "approve",
        });
        rma.review = Some(serde_json::from_value(review).unwrap());
        let table = |role: &str| {
            let signed_in = fixtures::signed_in(role, None, &json!({}));
            review_table(&[rma.clone()], &fixtures::page(&signed_in)).to_string()
        };
        let shown = table("operator");
        for part in [
            "“Too &#60;tight&#62;”<br>“Scratched”<",
            r#"href="/merchants/acme/orders/A%2F1""#,
            r#"href="/merchants/acme/returns/RMA-1/review""#,
            ">often</td>",
            "2026-11-20",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        assert!(!table("support").contains("Review …"));
    }
}
