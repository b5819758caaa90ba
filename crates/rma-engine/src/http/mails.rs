//! `/v1/mails`: previews and tests of the mails of a merchant to its shoppers.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, post, web};
use api::mails::{MailPreview, SentTest};
use domain::access::Scope;
use domain::json::{Object, object, one_of, variant};
use domain::merchant::{Language, MailEvent, MailText, Merchant};
use platform::Problem;
use platform::http::{ErrorBody, Json, Sequential};
use platform::identity::Caller;
use utoipa::ToSchema;

use super::{merchant_of, reject_portal};
use crate::App;
use crate::error::Error;
use crate::mails::drafts::{self, Draft};

/// The words of a mail, which need not be saved.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MailDraft)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct DraftBody {
    event: MailEvent,
    /// One of the languages of the portal. Default: the first.
    #[schema(nullable = false)]
    language: Option<Language>,
    /// Default: our subject.
    #[schema(nullable = false, min_length = 1, max_length = 200)]
    subject: Option<String>,
    /// Default: our first paragraph.
    #[schema(nullable = false, min_length = 1, max_length = 2000)]
    opening: Option<String>,
}

/// Preview a mail
///
/// Shows the mail that shoppers get about an event, with a sample return. The words of the request come instead of those
/// that are saved. Changes nothing.
#[utoipa::path(
    tag = "mails", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("X-Service-Id" = Option<String>, Header)),
    request_body(content = DraftBody, example = json!({ "event": "confirmed", "subject": "Thank you: {rma}" })),
    responses((status = 200, description = "The mail", body = MailPreview)),
)]
#[post("/v1/mails/preview")]
pub(crate) async fn preview_mail(
    app: web::Data<App>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<web::Json<MailPreview>, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Manage)?;
    reject_portal(&caller)?;
    let owner = merchant.clone();
    let draft = body.read(object(move |body| read_draft(body, &owner))).await?;
    Ok(web::Json(drafts::preview(&app, &merchant, draft).map_err(Error::from)?))
}

/// Send a test mail
///
/// Sends the mail of a preview to the person who sends the request. Tests of a client go to the merchant's address for
/// replies.
#[utoipa::path(
    tag = "mails", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("X-Service-Id" = Option<String>, Header)),
    request_body(content = DraftBody, example = json!({ "event": "confirmed", "subject": "Thank you: {rma}" })),
    responses(
        (status = 202, description = "The mail is on its way", body = SentTest),
        (status = 409, description = "The installation sends no mails, or there is no address for a client's test", body = ErrorBody),
    ),
)]
#[post("/v1/mails/test")]
pub(crate) async fn send_test_mail(
    app: web::Data<App>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let merchant = merchant_of(&app, &caller, Scope::Manage)?;
    reject_portal(&caller)?;
    let owner = merchant.clone();
    let draft = body.read(object(move |body| read_draft(body, &owner))).await?;
    let sent = drafts::send_test(&app, &merchant, &caller, draft).await?;
    Ok(HttpResponse::build(StatusCode::ACCEPTED).json(sent))
}

pub(crate) fn read_draft(body: &Object<'_>, merchant: &Merchant) -> Option<Draft> {
    body.reject_unknown(&["event", "language", "subject", "opening"]);
    let offered = &merchant.settings.appearance.languages;
    let languages: Vec<_> = offered.iter().map(|it| (it.as_str(), *it)).collect();
    let event = body.required("event", variant);
    let language = body.optional("language", one_of(&languages));
    let subject = MailText::read_subject(body);
    let opening = MailText::read_opening(body);
    let default = offered.first().copied().unwrap_or(Language::En);
    Some(Draft {
        event: event?,
        language: language?.unwrap_or(default),
        text: MailText { subject: subject?, opening: opening? },
    })
}
