//! The second step of a withdrawal: the shopper sees the person, the units, the method and every amount, and
//! confirms.
//!
//! The form holds the sealed request, the quote that the shopper saw and an idempotency key, like that of
//! the check page. A form with other units or another method leads to the page once more, with their amounts.

use actix_web::{HttpResponse, get, http::StatusCode, post, web};
use askama::Template;
use domain::returns::Withdrawal;
use pages::{
    api::{ApiError, ErrorBody},
    form::Fields,
};
use uuid::Uuid;

use super::{
    WithdrawQuery, check_offered, digest,
    units::{self, WithdrawLine, is_as_shown},
    url,
};
use crate::{
    App,
    check::{Changed, Conflict, Request, amounts},
    draft::ReturnDraft,
    error::PageError,
    method::{self, MethodOption},
    order,
    page::{Page, html, html_with, redirect},
    returns::return_url,
    sent::{Form, Problem},
    visit::Visit,
};

#[derive(Template)]
#[template(path = "withdraw_confirm.html")]
struct ConfirmPage {
    page: Page,
    order: String,
    person: Withdrawal,
    lines: Vec<WithdrawLine>,
    /// Whether the order has more units than the page shows.
    is_truncated: bool,
    methods: Vec<MethodOption>,
    problems: Vec<Problem>,
    changed: Changed,
    /// A remark above the form.
    note: Option<String>,
    /// The sealed request.
    request: String,
    /// Absent if the withdrawal is not possible with these units and this method.
    terms: Option<Terms>,
    /// The path of this page.
    action: String,
    /// The path of the first step, to correct the data.
    back: String,
}

/// The terms that the shopper confirms.
struct Terms {
    quote: String,
    /// Label and amount; the last is the sum.
    amounts: Vec<(String, String)>,
    /// Makes a form that is sent twice one withdrawal.
    key: String,
}

/// The page of a confirmation with an unknown result.
#[derive(Template)]
#[template(path = "withdraw_again.html")]
struct AgainPage {
    page: Page,
    /// The form as it was sent.
    fields: Vec<(String, String)>,
    action: String,
}

/// The page of a withdrawal that was confirmed, for Back.
#[derive(Template)]
#[template(path = "withdraw_received.html")]
struct ReceivedPage {
    page: Page,
    /// The path of the acknowledgement.
    url: String,
    /// The path of the first step, to withdraw from other items.
    more: String,
}

/// Why the page is shown, and the form that it keeps.
#[derive(Default)]
struct Cause<'a> {
    sent: Option<&'a Fields>,
    /// The id of the remark.
    note: Option<&'static str>,
    /// The response to a confirmation that was not possible.
    refusal: Option<&'a ErrorBody>,
}

#[get("/{merchant}/withdraw/confirm")]
pub(super) async fn show_confirm(
    app: web::Data<App>,
    visit: Visit,
    query: web::Query<WithdrawQuery>,
) -> Result<HttpResponse, PageError> {
    check_offered(&visit)?;
    let order = &query.order;
    let is_proven = visit.proofs().iter().any(|proof| proof.order == *order && !proof.is_gift);
    if let Some(person) = visit.shopper.withdrawing(order).filter(|_| is_proven) {
        return show(&app, &visit, order, person.clone(), Cause::default()).await;
    }
    match visit.shopper.confirmed(digest(order)) {
        Some(rma) => show_received(&visit, order, rma),
        // Without the data of the first step, the shopper starts there.
        None => Ok(redirect(&url(&visit, "/withdraw", order))),
    }
}

#[post("/{merchant}/withdraw/confirm")]
pub(super) async fn confirm(
    app: web::Data<App>,
    mut visit: Visit,
    sent: Form<Fields>,
) -> Result<HttpResponse, PageError> {
    let sent = &sent.0;
    check_offered(&visit)?;
    let order = sent.text("order");
    let quote = sent.text("quote");
    let request = Request::open(&app, &visit, sent.text("request"))?;
    let person = request.withdrawal.clone().ok_or(PageError::BadForm)?;
    let is_update = sent.is_checked("update");
    if is_update || quote.is_empty() || !is_as_shown(sent, &request) {
        let note = (!is_update).then_some("withdraw-chosen");
        let cause = Cause { sent: Some(sent), note, refusal: None };
        return show(&app, &visit, order, person, cause).await;
    }
    let key = Uuid::parse_str(sent.text("key")).map_err(|_not_ours| PageError::BadForm)?;
    match request.send(&visit, quote, "", key).await {
        Ok(created) => {
            // The return has the person now.
            visit.shopper.end_withdrawal(order);
            visit.shopper.remember(digest(order), &created.rma_identifier);
            let next = return_url(&visit, &created.rma_identifier, "/withdrawal");
            visit.with_cookie(&app, redirect(&next))
        }
        Err(ApiError::Unavailable { .. }) => show_unknown(&visit, order, sent),
        Err(ApiError::Conflict(refusal) | ApiError::Invalid(refusal)) => {
            tracing::info!(message = refusal.message, "a withdrawal was not possible");
            let cause = Cause { sent: Some(sent), note: None, refusal: Some(&refusal) };
            show(&app, &visit, order, person, cause).await
        }
        Err(error) => Err(error.into()),
    }
}

fn show_received(visit: &Visit, order: &str, rma: &str) -> Result<HttpResponse, PageError> {
    let template = ReceivedPage {
        page: Page::new(visit, None),
        url: return_url(visit, rma, "/withdrawal"),
        more: url(visit, "/withdraw", order),
    };
    html(&template.page, &template)
}

/// Asks the shopper to send the same form again, because the withdrawal may have been saved.
fn show_unknown(visit: &Visit, order: &str, sent: &Fields) -> Result<HttpResponse, PageError> {
    let action = url(visit, "/withdraw/confirm", order);
    let template =
        AgainPage { page: Page::new(visit, None), fields: sent.pairs().to_vec(), action };
    html_with(StatusCode::SERVICE_UNAVAILABLE, &template.page, &template)
}

/// Shows the page with the current units and amounts.
async fn show(
    app: &App,
    visit: &Visit,
    order: &str,
    person: Withdrawal,
    cause: Cause<'_>,
) -> Result<HttpResponse, PageError> {
    let found = order::load(visit, order).await?;
    // The methods, terms, problems and changes are added below.
    let mut template = ConfirmPage {
        page: Page::new(visit, None),
        is_truncated: found.is_truncated,
        order: found.identifier,
        person,
        lines: units::lines(found.lines, cause.sent),
        methods: Vec::new(),
        problems: Vec::new(),
        changed: Changed::default(),
        note: None,
        request: String::new(),
        terms: None,
        action: url(visit, "/withdraw/confirm", order),
        back: url(visit, "/withdraw", order),
    };
    let chosen = cause.sent.map(|sent| sent.text("method")).filter(|method| !method.is_empty());
    if cause.refusal.is_some() {
        template.lines.iter_mut().for_each(WithdrawLine::reduce_to_free_units);
    }
    template.add_methods_and_terms(app, visit, chosen).await?;
    template.add_changes(&cause);
    html_with(template.status(&cause), &template.page, &template)
}

impl ConfirmPage {
    /// Adds the methods for the chosen units, and the terms if they can be confirmed.
    async fn add_methods_and_terms(
        &mut self,
        app: &App,
        visit: &Visit,
        chosen: Option<&str>,
    ) -> Result<(), PageError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        self.problems = units::check(&self.page, &mut self.lines);
        let items: Vec<_> = self.lines.iter().filter_map(WithdrawLine::item).collect();
        if !items.is_empty() {
            self.methods = method::methods(&self.page, &items, chosen, false);
        }
        let is_open = self.methods.iter().any(|method| method.refusals.is_empty());
        let method = self.methods.iter().find(|method| method.is_chosen);
        let method = method.map(|method| method.value.clone());
        if is_open && method.is_none() {
            let id = "methods".to_owned();
            let text = self.page.t("method-missing");
            self.problems.push(Problem { id, text });
        }
        let choices = items.iter().map(|item| item.choice.clone()).collect();
        let draft = ReturnDraft { choices, method: method.clone() };
        let request = Request::new(visit, &draft, &items, false).await?;
        let mut request = request.ok_or(PageError::Changed)?;
        request.withdrawal = Some(self.person.clone());
        if self.problems.is_empty() && method.is_some() {
            let quote = request.quote(visit).await?;
            self.changed = Changed::new(&self.page, &[], &quote);
            let amounts = amounts(&self.page, &request, &quote);
            let key = Uuid::new_v4().to_string();
            self.terms = quote.possible.then_some(Terms { quote: quote.quote, amounts, key });
        }
        self.request = request.seal(app, visit)?;
        Ok(())
    }

    /// Adds the differences from the quote that was confirmed, or another remark.
    fn add_changes(&mut self, cause: &Cause<'_>) {
        let conflict = cause.refusal.and_then(Conflict::of);
        if let Some(conflict) = conflict {
            self.changed = Changed::new(&self.page, &conflict.changes, &conflict.quote);
        }
        let is_explained = !self.changed.amounts.is_empty() || !self.changed.refused.is_empty();
        let refused = cause.refusal.filter(|_| !is_explained).map(|_| "withdraw-changed");
        let note = cause.note.filter(|_| self.terms.is_some()).or(refused);
        self.note = note.map(|note| self.page.t(note));
    }

    fn status(&self, cause: &Cause<'_>) -> StatusCode {
        let is_wrong = cause.sent.is_some() && !self.problems.is_empty();
        match cause.refusal {
            Some(_) => StatusCode::CONFLICT,
            None if is_wrong => StatusCode::UNPROCESSABLE_ENTITY,
            None => StatusCode::OK,
        }
    }

    /// Whether no method of the merchant is possible for the chosen units.
    fn has_no_method(&self) -> bool {
        let is_refused = |method: &MethodOption| !method.refusals.is_empty();
        self.problems.is_empty() && self.methods.iter().all(is_refused)
    }
}
