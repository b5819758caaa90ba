//! The products and shoppers of generated orders.

pub(super) struct Product {
    pub(super) style: &'static str,
    pub(super) title: &'static str,
    pub(super) price_cents: i64,
    pub(super) weight: f64,
}

pub(super) struct City {
    pub(super) name: &'static str,
    pub(super) state: &'static str,
    pub(super) zip_code: &'static str,
}

const fn product(
    style: &'static str,
    title: &'static str,
    price_cents: i64,
    weight: f64,
) -> Product {
    Product { style, title, price_cents, weight }
}

const fn city(name: &'static str, state: &'static str, zip_code: &'static str) -> City {
    City { name, state, zip_code }
}

pub(super) const PRODUCTS: &[Product] = &[
    product("TRAIL04", "Trail running shoe", 11_995, 0.62),
    product("LINEN21", "Linen shirt with a band collar", 5_900, 0.24),
    product("DENIM10", "Straight jeans in rigid denim", 8_950, 0.71),
    product("MERIN07", "Merino crew neck sweater", 9_800, 0.35),
    product("SOCKS33", "Ribbed cotton socks, three pairs", 1_650, 0.12),
    product("PARKA02", "Insulated parka with a removable hood", 24_900, 1.42),
    product("DRESS18", "Wrap dress in printed viscose", 7_450, 0.31),
    product("CAPBS05", "Six-panel cap", 2_400, 0.09),
    product("BOOTS11", "Chelsea boot in waxed leather", 15_900, 1.08),
    product("TEEBX01", "Heavy cotton T-shirt", 2_995, 0.21),
    product("SCARF09", "Lambswool scarf", 4_500, 0.18),
    product("BELTS06", "Full-grain leather belt", 3_995, 0.27),
];

pub(super) const COLOURS: &[&str] = &["black", "navy", "olive", "sand", "rust", "white", "grey"];

pub(super) const SIZES: &[&str] = &["XS", "S", "M", "L", "XL", "XXL"];

pub(super) const FIRST_NAMES: &[&str] = &[
    "Ada", "Amara", "Ben", "Chloe", "Daniel", "Elif", "Femi", "Grace", "Hugo", "Ines", "Jonas",
    "Keiko", "Liam", "Maya", "Noor", "Oscar", "Priya", "Rosa", "Sven", "Tara", "Umar", "Vera",
];

pub(super) const LAST_NAMES: &[&str] = &[
    "Adler", "Brooks", "Castillo", "Dawson", "Eriksen", "Fontaine", "Garcia", "Hoffmann", "Ito",
    "Jackson", "Kowalski", "Lindgren", "Mbeki", "Nguyen", "Okafor", "Patel", "Quinn", "Rossi",
];

pub(super) const STREETS: &[&str] = &[
    "Alder Street",
    "Birch Avenue",
    "Canal Road",
    "Dogwood Lane",
    "Elm Street",
    "Franklin Avenue",
    "Harbor Drive",
    "Juniper Court",
    "Mill Road",
    "Washington Boulevard",
];

pub(super) const CITIES: &[City] = &[
    city("Albany", "NY", "12207"),
    city("Austin", "TX", "78701"),
    city("Boise", "ID", "83702"),
    city("Chicago", "IL", "60601"),
    city("Denver", "CO", "80202"),
    city("Eugene", "OR", "97401"),
    city("Madison", "WI", "53703"),
    city("Nashville", "TN", "37203"),
    city("Portland", "ME", "04101"),
    city("Raleigh", "NC", "27601"),
    city("Seattle", "WA", "98101"),
    city("Tucson", "AZ", "85701"),
];
