//! The products of the sandbox merchant, with their variants and pictures.
//!
//! A variant identifier that is not in the catalogue has generated variants, so that orders with any
//! product can be exchanged.

mod pictures;
mod products;

use actix_web::http::{StatusCode, header};
use actix_web::{HttpRequest, HttpResponse, web};
use platform::http::RequestOrigin;
use serde::Serialize;
use serde_json::{Value, json};

use self::products::{Color, OTHER_PRICES, PRODUCTS, Product};
use crate::Sandbox;
use crate::response::message;

/// A variant as the merchant responds to a variant lookup. The exchange service ignores `weight`.
#[derive(Debug, Serialize)]
struct Variant {
    sku: String,
    title: String,
    attributes: Vec<Attribute>,
    unit_price_amount_cents: i64,
    quantity_in_stock: usize,
    product_identifier: &'static str,
    image_url: String,
    weight: f64,
}

#[derive(Debug, Serialize)]
struct Attribute {
    name: &'static str,
    value: &'static str,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.route("/catalogue", web::get().to(show_catalogue))
        .route("/pictures/{sku}.svg", web::get().to(show_picture));
}

/// The variants of a product.
pub(crate) fn variants(identifier: &str, url: &str) -> Value {
    let product = PRODUCTS.iter().find(|product| product.identifier == identifier);
    product.map_or_else(|| generated(identifier), |product| json!(product.variants(url)))
}

/// The URL of the sandbox for browsers: the configured one, else that of the request.
pub(crate) fn public_url(sandbox: &Sandbox, request: &HttpRequest) -> String {
    match sandbox.public_url.as_str() {
        "" => format!("http://{}", RequestOrigin::of(request).host),
        url => url.trim_end_matches('/').to_owned(),
    }
}

async fn show_catalogue(sandbox: web::Data<Sandbox>, request: HttpRequest) -> HttpResponse {
    let url = public_url(&sandbox, &request);
    let products = PRODUCTS.iter().map(|product| {
        let variants = product.variants(&url);
        json!({ "variant_identifier": product.identifier, "title": product.title, "variants": variants })
    });
    HttpResponse::Ok().json(json!({ "products": products.collect::<Vec<_>>() }))
}

async fn show_picture(sku: web::Path<String>) -> HttpResponse {
    let pictures = PRODUCTS.iter().flat_map(Product::choices);
    let found = pictures.into_iter().find(|choice| choice.sku() == *sku);
    let Some(choice) = found else {
        return message(StatusCode::NOT_FOUND, "the catalogue has no such SKU: see GET /catalogue");
    };
    HttpResponse::Ok()
        .content_type("image/svg+xml")
        .insert_header((header::CACHE_CONTROL, "public, max-age=3600"))
        .body(pictures::draw(choice.product.shape, choice.color))
}

/// One colour and size of a product.
struct Choice {
    product: &'static Product,
    color: &'static Color,
    /// Empty for a product without sizes.
    size: &'static str,
}

impl Choice {
    fn sku(&self) -> String {
        let parts = [self.product.identifier, self.color.code, self.size];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
    }

    fn title(&self) -> String {
        let parts = [self.product.title, self.color.name, self.size];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    fn price_cents(&self) -> i64 {
        let own = (self.product.identifier, self.color.code);
        let other = OTHER_PRICES.iter().find(|(product, color, _)| (*product, *color) == own);
        other.map_or(self.product.price_cents, |(_, _, price)| *price)
    }

    fn attributes(&self) -> Vec<Attribute> {
        let attributes = [("Color", self.color.name), ("Size", self.size)];
        let given = attributes.into_iter().filter(|(_, value)| !value.is_empty());
        given.map(|(name, value)| Attribute { name, value }).collect()
    }
}

impl Product {
    fn choices(&'static self) -> impl Iterator<Item = Choice> {
        let one_size: &[&str] = if self.sizes.is_empty() { &[""] } else { &[] };
        let sizes = self.sizes.iter().chain(one_size);
        self.colors.iter().flat_map(move |color| {
            sizes.clone().map(move |size| Choice { product: self, color, size })
        })
    }

    fn variants(&'static self, url: &str) -> Vec<Variant> {
        let variant = |(index, choice): (usize, Choice)| Variant {
            image_url: format!("{url}/pictures/{}.svg", choice.sku()),
            sku: choice.sku(),
            title: choice.title(),
            attributes: choice.attributes(),
            unit_price_amount_cents: choice.price_cents(),
            // The second last of every five variants is sold out.
            quantity_in_stock: if index % 5 == 3 { 0 } else { 3 + index % 7 },
            product_identifier: self.identifier,
            weight: self.weight,
        };
        self.choices().enumerate().map(variant).collect()
    }
}

/// Two variants in stock and one sold out.
fn generated(identifier: &str) -> Value {
    let variant = |size: &str, in_stock: u32| {
        json!({
            "sku": format!("{identifier}-{size}"),
            "title": format!("{identifier}, size {size}"),
            "attributes": [{"name": "size", "value": size}],
            "unit_price_amount_cents": 2500,
            "quantity_in_stock": in_stock,
        })
    };
    json!([variant("S", 4), variant("M", 9), variant("L", 0)])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use domain::exchange::Variants;

    use super::*;

    #[test]
    fn every_product_offers_variants_that_the_exchange_service_accepts() {
        let mut skus = HashSet::new();
        for product in PRODUCTS {
            let text = variants(product.identifier, "http://shop.test").to_string();
            let read = Variants::read(text.as_bytes()).unwrap();
            assert_eq!(read.invalid, 0, "{text}");
            assert!(!read.offered.is_empty(), "{text}");
            assert!(product.choices().all(|choice| skus.insert(choice.sku())), "{text}");
            for variant in read.offered {
                let picture = format!("http://shop.test/pictures/{}.svg", variant.sku);
                assert_eq!(variant.image_url, Some(picture));
            }
        }
    }

    #[test]
    fn some_colors_have_another_price() {
        let price = |sku: &str| {
            let mut choices = PRODUCTS.iter().flat_map(Product::choices);
            choices.find(|choice| choice.sku() == sku).map(|choice| choice.price_cents())
        };
        assert_eq!(price("TRAIL-SHOE-NAVY-42"), Some(11_995));
        assert_eq!(price("TRAIL-SHOE-RUST-42"), Some(13_495));
        assert_eq!(price("COTTON-TEE-GREY-M"), Some(2_495));
        let is_known = |(product, color, _): &(&str, &str, i64)| {
            let mut choices = PRODUCTS.iter().flat_map(Product::choices);
            choices.any(|it| (it.product.identifier, it.color.code) == (*product, *color))
        };
        assert!(OTHER_PRICES.iter().all(is_known));
    }

    #[test]
    fn every_picture_has_the_color_of_its_variant() {
        for choice in PRODUCTS.iter().flat_map(Product::choices) {
            let picture = pictures::draw(choice.product.shape, choice.color);
            assert!(picture.contains(choice.color.fill), "{picture}");
            assert!(!picture.contains("FILL") && !picture.contains("SHADE"), "{picture}");
        }
    }
}
