//! Approves or declines a return that waits for review, with a form on the page of the return.

use actix_web::{get, post, web};
use askama::Template;
use domain::{
    merchant::ReviewDecision,
    returns::{DecidedReview, Rma},
};
use pages::{
    api::{ApiError, Service},
    form::{Field, Fields},
    path,
};
use reqwest::Method;
use serde_json::json;

use super::load_return;
use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn, error::sentence,
    form_key::FormKey, html, person::Person, rejected,
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_review).service(decide);
}

/// The form with both buttons.
#[derive(Template)]
#[template(path = "return_review_form.html")]
pub(super) struct ReviewForm {
    action: String,
    note: Field,
    key: FormKey,
    /// The decision if nobody decides in time.
    then: ReviewDecision,
}

impl ReviewForm {
    /// The form, if the return waits for review and the person may decide.
    pub(super) fn new(person: &Person, rma: &Rma) -> Option<Self> {
        let review = rma.open_review().filter(|_| person.may_manage())?;
        let path = path!("merchants", rma.merchant.as_str(), "returns", rma.rma_identifier);
        Some(Self {
            action: format!("/{path}/review"),
            note: Field::default(),
            key: FormKey::random(),
            then: review.then,
        })
    }
}

/// A decision as a word of a sentence: the return is approved.
fn participle(decision: &ReviewDecision) -> &'static str {
    match decision {
        ReviewDecision::Approve => "approved",
        ReviewDecision::Decline => "declined",
    }
}

#[derive(Template)]
#[template(path = "return_review.html")]
struct ReviewPage {
    page: Page,
    merchant: String,
    rma: Rma,
    /// Absent if the return does not wait for review any more.
    form: Option<ReviewForm>,
    /// The reason why nothing was decided.
    problem: Option<String>,
}

#[get("/merchants/{merchant}/returns/{rma}/review")]
async fn show_review(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, identifier) = path.into_inner();
    check_role(&signed_in.person)?;
    let rma = load_return(&signed_in, signed_in.merchant(&merchant)?, &identifier).await?.rma;
    let form = ReviewForm::new(&signed_in.person, &rma);
    let page = signed_in.page(Section::Reviews);
    html(&ReviewPage { page, merchant, rma, form, problem: None })
}

#[post("/merchants/{merchant}/returns/{rma}/review")]
async fn decide(posted: Posted<Fields>, path: web::Path<(String, String)>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let (merchant, identifier) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    let decision: ReviewDecision =
        form.text("decision").parse().map_err(|_not_ours| PageError::BadForm)?;
    let mut note = Field::new(form.text("note"));
    let body = if note.value.is_empty() { json!({}) } else { json!({ "note": note.value }) };
    let decision_path = path!("v1", "returns", identifier, decision.to_string());
    let api = FormKey::read(&form)?.api(&signed_in.api);
    let decided: Result<Rma, _> =
        api.send_json(Service::RmaEngine, Method::POST, Some(own), &decision_path, &body).await;
    let problem = match decided {
        Ok(_) => {
            let notice = match decision {
                ReviewDecision::Approve => Notice::ReturnApproved,
                ReviewDecision::Decline => Notice::ReturnDeclined,
            };
            let shown = path!("merchants", merchant, "returns", identifier);
            return Ok(notice.redirect(&format!("/{shown}")));
        }
        Err(ApiError::Conflict(body)) => Some(sentence(&body.message)),
        Err(ApiError::Invalid(body)) => {
            note.error = body.field("$.note").map(|text| sentence(&text));
            note.is_valid().then(|| sentence(&body.message))
        }
        Err(error) => return Err(error.into()),
    };
    let rma = load_return(&signed_in, own, &identifier).await?.rma;
    let form = ReviewForm::new(&signed_in.person, &rma).map(|form| ReviewForm { note, ..form });
    rejected(&ReviewPage { page: signed_in.page(Section::Reviews), merchant, rma, form, problem })
}

fn check_role(person: &Person) -> Result<(), PageError> {
    if person.may_manage() {
        Ok(())
    } else {
        Err(PageError::Denied("your role cannot decide about returns".to_owned()))
    }
}

/// A decision and its note, as the page of a return shows them.
pub(super) fn decision_text(decided: &DecidedReview) -> String {
    let decision = participle(&decided.decision);
    match &decided.note {
        Some(note) => format!("{decision}: {note}"),
        None => decision.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{HttpRequest, HttpResponse, http::StatusCode};
    use serde_json::Value;

    use super::*;
    use crate::fixtures;

    const PATH: &str = "/merchants/acme/returns/RMA-1/review";
    const KEY: (&str, &str) = ("key", "7d9f5a35-6f4e-4c3b-9a55-2f3f0f5b9c11");

    fn rma(status: &str, decided: Value) -> Rma {
        let review = json!({
            "rule": "often", "within_days": 3, "due_at": "2026-11-20T00:00:00Z", "then": "approve",
            "decided": decided,
        });
        let mut rma = fixtures::rma(status, &[json!({ "comment": "Too <tight>" })]);
        rma.review = Some(serde_json::from_value(review).unwrap());
        rma
    }

    /// A return that is approved once, and never declined.
    fn engine(services: &mut web::ServiceConfig) {
        let show = async || HttpResponse::Ok().json(rma("REQUESTED", Value::Null));
        let approve = |request: HttpRequest| async move {
            assert_eq!(fixtures::key_of(&request), KEY.1);
            let decided = json!({ "decision": "approve", "at": "2026-11-19T00:00:00Z" });
            HttpResponse::Ok().json(rma("CREATED", decided))
        };
        let refuse = async || {
            let message = "return RMA-1: the return was approved already";
            HttpResponse::Conflict().json(json!({ "message": message }))
        };
        services
            .route("/v1/returns/RMA-1", web::get().to(show))
            .route("/v1/returns/RMA-1/approve", web::post().to(approve))
            .route("/v1/returns/RMA-1/decline", web::post().to(refuse));
    }

    async fn post(fields: &[(&str, &str)]) -> (StatusCode, String, String) {
        fixtures::post(fixtures::app_with_services(engine), routes, PATH, fields).await
    }

    #[actix_web::test]
    async fn an_approval_leads_to_the_return() {
        let (status, location, _) = post(&[KEY, ("decision", "approve"), ("note", " ")]).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        assert_eq!(location, "/merchants/acme/returns/RMA-1");
    }

    #[actix_web::test]
    async fn a_refused_decision_keeps_the_note() {
        let fields = [KEY, ("decision", "decline"), ("note", "Worn & torn")];
        let (status, _, page) = post(&fields).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(
            page.contains("Nothing was decided. Return RMA-1: the return was approved already."),
            "{page}"
        );
        assert!(page.contains(r#"value="Worn &#38; torn""#), "{page}");
        assert!(page.contains(r#"name="decision" value="approve""#), "{page}");
        let (status, ..) = post(&[KEY, ("decision", "maybe")]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn the_form_is_for_people_who_decide_and_returns_that_wait() {
        let form = |role: &str, rma: &Rma| {
            let signed_in = fixtures::signed_in(role, Some("acme"), &json!({}));
            ReviewForm::new(&signed_in.person, rma).is_some()
        };
        let waiting = rma("REQUESTED", Value::Null);
        assert!(form("merchant-admin", &waiting) && !form("merchant-viewer", &waiting));
        let decided =
            json!({ "decision": "decline", "at": "2026-11-19T00:00:00Z", "note": "Worn" });
        let declined = rma("DECLINED", decided);
        assert!(!form("merchant-admin", &declined));
        let decided = declined.review.and_then(|review| review.decided).unwrap();
        assert_eq!(decision_text(&decided), "declined: Worn");
    }
}
