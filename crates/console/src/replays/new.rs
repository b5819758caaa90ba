//! Starts a replay: filter, dry run, confirmation by typing the number of deliveries.

use actix_web::{get, http::StatusCode, post, web};
use api::delivery::ReplayView;
use askama::Template;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    text::{count, grouped},
};
use reqwest::Method;

use super::{
    ReplayEntry,
    form::{NewReplay, Problems},
    preview::{DEADLINE, Preview, read_expected, tolerance},
    progress::replay_url,
};
use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn, error::sentence,
    form_key::FormKey, html_with,
};

#[derive(Template)]
#[template(path = "replay_new.html")]
struct NewReplayPage {
    page: Page,
    form: NewReplay,
    problems: Problems,
    preview: Option<Preview>,
    confirmation: Confirmation,
    key: FormKey,
}

/// The state of the confirmation.
#[derive(Default)]
struct Confirmation {
    typed: String,
    typed_error: Option<String>,
    /// The reason why nothing, or not everything, was started.
    problem: Option<String>,
    /// Replays that were started before another one was rejected.
    started: Vec<ReplayEntry>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(new_replay).service(start_replay);
}

#[get("/replays/new")]
async fn new_replay(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let form = read(&signed_in, &query)?;
    show(&signed_in, form, Confirmation::default(), StatusCode::OK).await
}

/// Shows the form, and the deliveries that match if the form is valid.
async fn show(
    signed_in: &SignedIn,
    form: NewReplay,
    confirmation: Confirmation,
    status: StatusCode,
) -> PageResult {
    let page = signed_in.page(Section::Replays);
    let problems = form.problems();
    let preview = if problems.is_empty() {
        Some(Preview::load(&page, signed_in, &form).await?)
    } else {
        None
    };
    let key = FormKey::random();
    html_with(status, &NewReplayPage { page, form, problems, preview, confirmation, key })
}

/// Limits the form to the merchant of the person.
fn read(signed_in: &SignedIn, fields: &Fields) -> Result<NewReplay, PageError> {
    if !signed_in.person.may_replay() {
        return Err(PageError::Denied(
            "Your role can read deliveries, but not replay them".to_owned(),
        ));
    }
    if !fields.text("merchant").is_empty() {
        signed_in.merchant(fields.text("merchant"))?;
    }
    Ok(NewReplay::read(signed_in, fields))
}

#[post("/replays/new")]
async fn start_replay(posted: Posted<Fields>) -> PageResult {
    let Posted { signed_in, form: fields } = posted;
    let new = read(&signed_in, &fields)?;
    let key = FormKey::read(&fields)?;
    let expected = fields.text("expected");
    let typed = fields.text("typed").to_owned();
    let expected = read_expected(expected).ok_or(PageError::BadForm)?;
    let total: i64 = expected.iter().map(|(_, matches)| matches).sum();
    let mut confirmation = Confirmation { typed, ..Confirmation::default() };
    if !new.problems().is_empty() || !is_confirmed(&confirmation.typed, total) {
        let error = format!("Type {} to confirm.", grouped(total));
        confirmation.typed_error = Some(error);
        return show(&signed_in, new, confirmation, StatusCode::UNPROCESSABLE_ENTITY).await;
    }
    for (service, matches) in expected {
        match start(&signed_in, &new, key, service, matches).await {
            Ok(replay) => confirmation.started.push(ReplayEntry { service, replay }),
            Err(error) => {
                confirmation.problem = Some(confirmation.explain(service, matches, error)?);
                confirmation.typed.clear();
                return show(&signed_in, new, confirmation, StatusCode::CONFLICT).await;
            }
        }
    }
    let url = replay_url(&confirmation.started).ok_or(PageError::BadForm)?;
    Ok(Notice::ReplayStarted.redirect(&url))
}

async fn start(
    signed_in: &SignedIn,
    new: &NewReplay,
    key: FormKey,
    service: Service,
    matches: i64,
) -> Result<ReplayView, ApiError> {
    let api = key.api(&signed_in.api).with_deadline(DEADLINE);
    let body = new.start(matches, tolerance(matches));
    api.send_json(service, Method::POST, None, "v1/replays", &body).await
}

/// Whether the typed text is this number. People copy it with its commas.
fn is_confirmed(typed: &str, total: i64) -> bool {
    let digits = typed.replace([',', ' '], "");
    total > 0 && digits.parse() == Ok(total)
}

impl Confirmation {
    /// The reason why a service did not start its replay. Errors before the first replay are those of
    /// the page, because nothing was changed.
    fn explain(
        &self,
        service: Service,
        matches: i64,
        error: ApiError,
    ) -> Result<String, PageError> {
        let reason = match error {
            ApiError::Conflict(body) => format!(
                "You confirmed {}. {} Look at the numbers below.",
                count(matches, "delivery", "deliveries"),
                sentence(&body.message)
            ),
            error if self.started.is_empty() => return Err(error.into()),
            error => sentence(&error.to_string()),
        };
        let part = if self.started.is_empty() {
            "Nothing was started.".to_owned()
        } else {
            format!("The replay of {service} was not started.")
        };
        Ok(format!("{part} {reason}"))
    }

    /// The page of the replays that were started before one failed.
    fn started_url(&self) -> Option<String> {
        replay_url(&self.started)
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{HttpRequest, HttpResponse};
    use pages::api::ErrorBody;
    use serde_json::json;

    use super::*;
    use crate::fixtures::{app_with_services, key_of, post};

    #[test]
    fn the_number_confirms_with_and_without_commas() {
        for (typed, is_right) in
            [("1204", true), (" 1,204 ", true), ("1205", false), ("", false), ("all", false)]
        {
            assert_eq!(is_confirmed(typed, 1204), is_right, "{typed}");
        }
        assert!(!is_confirmed("0", 0));
    }

    /// A service that names a replay after its idempotency key.
    fn service(app: &mut web::ServiceConfig) {
        let start = async |request: HttpRequest| {
            HttpResponse::Accepted().json(json!({
                "id": key_of(&request), "requested_by": "ada@acme.example", "state": "running",
                "filter": { "merchant": "acme" }, "force": false, "per_second": 50, "matched": 1,
                "replayed": 0, "skipped": 0, "failed": 0, "created_at": "2026-11-16T08:00:00Z",
            }))
        };
        app.route("/v1/replays", web::post().to(start));
    }

    #[actix_web::test]
    async fn the_same_confirmation_is_the_same_request() {
        let key = "7d9f5a35-6f4e-4c3b-9a55-2f3f0f5b9c11";
        let fields = [
            ("merchant", "acme"),
            ("expected", "rma-engine:1"),
            ("typed", "1"),
            ("per_second", "50"),
            ("key", key),
        ];
        let app = || app_with_services(service);
        let (status, location, page) = post(app(), routes, "/replays/new", &fields).await;
        assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
        assert_eq!(location, format!("/replays/rma-engine/{key}"));
        // A form without a key was opened before keys were introduced.
        let (status, ..) = post(app(), routes, "/replays/new", &fields[..4]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_changed_number_is_explained() {
        let conflict = || {
            let message = "1300 deliveries match now, not as many as expected".to_owned();
            ApiError::Conflict(ErrorBody { message, ..ErrorBody::default() })
        };
        let text = Confirmation::default().explain(Service::Exchange, 1204, conflict()).unwrap();
        assert_eq!(
            text,
            "Nothing was started. You confirmed 1,204 deliveries. 1300 deliveries match now, not as \
             many as expected. Look at the numbers below."
        );
        let away = ApiError::Unavailable { service: Service::Exchange };
        assert!(Confirmation::default().explain(Service::Exchange, 1, away).is_err());
    }
}
