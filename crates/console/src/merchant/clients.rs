//! The API clients of a merchant: list, rotate, revoke.

use actix_web::{HttpResponse, get, post, web};
use askama::Template;
use chrono::{DateTime, Utc};
use futures_util::future::join;
use pages::{api::Service, path, text::Moment};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Frame, Merchant, Tab, page, require_manage};
use crate::{
    App,
    confirm::{Confirmation, RotateForm, SecretPage},
    error::PageError,
    notice::Notice,
    page::{Page, html},
    person::{Posted, SignedIn},
};

/// A client as auth describes it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ClientView {
    pub(super) client_id: String,
    pub(super) name: String,
    scope: String,
    created_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
    /// Only in the response that creates the secret.
    pub(super) client_secret: Option<String>,
}

#[derive(Deserialize)]
struct ClientList {
    clients: Vec<ClientView>,
    next: Option<String>,
}

struct ClientRow {
    view: ClientView,
    created: Moment,
    revoked: Option<Moment>,
    last_used: Option<Moment>,
}

impl ClientRow {
    fn scopes(&self) -> impl Iterator<Item = &str> {
        self.view.scope.split_ascii_whitespace()
    }
}

#[derive(Template)]
#[template(path = "merchant_clients.html")]
struct ClientsPage {
    page: Page,
    merchant: Frame,
    clients: Vec<ClientRow>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: String,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_clients)
        .service(ask_to_rotate)
        .service(rotate)
        .service(ask_to_revoke)
        .service(revoke);
}

#[get("/merchants/{merchant}/clients")]
async fn list_clients(
    app: web::Data<App>,
    signed_in: SignedIn,
    merchant: web::Path<String>,
    query: web::Query<After>,
) -> Result<HttpResponse, PageError> {
    let id = signed_in.merchant(&merchant)?;
    let query = [("merchant", id), ("after", query.after.as_str()), ("limit", "50")];
    let (found, list) = join(
        Merchant::load(&signed_in, id),
        signed_in.api.get::<ClientList>(Service::Auth, "v1/clients", &query),
    )
    .await;
    let (found, list, page) = (found?, list?, page(&app, &signed_in));
    let row = |view: ClientView| ClientRow {
        created: page.moment(view.created_at),
        revoked: view.revoked_at.map(|at| page.moment(at)),
        last_used: view.last_used_at.map(|at| page.moment(at)),
        view,
    };
    let clients = list.clients.into_iter().map(row).collect();
    let merchant = Frame::new(&signed_in.person, &found, Tab::Clients);
    html(&ClientsPage { page, merchant, clients, next: list.next })
}

/// The merchant and the client in a URL.
type ClientPath = web::Path<(String, String)>;

/// The list of the merchant's clients.
pub(super) fn list_url(merchant: &str) -> String {
    format!("/{}", path!("merchants", merchant, "clients"))
}

#[get("/merchants/{merchant}/clients/{client}/rotate")]
async fn ask_to_rotate(
    app: web::Data<App>,
    signed_in: SignedIn,
    path: ClientPath,
) -> Result<HttpResponse, PageError> {
    require_manage(&signed_in)?;
    let effects = vec![
        "The client gets a new secret, which is shown once.".to_owned(),
        "Tokens that the client already has stay valid.".to_owned(),
    ];
    Confirmation {
        page: page(&app, &signed_in),
        title: format!("Rotate the secret of client {}?", path.1),
        effects,
        button: "Rotate",
        asks_overlap: true,
        back: list_url(signed_in.merchant(&path.0)?),
    }
    .show()
}

#[post("/merchants/{merchant}/clients/{client}/rotate")]
async fn rotate(
    app: web::Data<App>,
    posted: Posted<RotateForm>,
    path: ClientPath,
) -> Result<HttpResponse, PageError> {
    let Posted { signed_in, form } = posted;
    let merchant = signed_in.merchant(&path.0)?;
    let url = path!("v1", "clients", path.1, "rotate");
    let client: ClientView =
        signed_in.api.send_json(Service::Auth, Method::POST, None, &url, &form.body()).await?;
    show_secret(&app, &signed_in, merchant, client)
}

/// Shows the secret of a client once.
pub(super) fn show_secret(
    app: &App,
    signed_in: &SignedIn,
    merchant: &str,
    client: ClientView,
) -> Result<HttpResponse, PageError> {
    html(&SecretPage {
        page: page(app, signed_in),
        title: format!("Secret of client {}", client.name),
        text: "Store this secret where your software can read it. It is shown only now.".to_owned(),
        values: vec![
            ("Client id", client.client_id),
            ("Client secret", client.client_secret.unwrap_or_default()),
        ],
        signs_messages: false,
        next: (list_url(merchant), "I have stored it"),
    })
}

#[get("/merchants/{merchant}/clients/{client}/revoke")]
async fn ask_to_revoke(
    app: web::Data<App>,
    signed_in: SignedIn,
    path: ClientPath,
) -> Result<HttpResponse, PageError> {
    require_manage(&signed_in)?;
    let effects = vec![
        "The client gets no new tokens, and all services reject its tokens within seconds."
            .to_owned(),
        "This cannot be undone. Create a new client instead.".to_owned(),
    ];
    Confirmation {
        page: page(&app, &signed_in),
        title: format!("Revoke client {}?", path.1),
        effects,
        button: "Revoke",
        asks_overlap: false,
        back: list_url(signed_in.merchant(&path.0)?),
    }
    .show()
}

#[derive(Deserialize)]
struct NoFields {}

#[post("/merchants/{merchant}/clients/{client}/revoke")]
async fn revoke(posted: Posted<NoFields>, path: ClientPath) -> Result<HttpResponse, PageError> {
    let signed_in = posted.signed_in;
    let list = list_url(signed_in.merchant(&path.0)?);
    let url = path!("v1", "clients", path.1, "revoke");
    let _: Value =
        signed_in.api.send_json(Service::Auth, Method::POST, None, &url, &json!({})).await?;
    Ok(Notice::ClientRevoked.redirect(&list))
}
