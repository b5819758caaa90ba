//! Abandons an undeliverable exchange order, after a page that says what happens.

use actix_web::{get, post, web};
use api::exchange::ExchangeOrderView;
use askama::Template;
use pages::{
    api::{ApiError, Service},
    form::Field,
    path,
};
use reqwest::Method;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::json;

use super::{details::load_order, url};
use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn, error::sentence, html, rejected,
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(confirm_abandon).service(abandon_exchange_order);
}

#[derive(Template)]
#[template(path = "exchange_order_abandon.html")]
struct AbandonPage {
    page: Page,
    order: ExchangeOrderView,
    url: String,
    form: AbandonFields,
}

#[derive(Debug, Default)]
struct AbandonFields {
    note: Field,
    /// The reason why nothing was changed.
    problem: Option<String>,
}

#[derive(Deserialize)]
struct AbandonForm {
    #[serde(default)]
    note: String,
}

impl AbandonFields {
    /// The form with the reason why nothing was changed. It keeps the note, also if another person abandoned the
    /// exchange order meanwhile.
    fn rejected(note: &str, error: ApiError) -> Result<Self, ApiError> {
        let mut fields = Self { note: Field::new(note), problem: None };
        match error {
            ApiError::Conflict(body) => fields.problem = Some(sentence(&body.message)),
            ApiError::Invalid(body) => {
                fields.note.error = body.field("$.note").map(|text| sentence(&text));
                if fields.note.is_valid() {
                    fields.problem = Some(sentence(&body.message));
                }
            }
            error => return Err(error),
        }
        Ok(fields)
    }
}

#[get("/merchants/{merchant}/exchange-orders/{order}/abandon")]
async fn confirm_abandon(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, original_order) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    if !signed_in.person.is_operator() {
        return Err(PageError::Denied("only operators can abandon exchange orders".to_owned()));
    }
    let (order, _) = load_order(&signed_in, own, &original_order).await?;
    let page = signed_in.page(Section::ExchangeOrders);
    let url = url(&merchant, &original_order);
    html(&AbandonPage { page, url, order, form: AbandonFields::default() })
}

#[post("/merchants/{merchant}/exchange-orders/{order}/abandon")]
async fn abandon_exchange_order(
    posted: Posted<AbandonForm>,
    path: web::Path<(String, String)>,
) -> PageResult {
    let Posted { signed_in, form } = posted;
    let note = form.note.trim();
    let (merchant, original_order) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    let abandon_path = path!("v1", "exchange_orders", original_order, "abandon");
    let abandoned: Result<IgnoredAny, _> = signed_in
        .api
        .send_json(
            Service::Exchange,
            Method::POST,
            Some(own),
            &abandon_path,
            &json!({ "note": note }),
        )
        .await;
    let form = match abandoned {
        Ok(_) => {
            return Ok(Notice::ExchangeOrderAbandoned.redirect(&url(&merchant, &original_order)));
        }
        Err(error) => AbandonFields::rejected(note, error)?,
    };
    let (order, _) = load_order(&signed_in, own, &original_order).await?;
    let page = signed_in.page(Section::ExchangeOrders);
    let url = url(&merchant, &original_order);
    rejected(&AbandonPage { page, url, order, form })
}

#[cfg(test)]
mod tests {
    use pages::api::ErrorBody;

    use super::*;

    #[test]
    fn a_rejected_note_is_kept_with_its_error() {
        let text = r#"{"message": "invalid", "errors": [
            {"field": "$.note", "code": "invalid", "detail": "must have 1 to 1000 characters"}]}"#;
        let body: ErrorBody = serde_json::from_str(text).unwrap();
        let fields = AbandonFields::rejected("a", ApiError::Invalid(body)).unwrap();
        assert_eq!((fields.note.value.as_str(), fields.note.is_valid()), ("a", false));
        assert_eq!(fields.problem, None);
        let message = "the exchange order is being replayed".to_owned();
        let conflict = ApiError::Conflict(ErrorBody { message, ..ErrorBody::default() });
        let fields = AbandonFields::rejected("a", conflict).unwrap();
        assert!(fields.note.is_valid() && fields.problem.is_some());
    }
}
