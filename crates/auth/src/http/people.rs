//! People, for operators and for the managers of a merchant.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, get, patch, post, web};
use domain::json::{Digest, Object, object};
use platform::{
    Problem,
    http::{ErrorBody, Json, PageLimit, Query, Sequential},
    idempotency::KeyHeader,
    identity::{Access, Caller},
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{idempotency_key, listed_merchant, read_with_digest, require_manage};
use crate::{
    App,
    email::Email,
    error::Error,
    invitations::{self, InvitedPerson},
    people::{self, Manager, NewPerson, PersonChange, PersonPage, PersonView},
    rights::{self, ChangedPerson},
    store,
};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct PersonQuery {
    /// Only people of this merchant
    merchant: Option<String>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

/// The sender of a request about other people. Other callers are rejected.
pub(super) fn manager(caller: &Caller) -> Result<Manager<'_>, Access> {
    require_manage(caller)?;
    Ok(sender(caller))
}

/// The sender of a request that was checked.
fn sender(caller: &Caller) -> Manager<'_> {
    Manager {
        actor: caller.actor(),
        merchant: caller.merchant_scope(),
        is_operator: caller.is_operator(),
    }
}

/// The e-mail address in a URL. Any other text names no person.
pub(super) fn parse_email(text: &str) -> Result<Email, Error> {
    text.parse().map_err(|_not_an_address| Error::PersonNotFound(text.to_owned()))
}

/// Invite a person
///
/// Send the link in the response to the person, who sets a password and TOTP with it. Only this response
/// contains the link. A merchant can invite people of its own only, with the two merchant roles.
#[utoipa::path(
    tag = "people", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes it safe to repeat the request. Optional; 1 to 255 visible ASCII characters, for example a UUID. A repeated request of the same caller with the same key and body takes effect once and gets the first response with the same link. The same key with another body gets 422. A request that failed does not use up its key. Keys are kept for an hour, unless the setting `idempotency.retention` says otherwise.")),
    request_body(content = NewPerson, example = json!({ "email": "ada@acme.example", "name": "Ada", "role": "merchant-admin", "merchant": "acme" })),
    responses(
        (status = 201, body = InvitedPerson),
        (status = 404, description = "The merchant does not exist", body = ErrorBody),
        (status = 409, description = "The e-mail address cannot be invited, for example because a person has it", body = ErrorBody),
    )
)]
#[post("/v1/people")]
pub(crate) async fn invite_person(
    app: web::Data<App>,
    head: HttpRequest,
    header: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let manager = manager(&caller)?;
    let caller_of_body = caller.clone();
    let read = move |body: &Object<'_>| NewPerson::read(body, &sender(&caller_of_body));
    let (digest, new) = read_with_digest(body, read).await?;
    let key = idempotency_key(&header, &caller, "people", head.path(), digest);
    let invited = invitations::invite(&app, &manager, key.as_ref(), new).await?;
    Ok(HttpResponse::Created().json(invited))
}

/// List people
///
/// Sorted by e-mail address. A token of a merchant gets the people of this merchant.
#[utoipa::path(
    tag = "people", security(("bearer" = ["manage"]), ("bearer" = ["operator"])), params(PersonQuery),
    responses(
        (status = 200, body = PersonPage),
        (status = 404, description = "The token is for another merchant", body = ErrorBody),
    )
)]
#[get("/v1/people")]
pub(crate) async fn list_people(
    app: web::Data<App>,
    caller: Caller,
    query: Query<PersonQuery>,
) -> Result<HttpResponse, Problem> {
    require_manage(&caller)?;
    let merchant = listed_merchant(&caller, query.merchant.as_deref())?;
    let after = query.after.as_deref().unwrap_or("");
    let mut conn = app.pool.reader(merchant).await?;
    let mut found = store::people::page(&mut conn, merchant, after, query.limit.rows()).await?;
    let next = query.limit.next(&mut found, |person| person.email.to_string());
    let people = found.iter().map(PersonView::from).collect();
    Ok(HttpResponse::Ok().json(PersonPage { people, next }))
}

/// Show a person
#[utoipa::path(
    tag = "people", security(("bearer" = ["manage"]), ("bearer" = ["operator"])), params(("email" = String, Path)),
    responses((status = 200, body = PersonView))
)]
#[get("/v1/people/{email}")]
pub(crate) async fn show_person(
    app: web::Data<App>,
    caller: Caller,
    email: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let person = people::show(&app, &manager(&caller)?, &parse_email(&email)?).await?;
    Ok(HttpResponse::Ok().json(PersonView::from(&person)))
}

/// Update a person
///
/// Omitted values stay as they are. A new role or merchant ends the person's sessions and an open invitation.
/// A person who leaves a merchant also loses the password and TOTP. The response then has a new invitation.
#[utoipa::path(
    tag = "people", security(("bearer" = ["manage"]), ("bearer" = ["operator"])), params(("email" = String, Path)),
    request_body(content = PersonChange, example = json!({ "role": "merchant-viewer" })),
    responses(
        (status = 200, body = ChangedPerson),
        (status = 409, description = "The person is the last active operator, or would be an operator with a password and without TOTP", body = ErrorBody),
    )
)]
#[patch("/v1/people/{email}")]
pub(crate) async fn update_person(
    app: web::Data<App>,
    Sequential(caller, body): Sequential<Caller, Json>,
    email: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let manager = manager(&caller)?;
    let email = parse_email(&email)?;
    let caller_of_body = caller.clone();
    let read = move |body: &Object<'_>| PersonChange::read(body, &sender(&caller_of_body));
    let change = body.read(object(read)).await?;
    Ok(HttpResponse::Ok().json(rights::update(&app, &manager, &email, change).await?))
}

/// Disable a person
///
/// The person cannot sign in any more. All sessions of the person end, and all services reject the
/// person's tokens within seconds.
#[utoipa::path(
    tag = "people", security(("bearer" = ["manage"]), ("bearer" = ["operator"])), params(("email" = String, Path)),
    responses(
        (status = 200, body = PersonView),
        (status = 409, description = "The person is the last active operator", body = ErrorBody),
    )
)]
#[post("/v1/people/{email}/disable")]
pub(crate) async fn disable_person(
    app: web::Data<App>,
    caller: Caller,
    email: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let person = people::disable(&app, &manager(&caller)?, &parse_email(&email)?).await?;
    Ok(HttpResponse::Ok().json(person))
}

/// Enable a person
///
/// The person can sign in again with the old password. A person who never signed in is `invited` and needs a
/// new invitation.
#[utoipa::path(
    tag = "people", security(("bearer" = ["manage"]), ("bearer" = ["operator"])), params(("email" = String, Path)),
    responses((status = 200, body = PersonView))
)]
#[post("/v1/people/{email}/enable")]
pub(crate) async fn enable_person(
    app: web::Data<App>,
    caller: Caller,
    email: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let person = people::enable(&app, &manager(&caller)?, &parse_email(&email)?).await?;
    Ok(HttpResponse::Ok().json(person))
}

/// Invite a person again
///
/// For a person who lost the link, the phone or the password. An earlier link is void. The old password works
/// until the new link is used.
#[utoipa::path(
    tag = "people", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("email" = String, Path), ("Idempotency-Key" = Option<String>, Header, description = "Makes it safe to repeat the request. Optional; 1 to 255 visible ASCII characters, for example a UUID. A repeated request of the same caller with the same key takes effect once and gets the first response with the same link. A request that failed does not use up its key. Keys are kept for an hour, unless the setting `idempotency.retention` says otherwise.")),
    responses(
        (status = 201, body = InvitedPerson),
        (status = 409, description = "The person is disabled", body = ErrorBody),
    )
)]
#[post("/v1/people/{email}/invitation")]
pub(crate) async fn renew_invitation(
    app: web::Data<App>,
    head: HttpRequest,
    header: KeyHeader,
    caller: Caller,
    email: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let key = idempotency_key(&header, &caller, "invitations", head.path(), Digest::of_text(""));
    let manager = manager(&caller)?;
    let email = parse_email(&email)?;
    let invited = invitations::renew(&app, &manager, key.as_ref(), &email).await?;
    Ok(HttpResponse::Created().json(invited))
}
