//! The form of a warehouse.

use domain::warehouse::Warehouse;
use pages::{
    api::ErrorBody,
    form::{Field, Fields},
};
use serde_json::{Value, json};

use super::super::settings_form::optional;
use crate::error::sentence;

#[derive(Debug, Clone, Default)]
pub(super) struct WarehouseForm {
    pub(super) identifier: Field,
    pub(super) external_identifier: Field,
    pub(super) stock_transfer_identifier: Field,
    pub(super) name: Field,
    pub(super) company: Field,
    pub(super) street: Field,
    pub(super) street2: Field,
    pub(super) city: Field,
    pub(super) state: Field,
    pub(super) zip: Field,
    /// The reason why the whole form was rejected.
    pub(super) message: Option<String>,
}

impl WarehouseForm {
    pub(super) fn of(identifier: &str, warehouse: &Warehouse) -> Self {
        let text = |text: &Option<String>| Field::new(text.clone().unwrap_or_default());
        let settings = &warehouse.settings;
        let mut form = Self {
            identifier: Field::new(identifier),
            external_identifier: text(&warehouse.external_identifier),
            stock_transfer_identifier: text(&settings.stock_transfer_identifier),
            ..Self::default()
        };
        if let Some(address) = &warehouse.address {
            form.name = Field::new(address.name.as_str());
            form.company = text(&address.company);
            form.street = Field::new(address.street.as_str());
            form.street2 = text(&address.street2);
            form.city = Field::new(address.city.as_str());
            form.state = Field::new(address.state.as_str());
            form.zip = Field::new(address.zip.as_str());
        }
        form
    }

    pub(super) fn read(fields: &Fields) -> Self {
        let field = |name| Field::new(fields.text(name));
        Self {
            identifier: field("identifier"),
            external_identifier: field("external_identifier"),
            stock_transfer_identifier: field("stock_transfer_identifier"),
            name: field("name"),
            company: field("company"),
            street: field("street"),
            street2: field("street2"),
            city: field("city"),
            state: field("state"),
            zip: field("zip"),
            message: None,
        }
    }

    /// The request. An address whose fields are all empty is left out.
    pub(super) fn body(&self) -> Value {
        let address = json!({
            "name": optional(&self.name), "company": optional(&self.company),
            "street": optional(&self.street), "street2": optional(&self.street2),
            "city": optional(&self.city), "state": optional(&self.state),
            "zip": optional(&self.zip),
        });
        let has_address =
            address.as_object().is_some_and(|parts| parts.values().any(|part| !part.is_null()));
        json!({
            "external_identifier": optional(&self.external_identifier),
            "settings": { "stock_transfer_identifier": optional(&self.stock_transfer_identifier) },
            "address": has_address.then_some(address),
        })
    }

    /// Puts the errors of auth beside the fields.
    pub(super) fn reject(&mut self, body: &ErrorBody) {
        for (field, path) in [
            (&mut self.identifier, "$.identifier"),
            (&mut self.external_identifier, "$.external_identifier"),
            (&mut self.stock_transfer_identifier, "$.settings.stock_transfer_identifier"),
            (&mut self.name, "$.address.name"),
            (&mut self.company, "$.address.company"),
            (&mut self.street, "$.address.street"),
            (&mut self.street2, "$.address.street2"),
            (&mut self.city, "$.address.city"),
            (&mut self.state, "$.address.state"),
            (&mut self.zip, "$.address.zip"),
        ] {
            field.error = body.field(path).map(|text| sentence(&text));
        }
        self.message = Some(sentence(&body.message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_warehouse_is_sent_back_unchanged() {
        let stored = json!({
            "external_identifier": "DC-7", "settings": { "stock_transfer_identifier": null },
            "address": {
                "name": "Dock 7", "company": null, "street": "7 Dock Street", "street2": null,
                "city": "Reno", "state": "NV", "zip": "89501",
            },
        });
        let warehouse = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(WarehouseForm::of("reno", &warehouse).body(), stored);
        assert_eq!(WarehouseForm::default().body()["address"], Value::Null);
    }

    #[test]
    fn errors_of_auth_are_beside_their_fields() {
        let mut form = WarehouseForm::default();
        let text = r#"{"message": "the request is invalid", "errors": [
            {"field": "$.address.zip", "code": "missing_field"},
            {"field": "$.identifier", "code": "invalid", "detail": "must be letters"}]}"#;
        form.reject(&serde_json::from_str(text).unwrap());
        assert!(!form.zip.is_valid() && form.name.is_valid());
        assert_eq!(form.identifier.error.as_deref(), Some("Must be letters."));
    }
}
