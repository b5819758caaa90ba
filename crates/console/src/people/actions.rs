//! Disables and enables a person, makes a new link, ends sessions.

use actix_web::{get, post, web};
use pages::{api::Service, form::Fields, path};
use reqwest::Method;
use serde_json::{Value, json};

use super::{PersonView, invite, section, url_of};
use crate::{
    Notice, PageError, PageResult, Posted, SignedIn, confirm::ConfirmPage, form_key::FormKey,
    person::NoFields, sessions,
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(ask_to_disable)
        .service(disable)
        .service(enable)
        .service(ask_for_link)
        .service(renew_link)
        .service(end_session)
        .service(end_all_sessions);
}

/// The question before a change. A person whom the signed-in person may not see does not exist here.
async fn confirmation(
    signed_in: &SignedIn,
    email: &str,
    (title, button): (String, &'static str),
    effects: &[&str],
    key: Option<FormKey>,
) -> PageResult {
    let person: PersonView =
        signed_in.api.get(Service::Auth, &path!("v1", "people", email), &[]).await?;
    ConfirmPage {
        page: signed_in.page(section(signed_in)),
        title,
        effects: effects.iter().map(|effect| (*effect).to_owned()).collect(),
        button,
        key,
        rotation: None,
        version: None,
        problem: None,
        back: url_of(&person.email),
    }
    .show()
}

/// Sends a change without a body.
async fn change(signed_in: &SignedIn, email: &str, action: &str) -> Result<(), PageError> {
    let path = path!("v1", "people", email, action);
    let _: Value =
        signed_in.api.send_json(Service::Auth, Method::POST, None, &path, &json!({})).await?;
    Ok(())
}

#[get("/people/{email}/disable")]
async fn ask_to_disable(signed_in: SignedIn, email: web::Path<String>) -> PageResult {
    let effects = [
        "The person cannot sign in any more, and all their sessions end now.",
        "An invitation link that was not used stops working. The audit log keeps what the person did.",
        "You can enable the person again later.",
    ];
    let title = format!("Disable {email}?");
    confirmation(&signed_in, &email, (title, "Disable"), &effects, None).await
}

#[post("/people/{email}/disable")]
async fn disable(posted: Posted<NoFields>, email: web::Path<String>) -> PageResult {
    change(&posted.signed_in, &email, "disable").await?;
    Ok(Notice::PersonDisabled.redirect(&url_of(&email)))
}

#[post("/people/{email}/enable")]
async fn enable(posted: Posted<NoFields>, email: web::Path<String>) -> PageResult {
    change(&posted.signed_in, &email, "enable").await?;
    Ok(Notice::PersonEnabled.redirect(&url_of(&email)))
}

#[get("/people/{email}/invitation")]
async fn ask_for_link(signed_in: SignedIn, email: web::Path<String>) -> PageResult {
    let effects = [
        "With the new link the person sets a new password and sets up the authenticator app again.",
        "An earlier link stops working. The present password works until the new link is used.",
    ];
    let title = format!("Make a new invitation link for {email}?");
    let key = Some(FormKey::random());
    confirmation(&signed_in, &email, (title, "Make a new link"), &effects, key).await
}

#[post("/people/{email}/invitation")]
async fn renew_link(posted: Posted<Fields>, email: web::Path<String>) -> PageResult {
    let key = FormKey::read(&posted.form)?;
    invite::renew(&posted.signed_in, &email, key).await
}

#[post("/people/{email}/sessions/{id}/end")]
async fn end_session(posted: Posted<NoFields>, path: web::Path<(String, String)>) -> PageResult {
    let (email, id) = path.into_inner();
    sessions::end(&posted.signed_in, &id).await?;
    Ok(Notice::SessionEnded.redirect(&url_of(&email)))
}

#[post("/people/{email}/sessions/end")]
async fn end_all_sessions(posted: Posted<NoFields>, email: web::Path<String>) -> PageResult {
    sessions::end_all(&posted.signed_in, Some(email.as_str())).await?;
    Ok(Notice::SessionsEnded.redirect(&url_of(&email)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[actix_web::test]
    async fn a_question_loads_the_person_first() {
        let admin = fixtures::signed_in("merchant-admin", Some("acme"), &json!({}));
        let title = ("Disable joe@rival.example?".to_owned(), "Disable");
        let shown = confirmation(&admin, "joe@rival.example", title, &[], None).await;
        // No service responds in this test, so nobody knows the person.
        assert!(matches!(shown, Err(PageError::Unavailable(Service::Auth))));
    }
}
