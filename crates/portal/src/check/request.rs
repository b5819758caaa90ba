//! The request for the return. It is sealed in the form, because it has the prices of variants, which the
//! shopper must not change.

use std::time::Duration;

use domain::{
    merchant::Sealed,
    returns::{Variant, Withdrawal},
};
use futures_util::future::try_join_all;
use pages::api::{ApiError, Service};
use reqwest::Method;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::quote::Quote;
use crate::{
    App,
    basket::Item,
    draft::{Resolution, ReturnDraft},
    error::PageError,
    offer,
    visit::Visit,
};

/// A confirmation writes more than other requests.
const CONFIRMATION_DEADLINE: Duration = Duration::from_secs(10);
/// Quotes need the address of a giftee, who gives it on the page with the quote.
const NO_EMAIL: &str = "giftee@example.invalid";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) is_gift: bool,
    pub(crate) items: Vec<RequestItem>,
    /// The person who withdraws from the contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) withdrawal: Option<Withdrawal>,
    /// The code of the language in which the shopper filled in the form, if shoppers get mails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<String>,
}

/// The units of one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RequestItem {
    pub(crate) order: String,
    pub(crate) line: String,
    pub(crate) units: Vec<i32>,
    pub(crate) reason: String,
    /// The words of the shopper. The form has them, so the sealed request need not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) comment: Option<String>,
    pub(crate) resolution: String,
    pub(crate) variant: Option<Variant>,
    /// The price in the shop, to compare the variant with.
    pub(crate) unit_price: Option<i64>,
}

/// A return that was created.
#[derive(Deserialize)]
pub(crate) struct Created {
    pub(crate) rma_identifier: String,
}

impl Request {
    /// The request for the chosen items. `None` if a resolution is not possible.
    pub(crate) async fn new(
        visit: &Visit,
        draft: &ReturnDraft,
        items: &[Item],
        is_gift: bool,
    ) -> Result<Option<Self>, PageError> {
        let page = crate::page::Page::new(visit, None);
        let is_possible = |item: &Item| {
            let resolution = item.choice.resolution;
            resolution.is_some_and(|it| item.resolutions(&page, is_gift).contains(&it))
        };
        if !items.iter().all(is_possible) {
            return Ok(None);
        }
        let items = try_join_all(items.iter().map(|item| RequestItem::load(visit, item))).await?;
        let items: Option<Vec<_>> = items.into_iter().collect();
        let method = draft.method.clone().unwrap_or_default();
        let language = visit.portal.mails.then(|| visit.language.translation().to_owned());
        Ok(items.map(|items| Self { method, is_gift, items, withdrawal: None, language }))
    }

    fn context(visit: &Visit) -> String {
        format!("return request at {}", visit.merchant())
    }

    pub(crate) fn seal(&self, app: &App, visit: &Visit) -> Result<String, PageError> {
        let sealed = app.sealer.seal(&Self::context(visit), &json!(self).to_string());
        sealed.map(|sealed| sealed.0).map_err(|error| {
            tracing::error!(%error, "a request cannot be sealed");
            PageError::Internal
        })
    }

    pub(crate) fn open(app: &App, visit: &Visit, text: &str) -> Result<Self, PageError> {
        let opened = app.sealer.open(&Self::context(visit), &Sealed(text.to_owned())).ok();
        let request = opened.and_then(|text| serde_json::from_str(text.expose_secret()).ok());
        request.ok_or(PageError::BadForm)
    }

    pub(crate) async fn quote(&self, visit: &Visit) -> Result<Quote, ApiError> {
        let merchant = Some(visit.merchant());
        let body = self.body(NO_EMAIL, false);
        let path = "v1/returns/quote";
        visit.api.send_json(Service::RmaEngine, Method::POST, merchant, path, &body).await
    }

    /// Creates the return, or finds the one that the same form created before.
    pub(crate) async fn send(
        &self,
        visit: &Visit,
        quote: &str,
        email: &str,
        key: Uuid,
    ) -> Result<Created, ApiError> {
        let mut body = self.body(email, true);
        if let Some(members) = body.as_object_mut() {
            members.insert("quote".to_owned(), json!(quote));
        }
        let api = visit.api.clone().with_deadline(CONFIRMATION_DEADLINE);
        let api = api.with_header("idempotency-key", key.to_string());
        let merchant = Some(visit.merchant());
        api.send_json(Service::RmaEngine, Method::POST, merchant, "v1/returns", &body).await
    }

    /// Quotes need no comments.
    fn body(&self, email: &str, has_comments: bool) -> Value {
        let units: Vec<_> = self.items.iter().flat_map(|item| item.bodies(has_comments)).collect();
        let mut body = json!({ "return_method": self.method, "units": units });
        if let Some(members) = body.as_object_mut().filter(|_| self.is_gift) {
            members.insert("gift_refund_only".to_owned(), json!(true));
            members.insert("giftee_email".to_owned(), json!(email));
        }
        if let (Some(members), Some(person)) = (body.as_object_mut(), &self.withdrawal) {
            members.insert("withdrawal".to_owned(), json!(person));
        }
        if let (Some(members), Some(language)) = (body.as_object_mut(), &self.language) {
            members.insert("language".to_owned(), json!(language));
        }
        body
    }
}

impl RequestItem {
    /// `None` if the variant is not offered any more.
    async fn load(visit: &Visit, item: &Item) -> Result<Option<Self>, ApiError> {
        let choice = &item.choice;
        let variant = if choice.resolution == Some(Resolution::Exchange) {
            let offer = offer::load(visit, item).await?;
            let Some(found) = offer.variant(&choice.variant, choice.count) else { return Ok(None) };
            Some(Variant {
                sku: found.sku.clone(),
                title: found.title.clone(),
                unit_price_amount_cents: found.unit_price_amount_cents,
                product_identifier: found.product_identifier.clone(),
            })
        } else {
            None
        };
        Ok(Some(Self {
            order: choice.order.clone(),
            line: choice.line.clone(),
            units: item.units(),
            reason: choice.reason.clone(),
            comment: None,
            resolution: choice.resolution.map_or("", Resolution::value).to_owned(),
            variant,
            unit_price: item.line.unit_price,
        }))
    }

    /// One object for each unit.
    fn bodies(&self, has_comment: bool) -> Vec<Value> {
        let comment = self.comment.as_ref().filter(|_| has_comment);
        let body = |unit: &i32| {
            let mut body = json!({
                "order_identifier": self.order, "order_line_item_identifier": self.line,
                "unit": unit, "return_reason": self.reason, "resolution": self.resolution,
            });
            if let (Some(members), Some(variant)) = (body.as_object_mut(), &self.variant) {
                members.insert("variant".to_owned(), json!(variant));
            }
            if let (Some(members), Some(comment)) = (body.as_object_mut(), comment) {
                members.insert("comment".to_owned(), json!(comment));
            }
            body
        };
        self.units.iter().map(body).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn request(resolution: &str, variant: Option<i64>) -> Request {
        let variant = variant.map(|price| Variant {
            sku: "M-B".to_owned(),
            title: "Shirt M blue".to_owned(),
            unit_price_amount_cents: Some(price),
            product_identifier: None,
        });
        let item = RequestItem {
            order: "A-1".to_owned(),
            line: "1".to_owned(),
            units: vec![1, 3],
            reason: "SMALL".to_owned(),
            comment: None,
            resolution: resolution.to_owned(),
            variant,
            unit_price: Some(5000),
        };
        Request {
            method: "mail-back".to_owned(),
            is_gift: false,
            items: vec![item],
            withdrawal: None,
            language: None,
        }
    }

    #[test]
    fn the_same_form_is_the_same_request() {
        let request = request("exchange", Some(5000));
        let body = request.body("ignored@b.test", true);
        let unit = |unit: i32| {
            json!({
                "order_identifier": "A-1", "order_line_item_identifier": "1", "unit": unit,
                "return_reason": "SMALL", "resolution": "exchange",
                "variant": { "sku": "M-B", "title": "Shirt M blue", "unit_price_amount_cents": 5000 },
            })
        };
        assert_eq!(body, json!({ "return_method": "mail-back", "units": [unit(1), unit(3)] }));
        let opened: Request = serde_json::from_str(&json!(request).to_string()).unwrap();
        assert_eq!(opened.body("ignored@b.test", true), body);
    }

    #[test]
    fn a_giftee_has_an_address() {
        let request = Request { is_gift: true, ..request("gift_card", None) };
        let body = request.body("g@b.test", true);
        assert_eq!(body.get("giftee_email"), Some(&json!("g@b.test")));
        assert_eq!(body.get("gift_refund_only"), Some(&json!(true)));
    }

    #[test]
    fn mails_are_in_the_language_of_the_form() {
        let request = Request { language: Some("de".to_owned()), ..request("refund", None) };
        assert_eq!(request.body("ignored@b.test", true).get("language"), Some(&json!("de")));
    }

    #[test]
    fn each_unit_has_the_comment_except_in_a_quote() {
        let mut request = request("refund", None);
        request.items[0].comment = Some("Too tight".to_owned());
        let comments = |has_comments| {
            let body = request.body("ignored@b.test", has_comments);
            let units = body["units"].as_array().unwrap().clone();
            units.iter().map(|unit| unit["comment"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(comments(true), [json!("Too tight"), json!("Too tight")]);
        assert_eq!(comments(false), [Value::Null, Value::Null]);
    }
}
