//! Pauses and resumes an endpoint, rotates its secret, deletes it.

use actix_web::{get, post, web};
use domain::merchant::Interface;
use pages::{
    api::{ApiError, Caller, Service},
    form::Fields,
    path,
};
use reqwest::Method;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    Merchant,
    endpoints::{interface_of, title},
    page, require_manage,
    set_endpoint::{EndpointPath, show_signing_secret},
    version::{NOT_DELETED, Version, is_outdated},
};
use crate::{
    Notice, PageError, PageResult, Posted, SignedIn,
    confirm::{ConfirmPage, RotateForm},
    person::NoFields,
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
        api: &Caller,
        method: Method,
        action: Option<&str>,
        body: &Value,
    ) -> Result<T, ApiError> {
        let name = self.interface.name();
        let mut path = path!("v1", "merchants", self.merchant, "endpoints", name);
        if let Some(action) = action {
            path = format!("{path}/{action}");
        }
        api.send_json(Service::Auth, method, None, &path, body).await
    }

    fn confirm(
        &self,
        signed_in: &SignedIn,
        (verb, button): (&str, &'static str),
        effects: &[&str],
        rotation: Option<RotateForm>,
    ) -> ConfirmPage {
        ConfirmPage {
            page: page(signed_in),
            title: format!("{verb} for {} of {}?", title(self.interface), self.merchant),
            effects: effects.iter().map(|effect| (*effect).to_owned()).collect(),
            button,
            key: None,
            rotation,
            version: None,
            problem: None,
            back: self.list(),
        }
    }

    fn confirm_rotation(&self, signed_in: &SignedIn, form: RotateForm) -> PageResult {
        let effects = [
            "The endpoint gets a new signing secret, which is shown once.",
            "Until the previous secret expires, messages carry the signatures of both.",
        ];
        let texts = ("Rotate the signing secret", "Rotate");
        self.confirm(signed_in, texts, &effects, Some(form)).show()
    }

    /// Asks about the endpoint as it is set now: another person can replace it before the form is sent.
    async fn confirm_deletion(
        &self,
        signed_in: &SignedIn,
        problem: Option<&'static str>,
    ) -> PageResult {
        let found = Merchant::load(signed_in, self.merchant).await?;
        let effects = [
            "The merchant receives no more messages of this kind.",
            "The URL, the credentials and the signing secret are deleted. You can set the endpoint up again \
             with a new secret.",
        ];
        let shown = self.confirm(signed_in, ("Delete the endpoint", "Delete"), &effects, None);
        let version = Some(Version::of(&found).to_string());
        let problem = problem.map(str::to_owned);
        ConfirmPage { version, problem, ..shown }.show()
    }

    /// Shows the new secret, or offers to force the rotation if a secret of an earlier one still signs.
    fn show_rotated(
        &self,
        signed_in: &SignedIn,
        form: RotateForm,
        rotated: Result<Rotated, ApiError>,
    ) -> PageResult {
        match rotated {
            Ok(Rotated { signing_secret }) => {
                show_signing_secret(signed_in, self.interface, signing_secret, self.list())
            }
            Err(ApiError::Conflict(body)) if body.code == "secret_in_use" => {
                self.confirm_rotation(signed_in, form.refused())
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[get("/merchants/{merchant}/endpoints/{interface}/pause")]
async fn ask_to_pause(signed_in: SignedIn, path: EndpointPath) -> PageResult {
    let effects = ["New messages wait. When you resume the endpoint, they are sent in order."];
    let target = Target::of(&signed_in, &path)?;
    target.confirm(&signed_in, ("Pause the endpoint", "Pause"), &effects, None).show()
}

#[post("/merchants/{merchant}/endpoints/{interface}/pause")]
async fn pause(posted: Posted<NoFields>, path: EndpointPath) -> PageResult {
    let target = Target::of(&posted.signed_in, &path)?;
    let _: Value =
        target.send(&posted.signed_in.api, Method::POST, Some("pause"), &json!({})).await?;
    Ok(Notice::EndpointPaused.redirect(&target.list()))
}

#[post("/merchants/{merchant}/endpoints/{interface}/resume")]
async fn resume(posted: Posted<NoFields>, path: EndpointPath) -> PageResult {
    let target = Target::of(&posted.signed_in, &path)?;
    let _: Value =
        target.send(&posted.signed_in.api, Method::POST, Some("resume"), &json!({})).await?;
    Ok(Notice::EndpointResumed.redirect(&target.list()))
}

#[get("/merchants/{merchant}/endpoints/{interface}/rotate")]
async fn ask_to_rotate(signed_in: SignedIn, path: EndpointPath) -> PageResult {
    Target::of(&signed_in, &path)?.confirm_rotation(&signed_in, RotateForm::default())
}

#[derive(Deserialize)]
struct Rotated {
    signing_secret: String,
}

#[post("/merchants/{merchant}/endpoints/{interface}/rotate")]
async fn rotate(posted: Posted<RotateForm>, path: EndpointPath) -> PageResult {
    let Posted { signed_in, form } = posted;
    let target = Target::of(&signed_in, &path)?;
    let api = form.key.api(&signed_in.api);
    let rotated: Result<Rotated, _> =
        target.send(&api, Method::POST, Some("rotate_secret"), &form.body()).await;
    target.show_rotated(&signed_in, form, rotated)
}

#[get("/merchants/{merchant}/endpoints/{interface}/delete")]
async fn ask_to_delete(signed_in: SignedIn, path: EndpointPath) -> PageResult {
    Target::of(&signed_in, &path)?.confirm_deletion(&signed_in, None).await
}

#[post("/merchants/{merchant}/endpoints/{interface}/delete")]
async fn delete(posted: Posted<Fields>, path: EndpointPath) -> PageResult {
    let Posted { signed_in, form } = posted;
    let target = Target::of(&signed_in, &path)?;
    let api = Version::read(&form).api(&signed_in);
    let deleted: Result<Value, _> = target.send(&api, Method::DELETE, None, &json!({})).await;
    match deleted {
        Ok(_) => Ok(Notice::EndpointDeleted.redirect(&target.list())),
        Err(error) if is_outdated(&error) => {
            target.confirm_deletion(&signed_in, Some(NOT_DELETED)).await
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::StatusCode;

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

    #[actix_web::test]
    async fn an_endpoint_that_another_person_changed_is_not_deleted() {
        for (version, expected) in [("1", StatusCode::CONFLICT), ("2", StatusCode::SEE_OTHER)] {
            let app = fixtures::app_with_changed_merchant();
            let path = "/merchants/acme/endpoints/rma/delete";
            let (status, _, page) =
                fixtures::post(app, routes, path, &[("version", version)]).await;
            assert_eq!(status, expected, "{page}");
            if status == StatusCode::CONFLICT {
                assert!(page.contains("Nothing was deleted"), "{page}");
                assert!(page.contains(r#"name="version" value="2""#), "{page}");
            }
        }
    }

    #[test]
    fn a_rotation_that_ends_a_secret_in_use_can_be_forced() {
        let operator = fixtures::signed_in("operator", None, &json!({}));
        let path = ("acme".to_owned(), "rma".to_owned());
        let target = Target::of(&operator, &path).unwrap();
        let refused = |code: &str| {
            let body = serde_json::from_value(json!({ "message": "no", "code": code })).unwrap();
            let refused = Err(ApiError::Conflict(body));
            target.show_rotated(&operator, RotateForm::default(), refused)
        };
        assert_eq!(refused("secret_in_use").unwrap().status(), StatusCode::CONFLICT);
        assert!(refused("").is_err());
    }
}
