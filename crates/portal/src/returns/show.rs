//! The page of one return: the confirmation, the way to send it back, and the tracking.

use actix_web::{HttpResponse, get, web};
use askama::Template;
use chrono::NaiveDate;
use futures_util::future::try_join;
use pages::qr;
use serde::Deserialize;

use super::{
    cancel::late_reason,
    items::{Amounts, Item, items},
    labels::{LabelCode, Labels},
    model::Return,
    return_url,
    timeline::{Entry, EntryStep, load_timeline},
    tracking::{self, State, Step},
};
use crate::{
    error::PageError,
    page::{Page, html},
    visit::Proven,
};

#[derive(Deserialize)]
struct ReturnQuery {
    /// Not empty right after the confirmation.
    #[serde(default)]
    new: String,
}

#[derive(Template)]
#[template(path = "return.html")]
struct ReturnPage {
    page: Page,
    rma: Return,
    is_new: bool,
    /// The path of this page.
    url: String,
    /// Whether the shopper still has something to send back.
    needs_drop_off: bool,
    /// The QR code of the RMA number, if there is something to send back and the carrier has no code of its own.
    code: Option<String>,
    /// A service of an earlier version names none.
    drop_off_day: Option<NaiveDate>,
    /// The last day on which the shop decides about the return.
    review_day: Option<NaiveDate>,
    /// Why the shop declined the return.
    decline_reason: Option<String>,
    labels: Labels,
    steps: Vec<Step>,
    problems: Vec<&'static str>,
    items: Vec<Item>,
    amounts: Option<Amounts>,
}

#[get("/{merchant}/returns/{rma}")]
pub(super) async fn show_return(
    Proven(visit): Proven,
    path: web::Path<(String, String)>,
    query: web::Query<ReturnQuery>,
) -> Result<HttpResponse, PageError> {
    let (_, name) = path.into_inner();
    let (rma, timeline) =
        try_join(Return::load(&visit, &name), load_timeline(&visit, &name)).await?;
    let url = return_url(&visit, &rma.rma_identifier, "");
    let page = Page::new(&visit, None);
    let template = ReturnPage::new(page, rma, &timeline, url, !query.new.is_empty());
    html(&template.page, &template)
}

impl ReturnPage {
    fn new(page: Page, rma: Return, timeline: &[Entry], url: String, is_new: bool) -> Self {
        // The warehouse can receive a unit that the carrier never reported.
        let is_received = timeline.iter().any(|entry| entry.step == EntryStep::Received);
        let needs_drop_off = rma.needs_drop_off() && !is_received;
        let labels = Labels::of(&rma, needs_drop_off);
        let has_code = needs_drop_off && labels.codes.is_empty();
        let title = page.t1("return-code-title", "rma", &rma.rma_identifier);
        Self {
            // A return can be canceled before the page is loaded again.
            is_new: is_new && rma.is_open(),
            url,
            needs_drop_off,
            code: has_code.then(|| qr::svg(&rma.rma_identifier, &title)).flatten(),
            drop_off_day: rma.drop_off_day(&page.portal),
            review_day: rma.review_day(&page.portal),
            decline_reason: rma.decline_reason(&page),
            labels,
            steps: tracking::steps(&rma, timeline),
            problems: tracking::problems(&rma),
            items: items(&rma),
            amounts: Amounts::of(&rma),
            page,
            rma,
        }
    }

    /// The id of the reason why the return cannot be canceled.
    fn late_reason(&self) -> &'static str {
        late_reason(&self.rma)
    }

    /// The QR code that the carrier scans. A text that is too long for a code has none.
    fn carrier_code(&self, code: &LabelCode) -> String {
        qr::svg(&code.text, &self.page.t("return-label-code-title")).unwrap_or_default()
    }

    /// The ids of the instructions, in the order in which they are followed.
    fn instructions(&self) -> &'static [&'static str] {
        match self.rma.return_method.as_str() {
            "express-returns" => {
                &["return-express-bring", "return-express-show", "return-express-receipt"]
            }
            _ => &["return-mail-pack", "return-mail-label", "return-mail-receipt"],
        }
    }

    /// The time of a step in words.
    fn time(&self, step: &Step) -> String {
        let at = step.at.as_ref().map(|at| self.page.date(at));
        match (step.state, at) {
            (State::Done, Some(date)) => date,
            (State::Done, None) => self.page.t("track-done"),
            (State::Partly, Some(date)) => self.page.t1("track-partly-since", "date", date),
            (State::Partly, None) => self.page.t("track-partly"),
            (State::Open, _) => self.page.t("track-open"),
        }
    }

    fn money(&self, cents: &i64) -> String {
        self.page.money(cents, &self.rma.currency)
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use serde_json::json;

    use super::super::model::tests::{reviewed, rma};
    use super::*;

    fn rendered(rma: Return, is_new: bool) -> String {
        let page = Page::without_merchant(&TestRequest::get().to_http_request());
        ReturnPage::new(page, rma, &[], "/acme/returns/RMA-1".to_owned(), is_new).render().unwrap()
    }

    #[test]
    fn a_new_return_shows_its_code_and_waits_for_the_label() {
        let page = rendered(rma(&[json!({ "title": "<b>Tee" })]), true);
        assert_eq!((page.matches("<h1").count(), page.matches("aria-current=").count()), (1, 1));
        for part in ["<svg", "data-live=\"5\"", "drop-off.ics", ">Check again</a>", "/cancel\""] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("<b>Tee"), "{page}");
        // The script says so when the page cannot be refreshed.
        assert!(page.contains("data-stale=\"Not refreshed since {time} UTC.\""), "{page}");
    }

    #[test]
    fn the_code_of_the_carrier_takes_the_place_of_the_return_number() {
        let mut sent = rma(&[json!({ "tracking_number": "1Z" })]);
        sent.labels = serde_json::from_value(json!([{
            "label_request_id": "a", "state": "bought", "tracking_number": "1Z",
            "document": "pdf", "qr_code": "HRM|4711|<b>",
        }]))
        .unwrap();
        let page = rendered(sent, false);
        for part in [
            "aria-label=\"The carrier’s QR code\"",
            "href=\"/acme/returns/RMA-1/labels/a\" download",
            "Save the label (PDF)",
            "Tracking number 1Z",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert_eq!(page.matches("<svg").count(), 1);
        assert!(!page.contains("QR code of the return number"), "{page}");
    }

    #[test]
    fn a_return_that_was_closed_meanwhile_is_not_confirmed() {
        use domain::returns::RmaStatus;
        let mut new = rma(&[json!({})]);
        assert!(rendered(new.clone(), true).contains("Your return is confirmed"));
        for closed in [RmaStatus::Canceled, RmaStatus::Refunded] {
            new.status = closed;
            let page = rendered(new.clone(), true);
            assert!(page.contains("<h1>Return RMA-1") && !page.contains("is confirmed"), "{page}");
        }
    }

    #[test]
    fn a_return_in_review_says_until_when_the_shop_decides() {
        let page = rendered(reviewed("REQUESTED", &json!({})), true);
        for part in ["Your request is sent", "19 November 2026", "data-live=\"5\"", "/cancel\""] {
            assert!(page.contains(part), "{part} in {page}");
        }
        for part in ["Your return is confirmed", "<svg", "drop-off.ics", "prepares your new order"]
        {
            assert!(!page.contains(part), "{part} in {page}");
        }
    }

    #[test]
    fn a_declined_return_says_why() {
        let note = "Worn <b>items</b> cannot be returned.";
        let mut declined = reviewed("DECLINED", &json!({ "decision": "decline", "note": note }));
        declined.is_cancelable = false;
        let page = rendered(declined, true);
        assert!(page.contains("The shop has declined this return."), "{page}");
        assert!(page.contains("Worn &#60;b&#62;items&#60;/b&#62; cannot be returned."), "{page}");
        for part in ["Your request is sent", "data-live", "<svg", "/cancel\""] {
            assert!(!page.contains(part), "{part} in {page}");
        }
    }

    #[test]
    fn a_return_with_an_exchange_says_why_it_cannot_be_canceled() {
        let mut exchanged =
            rma(&[json!({ "resolution": "exchange", "exchange_status": "placed" })]);
        exchanged.is_cancelable = false;
        let page = rendered(exchanged, false);
        assert!(page.contains("This return cannot be canceled any more."), "{page}");
        assert!(page.contains("The shop already prepares your new order"), "{page}");
        assert!(!rendered(rma(&[json!({})]), false).contains("cannot be canceled"));
    }

    #[test]
    fn amounts_add_up() {
        let page = rendered(rma(&[json!({})]), false);
        assert!(page.contains("<dd>-€5.00</dd>") && page.contains("€16.65"), "{page}");
    }

    #[test]
    fn a_gift_that_was_canceled_shows_neither_amounts_nor_a_code() {
        let mut gift = rma(&[json!({
            "resolution": "gift_card", "refund_financials": null,
            "canceled_at": "2026-11-16T10:00:00Z",
        })]);
        (gift.return_shipping_cost_cents, gift.is_cancelable) = (None, false);
        gift.status = domain::returns::RmaStatus::Canceled;
        let page = rendered(gift, false);
        for part in ["€", "<svg", "data-live", "drop-off.ics", "/cancel"] {
            assert!(!page.contains(part), "{part} in {page}");
        }
    }

    /// Pages choose these texts by the state of a return.
    #[test]
    fn every_text_of_a_state_exists() {
        let page = Page::without_merchant(&TestRequest::get().to_http_request());
        let sources = [
            include_str!("model.rs"),
            include_str!("tracking.rs"),
            include_str!("cancel.rs"),
            include_str!("labels.rs"),
            include_str!("show.rs"),
            include_str!("../withdraw/confirm.rs"),
            include_str!("../withdraw/acknowledgement.rs"),
        ];
        let mut count = 0;
        for start in
            ["returns-state-", "track-", "cancel-late-", "return-", "withdraw-", "withdrawn-"]
        {
            for rest in sources.concat().split(&format!("\"{start}")).skip(1) {
                let id = format!("{start}{}", rest.split('"').next().unwrap());
                assert!(id == start || page.t(&id) != id, "{id} is not in en.ftl");
                count += 1;
            }
        }
        assert!(count > 40, "{count}");
    }
}
