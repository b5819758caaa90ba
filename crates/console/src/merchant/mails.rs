//! The mails to a merchant's shoppers: the sender, the switches, and links to the words of each mail.

mod words;

use actix_web::{get, http::StatusCode, post, web};
use askama::Template;
use domain::merchant::MailEvent;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
};
use reqwest::Method;
use serde_json::Value;

use super::{
    Frame, Merchant, Tab,
    label_table::LANGUAGES,
    page_of, require_manage,
    version::{Version, is_outdated},
};
use crate::{
    Notice, Page, PageResult, Posted, SignedIn,
    changes::{self, Change},
    form::{Form, Input},
    html, html_with, rejected,
};

const INPUTS: &[Input] = &[
    Input::text("reply_to", "Address for replies of shoppers")
        .at("mails.reply_to")
        .kind("email")
        .hint("Empty: shoppers get no mails from here, because your shop sends its own."),
    Input::text("sender_name", "Name of the sender")
        .at("mails.sender_name")
        .hint("Empty: the name that shoppers see in the portal."),
    Input::check("confirmed", "The return is confirmed")
        .at("mails.events.confirmed")
        .hint("How to send the items back, and until when."),
    Input::check("received", "The items have arrived")
        .at("mails.events.received")
        .hint("If Backhaul receives returned units for you."),
    Input::check("refunded", "The items are refunded").at("mails.events.refunded"),
    Input::check("exchange_placed", "The exchange order is placed")
        .at("mails.events.exchange_placed"),
    Input::check("declined", "The return is declined")
        .at("mails.events.declined")
        .hint("With your reason."),
    Input::check("about_to_expire", "The return expires soon")
        .at("mails.events.about_to_expire")
        .hint("Three days before, if no carrier has scanned a parcel."),
    Input::check("withdrawal", "The shopper withdrew from the contract")
        .at("mails.events.withdrawal")
        .hint("The acknowledgement. The law asks for it (Directive (EU) 2023/2673)."),
];

#[derive(Template)]
#[template(path = "merchant_mails.html")]
struct MailsPage {
    page: Page,
    merchant: Frame,
    form: Form,
    words: Vec<WordsRow>,
    version: Version,
    /// The values that differ, if another person changed the merchant in the meantime.
    changes: Vec<Change>,
}

/// A mail and the pages of its words.
struct WordsRow {
    title: &'static str,
    languages: Vec<WordsLink>,
}

struct WordsLink {
    url: String,
    name: &'static str,
    /// Whether the merchant has its own words.
    is_own: bool,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_mails).service(change_mails).configure(words::routes);
}

/// The names of the mails are those of their switches.
fn title(event: MailEvent) -> &'static str {
    let event: &'static str = event.into();
    INPUTS.iter().find(|input| input.name == event).map_or(event, Input::label)
}

fn words_of(merchant: &Merchant) -> Vec<WordsRow> {
    let offered = &merchant.appearance.languages;
    let is_offered = |code: &str| offered.iter().any(|it| it == code);
    let row = |event: MailEvent| {
        let languages = LANGUAGES.into_iter().filter(|(code, _)| is_offered(code));
        let link = |(code, name)| WordsLink {
            url: words::url(&merchant.identifier, event, code),
            name,
            is_own: words::stored(merchant, event, code).is_some(),
        };
        WordsRow { title: title(event), languages: languages.map(link).collect() }
    };
    MailEvent::ALL.iter().copied().map(row).collect()
}

fn mails_page(signed_in: &SignedIn, merchant: &Merchant, form: Form) -> MailsPage {
    MailsPage {
        page: page_of(signed_in, merchant),
        merchant: Frame::new(&signed_in.person, merchant, Tab::Mails),
        form,
        words: words_of(merchant),
        version: Version::of(merchant),
        changes: Vec::new(),
    }
}

#[get("/merchants/{merchant}/mails")]
async fn show_mails(signed_in: SignedIn, merchant: web::Path<String>) -> PageResult {
    require_manage(&signed_in)?;
    let found = Merchant::load(&signed_in, signed_in.merchant(&merchant)?).await?;
    html(&mails_page(&signed_in, &found, Form::of(INPUTS, &found.json)))
}

#[post("/merchants/{merchant}/mails")]
async fn change_mails(posted: Posted<Fields>, merchant: web::Path<String>) -> PageResult {
    let Posted { signed_in, form } = posted;
    require_manage(&signed_in)?;
    let id = signed_in.merchant(&merchant)?;
    let version = Version::read(&form);
    let mut form = Form::read(INPUTS, &form);
    let api = version.api(&signed_in);
    let path = path!("v1", "merchants", id);
    let body = form.body();
    let changed: Result<Value, _> =
        api.send_json(Service::Auth, Method::PATCH, None, &path, &body).await;
    match changed {
        Ok(_) => {
            return Ok(
                Notice::MailsSaved.redirect(&format!("/{}", path!("merchants", id, "mails")))
            );
        }
        Err(error) if is_outdated(&error) => return outdated(&signed_in, id, form).await,
        Err(ApiError::Invalid(body)) => form.reject_all(&body),
        Err(error) => return Err(error.into()),
    }
    let found = Merchant::load(&signed_in, id).await?;
    rejected(&MailsPage { version, ..mails_page(&signed_in, &found, form) })
}

/// Shows the values that are stored now beside those of the form. Saving again replaces them.
async fn outdated(signed_in: &SignedIn, id: &str, mut form: Form) -> PageResult {
    let found = Merchant::load(signed_in, id).await?;
    let stored = Form::of(INPUTS, &found.json);
    let changes = changes::between(stored.facts(), form.facts());
    form.message = Some(changes::message("merchant"));
    let shown = mails_page(signed_in, &found, form);
    html_with(StatusCode::CONFLICT, &MailsPage { changes, ..shown })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{app_with_changed_merchant, get_page, post};

    #[actix_web::test]
    async fn every_mail_has_a_switch_and_a_page_for_its_words() {
        let (status, page) =
            get_page(app_with_changed_merchant(), routes, "/merchants/acme/mails").await;
        assert_eq!(status, StatusCode::OK, "{page}");
        for event in MailEvent::ALL {
            assert_ne!(title(*event), <&str>::from(*event));
            for part in [format!("name=\"{event}\""), format!("/mails/{event}?language=de")] {
                assert!(page.contains(&part), "{part} in {page}");
            }
        }
        assert!(page.contains("German (your own words)"), "{page}");
        assert!(!page.contains("French"), "the portal does not have it: {page}");
    }

    #[actix_web::test]
    async fn a_form_that_another_person_overtook_saves_nothing_and_shows_both_values() {
        for (version, status) in [("1", StatusCode::CONFLICT), ("2", StatusCode::SEE_OTHER)] {
            let fields = [("version", version), ("reply_to", "returns@acme.example")];
            let (sent, location, page) =
                post(app_with_changed_merchant(), routes, "/merchants/acme/mails", &fields).await;
            assert_eq!(sent, status, "{page}");
            match status {
                StatusCode::CONFLICT => {
                    assert!(
                        page.contains("Stored now") && page.contains("old@acme.example"),
                        "{page}"
                    );
                }
                _ => assert_eq!(location, "/merchants/acme/mails"),
            }
        }
    }
}
