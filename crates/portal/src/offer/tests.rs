use serde_json::{Value, json};

use super::*;
use crate::basket::tests::{item, page};

fn variant(sku: &str, size: &str, color: &str, stock: i64, price: i64) -> Value {
    json!({
        "sku": sku, "title": format!("Shirt {size} {color}"), "quantity_in_stock": stock,
        "unit_price_amount_cents": price,
        "attributes": [
            { "name": "Size", "value": size }, { "name": "colour", "value": color },
            { "name": "fabric", "value": "cotton" },
        ],
    })
}

fn offer(variants: &[Value]) -> Offer {
    serde_json::from_value(json!({ "available": true, "variants": variants })).unwrap()
}

fn typed(values: [&str; 2]) -> Fields {
    let name = |index| field("A-1~1", index);
    values.iter().enumerate().map(|(index, value)| (name(index), (*value).to_owned())).collect()
}

fn shirts() -> Offer {
    offer(&[
        variant("S-R", "S", "red", 1, 5000),
        variant("M-R", "M", "red", 5, 5500),
        variant("M-B", "M", "blue", 9, 4500),
    ])
}

#[test]
fn pickers_have_the_attributes_that_differ() {
    let page = page();
    let item = item("A-1~1~1~SMALL~exchange~M-B");
    let pickers = Pickers::new(&page, &item, &shirts(), &Fields::default());
    let labels: Vec<_> = pickers.pickers.iter().map(|picker| picker.label.as_str()).collect();
    assert_eq!(labels, ["Size", "Colour"]);
    let sizes = &pickers.pickers.first().unwrap().options;
    assert_eq!(sizes.iter().map(|(value, _)| value.as_str()).collect::<Vec<_>>(), ["S", "M"]);
    assert_eq!((pickers.is_complete(), pickers.sku()), (true, Some("M-B")));
    let texts: Vec<_> = pickers.listed.iter().map(|listed| listed.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "Shirt S red · 1 in stock · Same price",
            "Shirt M red · 5 in stock · €5.00 more than your item",
            "Shirt M blue · 9 in stock · €5.00 less than your item",
        ]
    );
    assert_eq!(pickers.listed.first().unwrap().values, r#"["S","red"]"#);
}

#[test]
fn typed_values_lead_to_a_variant_or_to_none() {
    let page = page();
    let item = item("A-1~1~1~SMALL~exchange~M-B");
    let pickers = |values| Pickers::new(&page, &item, &shirts(), &typed(values));
    assert_eq!(pickers(["S", "red"]).sku(), Some("S-R"));
    let missing = pickers(["S", "blue"]);
    assert_eq!((missing.is_complete(), missing.sku()), (true, None));
}

#[test]
fn nothing_is_chosen_for_the_shopper() {
    let pickers = Pickers::new(&page(), &item("A-1~1~1~SMALL"), &shirts(), &Fields::default());
    assert_eq!((pickers.is_complete(), pickers.sku()), (false, None));
}

#[test]
fn variants_without_clear_attributes_are_chosen_by_title() {
    let mut same_attributes = variant("M-R2", "M", "red", 5, 5000);
    same_attributes["title"] = json!("Shirt M red, slim");
    let offer = offer(&[variant("M-R", "M", "red", 5, 5000), same_attributes]);
    let pickers = Pickers::new(&page(), &item("A-1~1~1~SMALL"), &offer, &typed(["M-R2", ""]));
    assert_eq!(pickers.pickers.len(), 1);
    assert_eq!(pickers.sku(), Some("M-R2"));
}

#[test]
fn too_little_stock_and_no_response_are_said() {
    let page = page();
    let two = item("A-1~1~2~SMALL");
    let none = |offer: &Offer| Pickers::new(&page, &two, offer, &Fields::default()).none;
    let few = offer(&[variant("S-R", "S", "red", 1, 5000)]);
    assert_eq!(none(&few), Some(page.t1("exchange-too-few", "count", 2_u32)));
    assert_eq!(few.variant("S-R", 2), None);
    assert_eq!(none(&offer(&[])), Some(page.t("exchange-none")));
    assert_eq!(none(&Offer::default()), Some(page.t("exchange-unavailable")));
}

#[test]
fn a_giftee_sees_no_prices() {
    let page = page();
    let mut item = item("A-1~1~1~SMALL");
    item.line.unit_price = None;
    let pickers = Pickers::new(&page, &item, &shirts(), &Fields::default());
    assert!(pickers.listed.iter().all(|listed| !listed.text.contains('€')));
}

#[test]
fn sizes_are_in_their_natural_order() {
    let sorted = |values: &[&'static str]| {
        let mut values = values.to_vec();
        values.sort_by_key(|value| natural_order(value));
        values
    };
    assert_eq!(sorted(&["38", "40", "43", "41", "9.5", "9"]), ["9", "9.5", "38", "40", "41", "43"]);
    assert_eq!(sorted(&["XL", "s", "M", "XXL", "XS"]), ["XS", "s", "M", "XL", "XXL"]);
    assert_eq!(sorted(&["Red", "Blue", "Green"]), ["Red", "Blue", "Green"]);
}

#[test]
fn a_variant_has_its_picture_if_the_host_is_the_merchants() {
    let mut page = page();
    let item = item("A-1~1~1~SMALL");
    let portal =
        json!({ "merchant": "a", "version": 1, "name": "A", "image_hosts": ["cdn.acme.test"] });
    page.portal = serde_json::from_value::<crate::merchant::Portal>(portal).unwrap().into();
    let variants = ["cdn.acme.test", "other.test"].map(|host| {
        let mut shown = variant(host, "S", host, 1, 5000);
        shown["image_url"] = json!(format!("https://{host}/a.jpg"));
        shown
    });
    let pickers = Pickers::new(&page, &item, &offer(&variants), &Fields::default());
    let images: Vec<_> = pickers.listed.iter().map(|listed| listed.image.as_deref()).collect();
    assert_eq!(images, [Some("https://cdn.acme.test/a.jpg"), None]);
}

#[test]
fn texts_of_merchants_cannot_change_the_text_around_them() {
    let (page, item) = (page(), item("A-1~1~1~SMALL~exchange~M-B"));
    let mut variants = [variant("S", "S\u{202e}", "red", 1, 1), variant("M", "M", "red", 1, 1)];
    for variant in &mut variants {
        variant["attributes"][0]["name"] = json!("Cut\u{202e}");
    }
    let pickers = Pickers::new(&page, &item, &offer(&variants), &Fields::default());
    let [picker] = pickers.pickers.as_slice() else { panic!("one attribute differs") };
    assert_eq!(picker.label, "Cut\u{fffd}");
    // The value that the form sends stays as it is.
    assert!(picker.options.contains(&("S\u{202e}".to_owned(), "S\u{fffd}".to_owned())));
    let texts: Vec<_> = pickers.listed.iter().map(|listed| listed.text.as_str()).collect();
    assert!(texts.iter().all(|text| !text.contains('\u{202e}')), "{texts:?}");
}
