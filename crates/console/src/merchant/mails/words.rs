//! The words of a mail to shoppers in one language: a form with a preview and a test.

use actix_web::{
    HttpResponse, get,
    http::{StatusCode, header},
    post, web,
};
use api::mails::{MailPreview, SentTest};
use askama::Template;
use domain::merchant::MailEvent;
use pages::{
    api::{ApiError, ErrorBody, Service},
    form::Fields,
    path,
};
use reqwest::Method;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use url::form_urlencoded;

use super::title;
use crate::{
    Notice, Page, PageError, PageResult, Posted, SignedIn,
    changes::{self, Change},
    error::sentence,
    form::{Form, Input, Kind},
    html, html_with,
    merchant::{
        Frame, Merchant, Tab,
        label_table::LANGUAGES,
        page_of, require_manage,
        version::{Version, is_outdated},
    },
    rejected,
};

/// A mail as it looks in a program for mail. It is opened on its own, cannot run scripts and loads only its logo.
const MAIL_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src http: https:; \
                           base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";

const INPUTS: &[Input] = &[
    Input::text("subject", "Subject").hint("Empty: our subject."),
    Input::new("opening", "First paragraph", "opening", Kind::Area)
        .hint("Each line is a paragraph. Empty: our text."),
];

#[derive(Deserialize)]
struct WordsQuery {
    #[serde(default)]
    language: String,
}

/// The mail and the language of a page.
struct Words {
    event: MailEvent,
    language: &'static str,
    language_name: &'static str,
}

#[derive(Template)]
#[template(path = "merchant_mail.html")]
struct MailPage {
    page: Page,
    merchant: Frame,
    words: Words,
    title: &'static str,
    form: Form,
    /// The address that a test was sent to.
    sent_to: Option<String>,
    version: Version,
    changes: Vec<Change>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_words).service(change_words).service(preview_mail).service(send_test);
}

/// The page of the words of a mail.
pub(super) fn url(merchant: &str, event: MailEvent, language: &str) -> String {
    let query =
        form_urlencoded::Serializer::new(String::new()).append_pair("language", language).finish();
    format!("/{}?{query}", path!("merchants", merchant, "mails", event.to_string()))
}

/// The merchant's own words.
pub(super) fn stored<'a>(
    merchant: &'a Merchant,
    event: MailEvent,
    language: &str,
) -> Option<&'a Value> {
    merchant.json.pointer(&format!("/mails/texts/{language}/{event}"))
}

impl Words {
    /// The words that a URL names, in the first language of the merchant if it has not the named one.
    fn of(merchant: &Merchant, event: &str, language: &str) -> Result<Self, PageError> {
        let event = event.parse().map_err(|_unknown| PageError::NotFound)?;
        let offered = &merchant.appearance.languages;
        let is_offered = |code: &str| offered.iter().any(|it| it == code);
        let named = Some(language).filter(|language| is_offered(language));
        let code = named.or(offered.first().map(String::as_str)).unwrap_or("en");
        let (language, language_name) =
            LANGUAGES.into_iter().find(|(known, _)| *known == code).ok_or(PageError::NotFound)?;
        Ok(Self { event, language, language_name })
    }

    fn form(&self, merchant: &Merchant) -> Form {
        Form::of(INPUTS, stored(merchant, self.event, self.language).unwrap_or(&Value::Null))
    }

    /// All texts of the merchant with these words.
    fn body(&self, merchant: &Merchant, form: &mut Form) -> Value {
        let texts = merchant.json.pointer("/mails/texts").cloned().unwrap_or_default();
        let mut texts = if texts.is_object() { texts } else { json!({}) };
        if let Value::Object(texts) = &mut texts {
            let of_language = texts.entry(self.language).or_insert_with(|| json!({}));
            if let Value::Object(of_language) = of_language {
                of_language.insert(self.event.to_string(), form.body().into());
            }
        }
        json!({ "mails": { "texts": texts } })
    }

    /// The typed words, for a preview or a test.
    fn draft(&self, form: &mut Form) -> Map<String, Value> {
        let mut draft = form.body();
        draft.insert("event".to_owned(), json!(self.event));
        draft.insert("language".to_owned(), json!(self.language));
        draft
    }

    /// Puts the errors of a service beside the fields. `path` is that of the words in the request.
    fn reject(form: &mut Form, body: &ErrorBody, path: &str) {
        for input in INPUTS {
            if let Some(error) = body.field(&format!("{path}.{}", input.name)) {
                form.reject(input.name, sentence(&error));
            }
        }
        form.message = Some(sentence(&body.message));
    }
}

fn mail_page(signed_in: &SignedIn, merchant: &Merchant, words: Words, form: Form) -> MailPage {
    MailPage {
        page: page_of(signed_in, merchant),
        merchant: Frame::new(&signed_in.person, merchant, Tab::Mails),
        title: title(words.event),
        words,
        form,
        sent_to: None,
        version: Version::of(merchant),
        changes: Vec::new(),
    }
}

#[get("/merchants/{merchant}/mails/{event}")]
async fn show_words(
    signed_in: SignedIn,
    path: web::Path<(String, String)>,
    query: web::Query<WordsQuery>,
) -> PageResult {
    require_manage(&signed_in)?;
    let (merchant, event) = path.into_inner();
    let found = Merchant::load(&signed_in, signed_in.merchant(&merchant)?).await?;
    let words = Words::of(&found, &event, &query.language)?;
    let form = words.form(&found);
    html(&mail_page(&signed_in, &found, words, form))
}

#[post("/merchants/{merchant}/mails/{event}")]
async fn change_words(posted: Posted<Fields>, path: web::Path<(String, String)>) -> PageResult {
    let Posted { signed_in, form } = posted;
    require_manage(&signed_in)?;
    let (merchant, event) = path.into_inner();
    let id = signed_in.merchant(&merchant)?;
    let found = Merchant::load(&signed_in, id).await?;
    let words = Words::of(&found, &event, form.text("language"))?;
    let version = Version::read(&form);
    let mut form = Form::read(INPUTS, &form);
    let body = words.body(&found, &mut form);
    let api = version.api(&signed_in);
    let path = path!("v1", "merchants", id);
    let changed: Result<Value, _> =
        api.send_json(Service::Auth, Method::PATCH, None, &path, &body).await;
    match changed {
        Ok(_) => {
            return Ok(Notice::MailsSaved.redirect(&url(id, words.event, words.language)));
        }
        Err(error) if is_outdated(&error) => {
            let changes = changes::between(words.form(&found).facts(), form.facts());
            form.message = Some(changes::message("merchant"));
            let shown = mail_page(&signed_in, &found, words, form);
            return html_with(StatusCode::CONFLICT, &MailPage { changes, ..shown });
        }
        Err(ApiError::Invalid(body)) => {
            let path = format!("$.mails.texts.{}.{}", words.language, words.event);
            Words::reject(&mut form, &body, &path);
        }
        Err(error) => return Err(error.into()),
    }
    rejected(&MailPage { version, ..mail_page(&signed_in, &found, words, form) })
}

/// Shows the mail with the typed words, which are not saved, as a page of its own.
#[post("/merchants/{merchant}/mails/{event}/preview")]
async fn preview_mail(posted: Posted<Fields>, path: web::Path<(String, String)>) -> PageResult {
    match send::<MailPreview>(posted, path, "preview").await? {
        Sent::Accepted(mail, _) => Ok(HttpResponse::Ok()
            .content_type("text/html; charset=utf-8")
            .insert_header((header::CONTENT_SECURITY_POLICY, MAIL_POLICY))
            .body(mail.html)),
        Sent::Rejected(page) => rejected(&*page),
    }
}

/// Sends the mail with the typed words, which are not saved, to the person.
#[post("/merchants/{merchant}/mails/{event}/test")]
async fn send_test(posted: Posted<Fields>, path: web::Path<(String, String)>) -> PageResult {
    match send::<SentTest>(posted, path, "test").await? {
        Sent::Accepted(sent, page) => html(&MailPage { sent_to: Some(sent.to), ..*page }),
        Sent::Rejected(page) => rejected(&*page),
    }
}

/// The result of a preview or a test, with the page of the form.
enum Sent<T> {
    Accepted(T, Box<MailPage>),
    Rejected(Box<MailPage>),
}

async fn send<T: DeserializeOwned>(
    posted: Posted<Fields>,
    path: web::Path<(String, String)>,
    action: &str,
) -> Result<Sent<T>, PageError> {
    let Posted { signed_in, form } = posted;
    require_manage(&signed_in)?;
    let (merchant, event) = path.into_inner();
    let id = signed_in.merchant(&merchant)?;
    let found = Merchant::load(&signed_in, id).await?;
    let words = Words::of(&found, &event, form.text("language"))?;
    let version = Version::read(&form);
    let mut form = Form::read(INPUTS, &form);
    let draft = words.draft(&mut form);
    let path = path!("v1", "mails", action);
    let sent =
        signed_in.api.send_json(Service::RmaEngine, Method::POST, Some(id), &path, &draft).await;
    match &sent {
        Err(ApiError::Invalid(body)) => Words::reject(&mut form, body, "$"),
        Err(ApiError::Conflict(body)) => form.message = Some(sentence(&body.message)),
        Ok(_) | Err(_) => {}
    }
    let page = Box::new(MailPage { version, ..mail_page(&signed_in, &found, words, form) });
    match sent {
        Ok(sent) => Ok(Sent::Accepted(sent, page)),
        Err(ApiError::Invalid(_) | ApiError::Conflict(_)) => Ok(Sent::Rejected(page)),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::HttpRequest;

    use super::*;
    use crate::fixtures::{app_with_changed_merchant, app_with_services, get_page, post};

    const PAGE: &str = "/merchants/acme/mails/refunded";

    async fn respond(request: HttpRequest, draft: web::Json<Value>) -> HttpResponse {
        assert_eq!(request.headers().get("x-service-id").unwrap(), "acme");
        assert_eq!((&draft["event"], &draft["language"]), (&json!("refunded"), &json!("de")));
        if draft["subject"] == "wrong" {
            return HttpResponse::UnprocessableEntity().json(json!({
                "message": "a field is not valid",
                "errors": [{ "field": "$.subject", "code": "invalid", "detail": "is wrong" }],
            }));
        }
        let html = format!("<html>{}</html>", draft["subject"].as_str().unwrap_or_default());
        HttpResponse::Ok().json(json!({
            "from_name": "Acme", "reply_to": null, "subject": "S", "text": "T", "html": html,
            "to": "a@b.c", "delivery": uuid::Uuid::nil(),
        }))
    }

    fn services(config: &mut web::ServiceConfig) {
        for path in ["/v1/mails/preview", "/v1/mails/test"] {
            config.service(web::resource(path).route(web::post().to(respond)));
        }
    }

    async fn sent(action: &str, subject: &str) -> (StatusCode, String) {
        let fields = [("version", "2"), ("language", "de"), ("subject", subject)];
        let path = format!("{PAGE}{action}");
        let (status, _, page) = post(app_with_services(services), routes, &path, &fields).await;
        (status, page)
    }

    #[actix_web::test]
    async fn a_page_shows_the_words_of_one_language() {
        let german = format!("{PAGE}?language=de");
        let (status, page) = get_page(app_with_changed_merchant(), routes, &german).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        assert!(page.contains("value=\"Geld &#60;zurück&#62;\""), "{page}");
        // A language that the portal does not have.
        let french = format!("{PAGE}?language=fr");
        let (_, page) = get_page(app_with_changed_merchant(), routes, &french).await;
        assert!(page.contains("name=\"language\" value=\"en\""), "{page}");
        let unknown =
            get_page(app_with_changed_merchant(), routes, "/merchants/acme/mails/lost").await;
        assert_eq!(unknown.0, StatusCode::NOT_FOUND);
    }

    #[actix_web::test]
    async fn a_preview_shows_the_mail_and_a_test_says_where_it_went() {
        assert_eq!(sent("/preview", "Hi").await, (StatusCode::OK, "<html>Hi</html>".to_owned()));
        let (status, page) = sent("/test", "Hi").await;
        assert_eq!(status, StatusCode::OK, "{page}");
        assert!(page.contains("a@b.c") && page.contains("value=\"Hi\""), "{page}");
        for action in ["/preview", "/test"] {
            let (status, page) = sent(action, "wrong").await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
            assert!(page.contains("Is wrong."), "{page}");
        }
    }

    #[actix_web::test]
    async fn words_are_saved_beside_those_of_other_mails() {
        let merchant = json!({
            "identifier": "acme", "created_at": "2026-11-16T08:00:00Z",
            "mails": { "texts": { "en": { "received": { "subject": "Here" } } } },
        });
        let merchant = Merchant {
            json: merchant.clone(),
            ..serde_json::from_value::<Merchant>(merchant).unwrap()
        };
        let fields = [("subject", "There"), ("opening", "")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut form = Form::read(INPUTS, &fields.into_iter().collect());
        let words = Words::of(&merchant, "refunded", "en").unwrap();
        let texts = json!({ "en": {
            "received": { "subject": "Here" },
            "refunded": { "subject": "There", "opening": null },
        } });
        assert_eq!(words.body(&merchant, &mut form), json!({ "mails": { "texts": texts } }));
    }

    #[actix_web::test]
    async fn a_form_that_another_person_overtook_saves_nothing() {
        let fields = [("version", "1"), ("language", "de"), ("subject", "Neu")];
        let (status, _, page) = post(app_with_changed_merchant(), routes, PAGE, &fields).await;
        assert_eq!(status, StatusCode::CONFLICT);
        assert!(page.contains("Nothing was saved") && page.contains("Stored now"), "{page}");
    }
}
