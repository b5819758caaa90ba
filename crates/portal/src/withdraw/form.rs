//! The form of a withdrawal: the name, the contract and the contact of the shopper.

use domain::{merchant::LookupKey, returns::Withdrawal};
use pages::form::Field;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{check::is_email, merchant::Portal, page::Page};

/// The longest texts. The cookie keeps the name and the address.
const MAX_NAME_BYTES: usize = 200;
const MAX_EMAIL_BYTES: usize = 254;
const MAX_BYTES: usize = 500;

/// The form as the browser sent it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SentForm {
    name: String,
    order: String,
    email: String,
    zip: String,
}

/// The form as the page shows it.
#[derive(Debug)]
pub(super) struct WithdrawForm {
    pub(super) name: Field,
    pub(super) order: Field,
    pub(super) email: Field,
    pub(super) zip: Field,
    /// Whether the zip code proves the order, because the merchant does not accept an e-mail address.
    pub(super) needs_zip: bool,
}

impl WithdrawForm {
    pub(super) fn new(portal: &Portal, known: Option<&Withdrawal>, order: &str) -> Self {
        let known = |text: fn(&Withdrawal) -> &str| Field::new(known.map_or("", text));
        Self {
            name: known(|known| &known.name),
            order: Field::new(order),
            email: known(|known| &known.email),
            zip: Field::default(),
            needs_zip: needs_zip(portal),
        }
    }

    /// The form with an error beside every field that cannot be right.
    pub(super) fn check(page: &Page, sent: SentForm) -> Self {
        let text = |text: &str, most: usize| {
            let text = text.trim();
            Field::new(if text.len() <= most { text } else { "" })
        };
        let mut form = Self {
            name: text(&sent.name, MAX_NAME_BYTES),
            order: text(&sent.order, MAX_BYTES),
            email: text(&sent.email, MAX_EMAIL_BYTES),
            zip: text(&sent.zip, MAX_BYTES),
            needs_zip: needs_zip(&page.portal),
        };
        if form.name.value.is_empty() {
            form.name.reject(page.t("withdraw-name-missing"));
        }
        if form.order.value.is_empty() {
            form.order.reject(page.t("find-order-missing"));
        }
        if !is_email(&form.email.value) {
            form.email.reject(page.t("withdraw-email-missing"));
        }
        if form.needs_zip && form.zip.value.is_empty() {
            form.zip.reject(page.t("find-zip-missing"));
        }
        form
    }

    /// The body of the look-up, if every field can be right.
    pub(super) fn lookup(&self) -> Option<Value> {
        let fields = [&self.name, &self.order, &self.email, &self.zip];
        let order = &self.order.value;
        let body = if self.needs_zip {
            json!({ "order_identifier": order, "zip_code": self.zip.value })
        } else {
            json!({ "order_identifier": order, "email": self.email.value })
        };
        fields.into_iter().all(Field::is_valid).then_some(body)
    }
}

fn needs_zip(portal: &Portal) -> bool {
    !portal.lookup_keys.contains(&LookupKey::Email)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn check(keys: &[LookupKey], fields: [&str; 4]) -> WithdrawForm {
        let mut page = Page::without_merchant(&TestRequest::get().to_http_request());
        let portal = json!({ "merchant": "a", "version": 1, "name": "A", "lookup_keys": keys });
        page.portal = serde_json::from_value::<Portal>(portal).unwrap().into();
        let [name, order, email, zip] = fields.map(str::to_owned);
        WithdrawForm::check(&page, SentForm { name, order, email, zip })
    }

    #[test]
    fn the_contact_proves_the_order() {
        let form = check(LookupKey::ALL, ["Ada", " A-1 ", "a@b.test", ""]);
        assert_eq!(form.lookup(), Some(json!({ "order_identifier": "A-1", "email": "a@b.test" })));
        let zip = &[LookupKey::ZipCode];
        let form = check(zip, ["Ada", "A-1", "a@b.test", "10115"]);
        assert_eq!(form.lookup(), Some(json!({ "order_identifier": "A-1", "zip_code": "10115" })));
        assert!(!check(zip, ["Ada", "A-1", "a@b.test", ""]).zip.is_valid());
    }

    #[test]
    fn name_contract_and_contact_are_required() {
        assert!(!check(LookupKey::ALL, ["Ada", "A-1", "a b@c.test", ""]).email.is_valid());
        let form = check(LookupKey::ALL, ["", "", "ab.test", ""]);
        assert!(!form.name.is_valid() && !form.order.is_valid() && !form.email.is_valid());
        assert_eq!((form.lookup(), form.email.value.as_str()), (None, "ab.test"));
        assert!(!check(LookupKey::ALL, [&"x".repeat(201), "A-1", "a@b.test", ""]).name.is_valid());
    }
}
