//! Pauses and resumes an endpoint, rotates its secret, deletes it.

use actix_web::{HttpResponse, get, post, web};
use domain::merchant::Interface;
use pages::{api::Service, path};
use reqwest::Method;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    endpoints::{interface_of, title},
    page, require_manage,
    set_endpoint::{EndpointPath, show_signing_secret},
};
use crate::{
    App,
    confirm::{Confirmation, RotateForm},
    error::PageError,
    notice::Notice,
    person::{Posted, SignedIn},
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(ask_to_pause)
        .service(pause)
        .service(resume)
        .service(ask_to_rotate)
        .service(rotate)
        .service(ask_to_delete)
        .service(delete);
}

#[derive(Deserialize)]
struct NoFields {}

/// The endpoint of a request.
struct Target<'a> {
    merchant: &'a str,
    interface: Interface,
}

impl<'a> Target<'a> {
    fn of(signed_in: &'a SignedIn, path: &'a (String, String)) -> Result<Self, PageError> {
        let interface = interface_of(&path.1)?;
        let merchant = signed_in.merchant(&path.0)?;
        require_manage(signed_in)?;
        Ok(Self { merchant, interface })
    }

    /// The list of the merchant's endpoints.
    fn list(&self) -> String {
        format!("/{}", path!("merchants", self.merchant, "endpoints"))
    }

    async fn send<T: DeserializeOwned>(
        &self,
        signed_in: &SignedIn,
        method: Method,
        action: Option<&str>,
        body: &Value,
    ) -> Result<T, PageError> {
        let name = self.interface.name();
        let mut path = path!("v1", "merchants", self.merchant, "endpoints", name);
        if let Some(action) = action {
            path = format!("{path}/{action}");
        }
        Ok(signed_in.api.send_json(Service::Auth, method, None, &path, body).await?)
    }

    fn confirm(
        &self,
        app: &App,
        signed_in: &SignedIn,
        (verb, button): (&str, &'static str),
        effects: &[&str],
    ) -> Result<HttpResponse, PageError> {
        Confirmation {
            page: page(app, signed_in),
            title: format!("{verb} for {} of {}?", title(self.interface), self.merchant),
            effects: effects.iter().map(|effect| (*effect).to_owned()).collect(),
            button,
            rotation: (button == ROTATE).then(RotateForm::default),
            back: self.list(),
        }
        .show()
    }
}

const ROTATE: &str = "Rotate";

#[get("/merchants/{merchant}/endpoints/{interface}/pause")]
async fn ask_to_pause(
    app: web::Data<App>,
    signed_in: SignedIn,
    path: EndpointPath,
) -> Result<HttpResponse, PageError> {
    let effects = ["New messages wait. When you resume the endpoint, they are sent in order."];
    let target = Target::of(&signed_in, &path)?;
    target.confirm(&app, &signed_in, ("Pause the endpoint", "Pause"), &effects)
}

#[post("/merchants/{merchant}/endpoints/{interface}/pause")]
async fn pause(posted: Posted<NoFields>, path: EndpointPath) -> Result<HttpResponse, PageError> {
    let target = Target::of(&posted.signed_in, &path)?;
    let _: Value = target.send(&posted.signed_in, Method::POST, Some("pause"), &json!({})).await?;
    Ok(Notice::EndpointPaused.redirect(&target.list()))
}

#[post("/merchants/{merchant}/endpoints/{interface}/resume")]
async fn resume(posted: Posted<NoFields>, path: EndpointPath) -> Result<HttpResponse, PageError> {
    let target = Target::of(&posted.signed_in, &path)?;
    let _: Value = target.send(&posted.signed_in, Method::POST, Some("resume"), &json!({})).await?;
    Ok(Notice::EndpointResumed.redirect(&target.list()))
}

#[get("/merchants/{merchant}/endpoints/{interface}/rotate")]
async fn ask_to_rotate(
    app: web::Data<App>,
    signed_in: SignedIn,
    path: EndpointPath,
) -> Result<HttpResponse, PageError> {
    let effects = [
        "The endpoint gets a new signing secret, which is shown once.",
        "Until the previous secret expires, messages carry the signatures of both.",
    ];
    let target = Target::of(&signed_in, &path)?;
    target.confirm(&app, &signed_in, ("Rotate the signing secret", ROTATE), &effects)
}

#[derive(Deserialize)]
struct Rotated {
    signing_secret: String,
}

#[post("/merchants/{merchant}/endpoints/{interface}/rotate")]
async fn rotate(
    app: web::Data<App>,
    posted: Posted<RotateForm>,
    path: EndpointPath,
) -> Result<HttpResponse, PageError> {
    let Posted { signed_in, form } = posted;
    let target = Target::of(&signed_in, &path)?;
    let rotated: Rotated =
        target.send(&signed_in, Method::POST, Some("rotate_secret"), &form.body()).await?;
    let secret = rotated.signing_secret;
    show_signing_secret(&app, &signed_in, target.interface, secret, target.list())
}

#[get("/merchants/{merchant}/endpoints/{interface}/delete")]
async fn ask_to_delete(
    app: web::Data<App>,
    signed_in: SignedIn,
    path: EndpointPath,
) -> Result<HttpResponse, PageError> {
    let effects = [
        "The merchant receives no more messages of this kind.",
        "The URL, the credentials and the signing secret are deleted. You can set the endpoint up again \
         with a new secret.",
    ];
    let target = Target::of(&signed_in, &path)?;
    target.confirm(&app, &signed_in, ("Delete the endpoint", "Delete"), &effects)
}

#[post("/merchants/{merchant}/endpoints/{interface}/delete")]
async fn delete(posted: Posted<NoFields>, path: EndpointPath) -> Result<HttpResponse, PageError> {
    let target = Target::of(&posted.signed_in, &path)?;
    let _: Value = target.send(&posted.signed_in, Method::DELETE, None, &json!({})).await?;
    Ok(Notice::EndpointDeleted.redirect(&target.list()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn the_endpoint_of_another_merchant_does_not_exist() {
        let viewer = fixtures::signed_in("merchant-viewer", Some("acme"), &json!({}));
        let error = |merchant: &str| {
            Target::of(&viewer, &(merchant.to_owned(), "rma".to_owned())).err().unwrap()
        };
        assert!(matches!(error("rival"), PageError::NotFound));
        assert!(matches!(error("acme"), PageError::Denied(_)));
    }
}
