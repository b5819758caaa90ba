//! The products of a shop for clothes and outdoor equipment.

#[derive(Debug)]
pub(super) struct Product {
    /// The `variant_identifier` of order lines.
    pub(super) identifier: &'static str,
    pub(super) title: &'static str,
    pub(super) shape: Shape,
    pub(super) price_cents: i64,
    /// In kilograms.
    pub(super) weight: f64,
    pub(super) sizes: &'static [&'static str],
    pub(super) colors: &'static [Color],
}

#[derive(Debug)]
pub(super) struct Color {
    pub(super) name: &'static str,
    /// The part of the SKU.
    pub(super) code: &'static str,
    pub(super) fill: &'static str,
    /// A darker tone.
    pub(super) shade: &'static str,
}

/// The drawing of a product.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    Shirt,
    Sweater,
    Jacket,
    Shoe,
    Hat,
    Socks,
    Bag,
    Tent,
}

const OLIVE: Color = Color { name: "Olive", code: "OLIVE", fill: "#8a9a5b", shade: "#6b7a41" };
const NAVY: Color = Color { name: "Navy", code: "NAVY", fill: "#35507a", shade: "#243a5c" };
const RUST: Color = Color { name: "Rust", code: "RUST", fill: "#c1653b", shade: "#9a4a26" };
const SAND: Color = Color { name: "Sand", code: "SAND", fill: "#d9bf8f", shade: "#b89a64" };
const GREY: Color = Color { name: "Grey", code: "GREY", fill: "#9aa3ad", shade: "#737d88" };
const BERRY: Color = Color { name: "Berry", code: "BERRY", fill: "#a5456b", shade: "#7d2f4e" };

const LETTERS: &[&str] = &["S", "M", "L", "XL"];
const NUMBERS: &[&str] = &["38", "39", "40", "41", "42", "43"];

/// Prices of colours that are not their product's, so that an exchange can be uneven: the product, the code
/// of the colour and the price.
pub(super) const OTHER_PRICES: &[(&str, &str, i64)] =
    &[("TRAIL-SHOE", "RUST", 13_495), ("COTTON-TEE", "GREY", 2_495)];

pub(super) const PRODUCTS: &[Product] = &[
    Product {
        identifier: "LINEN-SHIRT",
        title: "Linen shirt",
        shape: Shape::Shirt,
        price_cents: 5_900,
        weight: 0.24,
        sizes: LETTERS,
        colors: &[SAND, OLIVE, NAVY],
    },
    Product {
        identifier: "COTTON-TEE",
        title: "Heavy cotton T-shirt",
        shape: Shape::Shirt,
        price_cents: 2_995,
        weight: 0.21,
        sizes: LETTERS,
        colors: &[RUST, GREY],
    },
    Product {
        identifier: "WOOL-SWEATER",
        title: "Merino sweater",
        shape: Shape::Sweater,
        price_cents: 9_800,
        weight: 0.35,
        sizes: LETTERS,
        colors: &[BERRY, GREY, NAVY],
    },
    Product {
        identifier: "RAIN-JACKET",
        title: "Rain jacket",
        shape: Shape::Jacket,
        price_cents: 14_900,
        weight: 0.48,
        sizes: LETTERS,
        colors: &[OLIVE, RUST],
    },
    Product {
        identifier: "TRAIL-SHOE",
        title: "Trail running shoe",
        shape: Shape::Shoe,
        price_cents: 11_995,
        weight: 0.62,
        sizes: NUMBERS,
        colors: &[NAVY, RUST],
    },
    Product {
        identifier: "FELT-HAT",
        title: "Felt hat",
        shape: Shape::Hat,
        price_cents: 4_500,
        weight: 0.12,
        sizes: &["S", "M", "L"],
        colors: &[SAND, GREY],
    },
    Product {
        identifier: "WOOL-SOCKS",
        title: "Wool socks, two pairs",
        shape: Shape::Socks,
        price_cents: 1_650,
        weight: 0.12,
        sizes: &["36–40", "41–45"],
        colors: &[BERRY, OLIVE],
    },
    Product {
        identifier: "CANVAS-BAG",
        title: "Canvas bag",
        shape: Shape::Bag,
        price_cents: 3_950,
        weight: 0.4,
        sizes: &[],
        colors: &[SAND, NAVY],
    },
    Product {
        identifier: "FAMILY-TENT",
        title: "Tent for four",
        shape: Shape::Tent,
        price_cents: 32_900,
        weight: 9.6,
        sizes: &[],
        colors: &[OLIVE, RUST],
    },
];
