//! Makes a link with which the shopper starts a return without a look-up.

use actix_web::{post, web};
use pages::{api::Service, path};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use crate::{PageError, PageResult, Posted, Section, confirm::SecretPage, html, person::NoFields};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(make_link);
}

#[derive(Deserialize)]
struct DeepLink {
    url: String,
}

#[post("/merchants/{merchant}/orders/{order}/link")]
async fn make_link(posted: Posted<NoFields>, path: web::Path<(String, String)>) -> PageResult {
    let Posted { signed_in, .. } = posted;
    let (merchant, order) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    if !signed_in.person.may_manage() {
        return Err(PageError::Denied("your role cannot make links".to_owned()));
    }
    let body = json!({ "order_identifier": order });
    let link: DeepLink = signed_in
        .api
        .send_json(Service::RmaEngine, Method::POST, Some(own), "v1/deep_links", &body)
        .await?;
    let order_url = path!("merchants", merchant, "orders", order);
    html(&SecretPage {
        page: signed_in.page(Section::Orders),
        title: format!("Link to the portal for order {order}"),
        text: "Send it to the shopper only: everyone who has the link can return units of the order. It works \
               for 90 days and is not shown again."
            .to_owned(),
        values: vec![("Link", link.url)],
        signs_messages: false,
        next: (format!("/{order_url}"), "Back to the order"),
    })
}
