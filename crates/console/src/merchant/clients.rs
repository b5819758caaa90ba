//! The API clients of a merchant: list, rotate, revoke.

use actix_web::{get, post, web};
use askama::Template;
use chrono::{DateTime, Utc};
use futures_util::future::join;
use pages::{
    api::{ApiError, Service},
    path,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{After, Frame, Merchant, Tab, page, page_of, require_manage};
use crate::{
    Notice, Page, PageError, PageResult, Posted, SignedIn,
    confirm::{ConfirmPage, RotateForm, SecretPage},
    html,
    markup::{Markup, badge, button, code, or_dash, row, text},
    person::NoFields,
    record_list::{PAGE, Records},
    table::Table,
};

/// A client as auth describes it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct ClientView {
    pub(super) client_id: String,
    #[serde(default)]
    merchant: Option<String>,
    pub(super) name: String,
    scope: String,
    created_at: DateTime<Utc>,
    revoked_at: Option<DateTime<Utc>>,
    last_used_at: Option<DateTime<Utc>>,
    /// Only in the response that creates the secret.
    pub(super) client_secret: Option<String>,
}

impl ClientView {
    /// Loads the client of a URL. A client of another merchant does not exist.
    async fn load(signed_in: &SignedIn, path: &(String, String)) -> Result<Self, PageError> {
        let merchant = signed_in.merchant(&path.0)?;
        let url = path!("v1", "clients", path.1);
        let client: Self = signed_in.api.get(Service::Auth, &url, &[]).await?;
        require_manage(signed_in)?;
        client.of(merchant)
    }

    fn of(self, merchant: &str) -> Result<Self, PageError> {
        let is_own = self.merchant.as_deref() == Some(merchant);
        if is_own { Ok(self) } else { Err(PageError::NotFound) }
    }
}

#[derive(Template)]
#[template(path = "merchant_clients.html")]
struct ClientsPage {
    page: Page,
    merchant: Frame,
    table: Table,
    next: Option<String>,
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
    signed_in: SignedIn,
    merchant: web::Path<String>,
    query: web::Query<After>,
) -> PageResult {
    let id = signed_in.merchant(&merchant)?;
    let query = [("merchant", id), ("after", query.after.as_str()), ("limit", PAGE)];
    let (found, list) = join(
        Merchant::load(&signed_in, id),
        signed_in.api.get::<Records<ClientView>>(Service::Auth, "v1/clients", &query),
    )
    .await;
    let found = found?;
    let Records { records, next } = list?;
    let page = page_of(&signed_in, &found);
    let merchant = Frame::new(&signed_in.person, &found, Tab::Clients);
    let table = client_table(&records, &merchant, &page);
    html(&ClientsPage { page, merchant, table, next })
}

fn client_table(clients: &[ClientView], merchant: &Frame, page: &Page) -> Table {
    Table::of("Clients", clients)
        .head("Client", |it| text(&it.name).below(code(&it.client_id)))
        .cell("Scopes", |it| {
            let scopes = it.scope.split_ascii_whitespace().map(|scope| badge("", scope));
            scopes.reduce(Markup::and).unwrap_or_default()
        })
        .cell("Created", |it| page.time(it.created_at))
        .cell("Last used", |it| page.time_or(it.last_used_at, "never"))
        .cell("State", |it| match it.revoked_at {
            Some(at) => badge("bad", "revoked").and(page.time(at).classed("small")),
            None => badge("good", "active"),
        })
        .cell_if(page.person.may_manage(), "Actions", |it| {
            let url = merchant.entry_url("clients", &it.client_id);
            let rotation =
                button(format!("{url}/rotate"), "Rotate secret …", format!(" of {}", it.name));
            let revocation = button(format!("{url}/revoke"), "Revoke …", format!(" {}", it.name));
            or_dash(it.revoked_at.is_none().then(|| row([rotation, revocation])))
        })
        .table()
}

/// The merchant and the client in a URL.
type ClientPath = web::Path<(String, String)>;

/// The list of the merchant's clients.
pub(super) fn list_url(merchant: &str) -> String {
    format!("/{}", path!("merchants", merchant, "clients"))
}

#[get("/merchants/{merchant}/clients/{client}/rotate")]
async fn ask_to_rotate(signed_in: SignedIn, path: ClientPath) -> PageResult {
    ClientView::load(&signed_in, &path).await?;
    rotation_page(&signed_in, &path, RotateForm::default())
}

fn rotation_page(
    signed_in: &SignedIn,
    (merchant, client): &(String, String),
    form: RotateForm,
) -> PageResult {
    let effects = vec![
        "The client gets a new secret, which is shown once.".to_owned(),
        "Tokens that the client already has stay valid.".to_owned(),
    ];
    ConfirmPage {
        page: page(signed_in),
        title: format!("Rotate the secret of client {client}?"),
        effects,
        button: "Rotate",
        key: None,
        rotation: Some(form),
        version: None,
        problem: None,
        back: list_url(merchant),
    }
    .show()
}

#[post("/merchants/{merchant}/clients/{client}/rotate")]
async fn rotate(posted: Posted<RotateForm>, path: ClientPath) -> PageResult {
    let Posted { signed_in, form } = posted;
    // Refuses a client of another merchant, and a person without the right to manage clients.
    ClientView::load(&signed_in, &path).await?;
    let url = path!("v1", "clients", path.1, "rotate");
    let rotated: Result<ClientView, _> = form
        .key
        .api(&signed_in.api)
        .send_json(Service::Auth, Method::POST, None, &url, &form.body())
        .await;
    match rotated {
        Ok(client) => show_secret(&signed_in, &path.0, client),
        Err(ApiError::Conflict(body)) if body.code == "secret_in_use" => {
            rotation_page(&signed_in, &path, form.refused())
        }
        Err(error) => Err(error.into()),
    }
}

/// Shows the secret of a client once.
pub(super) fn show_secret(signed_in: &SignedIn, merchant: &str, client: ClientView) -> PageResult {
    let secret = client.client_secret.ok_or_else(|| {
        tracing::error!("the response about client {} has no secret", client.client_id);
        PageError::Internal
    })?;
    html(&SecretPage {
        page: page(signed_in),
        title: format!("Secret of client {}", client.name),
        text: "Store this secret where your software can read it. It is shown only now.".to_owned(),
        values: vec![("Client id", client.client_id), ("Client secret", secret)],
        signs_messages: false,
        next: (list_url(merchant), "I have stored it"),
    })
}

#[get("/merchants/{merchant}/clients/{client}/revoke")]
async fn ask_to_revoke(signed_in: SignedIn, path: ClientPath) -> PageResult {
    ClientView::load(&signed_in, &path).await?;
    let effects = vec![
        "The client gets no new tokens, and all services reject its tokens within seconds."
            .to_owned(),
        "This cannot be undone. Create a new client instead.".to_owned(),
    ];
    ConfirmPage {
        page: page(&signed_in),
        title: format!("Revoke client {}?", path.1),
        effects,
        button: "Revoke",
        key: None,
        rotation: None,
        version: None,
        problem: None,
        back: list_url(&path.0),
    }
    .show()
}

#[post("/merchants/{merchant}/clients/{client}/revoke")]
async fn revoke(posted: Posted<NoFields>, path: ClientPath) -> PageResult {
    let signed_in = posted.signed_in;
    ClientView::load(&signed_in, &path).await?;
    let url = path!("v1", "clients", path.1, "revoke");
    let _: Value =
        signed_in.api.send_json(Service::Auth, Method::POST, None, &url, &json!({})).await?;
    Ok(Notice::ClientRevoked.redirect(&list_url(&path.0)))
}

#[cfg(test)]
mod tests;
