//! Labels that have expired, requested again by the shopper.

use actix_web::{HttpResponse, post, web};
use pages::{api::Service, path};
use reqwest::Method;
use serde::de::IgnoredAny;
use serde_json::json;

use super::return_url;
use crate::{error::PageError, page::redirect, visit::Proven};

/// Requests the labels, and shows the return, which waits for them.
#[post("/{merchant}/returns/{rma}/labels")]
pub(super) async fn renew_labels(
    Proven(visit): Proven,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let (_, name) = path.into_inner();
    let merchant = Some(visit.merchant());
    let path = path!("v1", "returns", &name, "labels");
    let _: IgnoredAny =
        visit.api.send_json(Service::RmaEngine, Method::POST, merchant, &path, &json!({})).await?;
    Ok(redirect(&return_url(&visit, &name, "")))
}
