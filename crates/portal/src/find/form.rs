//! The form of the find page.

use domain::merchant::LookupKey;
use pages::form::Field;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{merchant::Portal, page::Page, sent::Problem};

/// The longest text that a shopper can type into a field.
const MAX_BYTES: usize = 500;

/// The form as the browser sent it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SentForm {
    order: String,
    by: String,
    key: String,
    gift_code: String,
    pub(crate) next: String,
    pub(super) again: String,
}

/// The form as the page shows it.
#[derive(Debug)]
pub(crate) struct FindForm {
    pub(crate) order: Field,
    pub(super) is_gift: bool,
    pub(crate) key: Field,
    pub(crate) gift_code: Field,
    keys: Vec<LookupKey>,
}

impl FindForm {
    pub(crate) fn new(portal: &Portal, order: &str) -> Self {
        Self {
            order: Field::new(order),
            is_gift: false,
            key: Field::default(),
            gift_code: Field::default(),
            keys: portal.lookup_keys.clone(),
        }
    }

    /// The form with an error beside every field that cannot be right.
    pub(crate) fn check(page: &Page, sent: SentForm) -> Self {
        let text = |text: &str| {
            let text = text.trim();
            Field::new(if text.len() <= MAX_BYTES { text } else { "" })
        };
        let mut form = Self {
            order: text(&sent.order),
            is_gift: sent.by == "gift",
            key: text(&sent.key),
            gift_code: text(&sent.gift_code),
            keys: page.portal.lookup_keys.clone(),
        };
        if form.order.value.is_empty() {
            form.order.reject(page.t("find-order-missing"));
        }
        if form.is_gift && form.gift_code.value.is_empty() {
            form.gift_code.reject(page.t("find-gift-missing"));
        }
        if !form.is_gift && form.key_kind().is_none() {
            form.key.reject(page.t(form.missing_key()));
        }
        form
    }

    /// The fact that the shopper typed. Only e-mail addresses contain an @.
    fn key_kind(&self) -> Option<LookupKey> {
        let kind = match self.key.value.as_str() {
            "" => return None,
            key if key.contains('@') => LookupKey::Email,
            _ => LookupKey::ZipCode,
        };
        self.keys.contains(&kind).then_some(kind)
    }

    /// The id of the label of the field for the fact.
    pub(crate) fn key_label(&self) -> &'static str {
        match self.keys.as_slice() {
            [LookupKey::Email] => "find-key-email",
            [LookupKey::ZipCode] => "find-key-zip",
            _ => "find-key-both",
        }
    }

    /// The id of the text that asks for the fact.
    fn missing_key(&self) -> &'static str {
        match self.keys.as_slice() {
            [LookupKey::Email] => "find-email-missing",
            [LookupKey::ZipCode] => "find-zip-missing",
            _ => "find-key-missing",
        }
    }

    /// The kind of the field and the way in which browsers fill it in.
    pub(crate) fn key_autocomplete(&self) -> &'static str {
        match self.keys.as_slice() {
            [LookupKey::ZipCode] => "postal-code",
            _ => "email",
        }
    }

    /// The fields with their ids.
    pub(crate) fn fields(&self) -> [(&'static str, &Field); 3] {
        [("order", &self.order), ("key", &self.key), ("gift_code", &self.gift_code)]
    }

    /// The fields that have to be corrected.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let problem = |(id, field): (&str, &Field)| {
            field.error.clone().map(|text| Problem { id: id.to_owned(), text })
        };
        self.fields().into_iter().filter_map(problem).collect()
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.fields().iter().all(|(_, field)| field.is_valid())
    }

    /// The body of the look-up, if every field can be right.
    pub(crate) fn lookup(&self) -> Option<Value> {
        let order = &self.order.value;
        if !self.is_valid() {
            return None;
        }
        if self.is_gift {
            return Some(json!({ "order_identifier": order, "gift_code": self.gift_code.value }));
        }
        let key = &self.key.value;
        Some(match self.key_kind()? {
            LookupKey::Email => json!({ "order_identifier": order, "email": key }),
            LookupKey::ZipCode => json!({ "order_identifier": order, "zip_code": key }),
        })
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn check(keys: &[LookupKey], by: &str, order: &str, key: &str, gift_code: &str) -> FindForm {
        let mut page = Page::without_merchant(&TestRequest::get().to_http_request());
        let portal = json!({ "merchant": "a", "version": 1, "name": "A", "lookup_keys": keys });
        page.portal = serde_json::from_value::<Portal>(portal).unwrap().into();
        let [by, order, key, gift_code] = [by, order, key, gift_code].map(str::to_owned);
        FindForm::check(&page, SentForm { order, by, key, gift_code, ..SentForm::default() })
    }

    #[test]
    fn the_typed_text_decides_the_kind_of_look_up() {
        let both = LookupKey::ALL;
        let body = |form: FindForm| form.lookup().unwrap();
        let form = check(both, "own", " A-1 ", "a@b.test", "");
        assert_eq!(body(form), json!({ "order_identifier": "A-1", "email": "a@b.test" }));
        let form = check(both, "own", "A-1", "10115", "");
        assert_eq!(body(form), json!({ "order_identifier": "A-1", "zip_code": "10115" }));
        let form = check(both, "gift", "A-1", "", "ABCD");
        assert_eq!(body(form), json!({ "order_identifier": "A-1", "gift_code": "ABCD" }));
    }

    #[test]
    fn a_field_that_cannot_be_right_has_an_error() {
        let email = &[LookupKey::Email];
        let form = check(email, "own", "", "10115", "");
        assert!(!form.order.is_valid() && !form.key.is_valid() && form.gift_code.is_valid());
        assert_eq!((form.lookup(), form.key.value.as_str()), (None, "10115"));
        assert!(!check(email, "gift", "A-1", "", "").gift_code.is_valid());
        assert!(!check(email, "own", &"x".repeat(501), "a@b.test", "").order.is_valid());
    }
}
