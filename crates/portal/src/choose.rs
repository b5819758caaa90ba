//! The page on which the shopper chooses the items to return and the reasons.

mod add;
mod rows;

use actix_web::{HttpResponse, web};
use askama::Template;
use platform::http::Sequential;

pub(crate) use self::rows::MAX_UNITS;
use self::rows::{OrderRows, Source};
use crate::{
    draft::{MAX_QUERY_BYTES, ReturnDraft},
    error::PageError,
    find::form::FindForm,
    order,
    page::{Page, Step, html, redirect, rejected},
    sent::{Problem, Sent},
    visit::{Proven, Visit},
};

#[derive(Template)]
#[template(path = "choose.html")]
struct ChoosePage {
    page: Page,
    orders: Vec<OrderRows>,
    /// The code and the label of each reason.
    reasons: Vec<(String, String)>,
    problems: Vec<Problem>,
    /// The choices so far.
    hidden: Vec<(&'static str, String)>,
    form_method: &'static str,
    find: FindForm,
    is_gift: bool,
    /// This page, for the form that adds an order.
    here: String,
}

/// The result of a form that leads to the next step.
pub(crate) enum Accepted {
    /// The step can be shown.
    ReturnDraft(ReturnDraft),
    /// Another page comes first.
    Page(HttpResponse),
}

impl Accepted {
    /// The URL of the next step, so that Back and reload work. Choices that do not fit into a URL lead to
    /// the page directly.
    pub(crate) fn new(visit: &Visit, draft: ReturnDraft, path: &str, sent: &Sent) -> Self {
        if draft.is_long() {
            return Self::ReturnDraft(draft);
        }
        let scripts = if sent.has_scripts() { "&js=1" } else { "" };
        Self::Page(redirect(&format!("{}{scripts}", draft.url(visit, path))))
    }
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(
        web::resource("/{merchant}/choose")
            .route(web::get().to(show_choose))
            .route(web::post().to(show_choose)),
    )
    .configure(add::routes);
}

async fn show_choose(
    Sequential(Proven(visit), sent): Sequential<Proven, Sent>,
) -> Result<HttpResponse, PageError> {
    let page = load(&visit, &sent).await?;
    html(&page.page, &page)
}

/// The page with choices that are not possible any more.
pub(crate) async fn show_again(
    visit: &Visit,
    draft: &ReturnDraft,
) -> Result<HttpResponse, PageError> {
    let sent = Sent { draft: draft.clone(), ..Sent::default() };
    let mut page = load(visit, &sent).await?;
    page.check();
    if page.problems.is_empty() {
        return Ok(redirect(&visit.url("/choose")));
    }
    rejected(&page.page, &page)
}

/// The page with a text about the orders of the return.
pub(crate) async fn show_mismatch(
    visit: &Visit,
    draft: &ReturnDraft,
) -> Result<HttpResponse, PageError> {
    let sent = Sent { draft: draft.clone(), ..Sent::default() };
    let mut page = load(visit, &sent).await?;
    let text = page.page.t("choose-other-shopper");
    page.problems.push(Problem { id: "items".to_owned(), text });
    rejected(&page.page, &page)
}

/// Reads the form of this page, which leads to the next step.
pub(crate) async fn accept(visit: &Visit, sent: &Sent) -> Result<Accepted, PageError> {
    let mut page = load(visit, sent).await?;
    page.check();
    if !page.problems.is_empty() {
        return Ok(Accepted::Page(rejected(&page.page, &page)?));
    }
    let choices = page.orders.iter().flat_map(|order| order.choices(&sent.draft)).collect();
    let draft = ReturnDraft { choices, method: sent.draft.method.clone() };
    Ok(Accepted::new(visit, draft, "/resolution", sent))
}

async fn load(visit: &Visit, sent: &Sent) -> Result<ChoosePage, PageError> {
    let page = Page::new(visit, Some(Step::Choose));
    let proofs = visit.proofs();
    let is_gift = proofs.iter().any(|proof| proof.is_gift);
    let orders: Vec<_> = proofs.iter().map(|proof| proof.order.as_str()).collect();
    let orders = order::load_all(visit, &orders).await?;
    let source = if sent.fields.has("choose") {
        Source::Typed(&sent.fields)
    } else {
        Source::Chosen(&sent.draft)
    };
    let mut first = 0;
    let mut rows = |order: &order::Order| {
        let rows = OrderRows::new(&page, order, source, first, is_gift);
        first += rows.rows.len();
        rows
    };
    let orders: Vec<_> = orders.iter().map(&mut rows).collect();
    let label = |reason: &crate::merchant::Reason| {
        (reason.code.clone(), reason.label(visit.language).to_owned())
    };
    Ok(ChoosePage {
        reasons: visit.portal.reasons.iter().map(label).collect(),
        problems: Vec::new(),
        hidden: sent.draft.fields(),
        form_method: form_method(&orders, &sent.draft),
        find: FindForm::new(&visit.portal, ""),
        is_gift,
        here: visit.target.clone(),
        orders,
        page,
    })
}

impl ChoosePage {
    fn check(&mut self) {
        for order in &mut self.orders {
            self.problems.extend(order.check(&self.page));
        }
        let has_problems = !self.problems.is_empty();
        self.problems.extend(rows::check_all(&self.page, &self.orders, has_problems));
    }
}

/// A form with many rows does not fit into a URL.
fn form_method(orders: &[OrderRows], draft: &ReturnDraft) -> &'static str {
    let rows = orders.iter().flat_map(|order| &order.rows);
    let bytes: usize = rows.map(|row| row.key.len() * 2 + 60).sum();
    if bytes + draft.query().len() > MAX_QUERY_BYTES { "post" } else { "get" }
}
