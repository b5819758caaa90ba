//! Generated orders for tests, benches and demos. The same seed and index give the same order. The
//! orders are valid and their sums add up.

mod catalog;

use chrono::{DateTime, TimeDelta, Utc};
use iso_currency::Currency;
use serde_json::{Value, json};

use super::address::Address;
use super::customer::Customer;
use super::line::OrderLine;
use super::model::{Order, OrderStatus};
use super::refund::{Refund, RefundLine};
use catalog::City;

/// The period before a given time in which orders are created.
const HISTORY: TimeDelta = TimeDelta::days(180);

/// An iterator over the orders of a shop.
#[derive(Debug, Clone)]
pub struct Orders {
    seed: u64,
    until: DateTime<Utc>,
    next: u64,
}

impl Orders {
    /// A shop with orders from the six months before `until`.
    pub fn new(seed: u64, until: DateTime<Utc>) -> Self {
        Self { seed, until, next: 0 }
    }

    /// The order at an index, without generating the orders before it.
    pub fn at(&self, index: u64) -> Order {
        order(self.seed, index, self.until)
    }
}

impl Iterator for Orders {
    type Item = Order;

    fn next(&mut self) -> Option<Order> {
        let order = self.at(self.next);
        self.next += 1;
        Some(order)
    }
}

/// The message with these orders.
pub fn message<'a>(orders: impl IntoIterator<Item = &'a Order>) -> Value {
    let orders: Vec<_> = orders.into_iter().map(document).collect();
    json!({ "returns_portal_order": { "orders": orders } })
}

/// The order as the merchant sends it.
pub fn document(order: &Order) -> Value {
    let mut document = json!(order);
    if let Some(members) = document.as_object_mut() {
        members.extend(["transactions", "discounts"].map(|key| (key.to_owned(), json!([]))));
    }
    document
}

fn order(seed: u64, index: u64, until: DateTime<Utc>) -> Order {
    let mut random = Random::new(seed, index);
    let identifier = format!("{}-{:07}", base36(seed), index + 1);
    let created_at = until - TimeDelta::seconds(random.between(0, HISTORY.num_seconds()));
    let status = match random.between(0, 99) {
        0..5 => OrderStatus::Cancelled,
        5..25 => OrderStatus::Created,
        _ => OrderStatus::Shipped,
    };
    let shipped_at = (created_at + TimeDelta::minutes(random.between(60, 4_000))).min(until);
    let lines = 1 + random.between(0, 4).min(random.between(0, 4));
    let items: Vec<_> = (1..=lines)
        .map(|number| line(&mut random, &identifier, number, status, shipped_at))
        .collect();
    let refunds = refunds(&mut random, &identifier, &items, shipped_at, until);
    let last_refund = refunds.last().map(|refund: &Refund| refund.created_at);

    let product = items.iter().map(|line| line.product_amount_cents).sum();
    let tax = items.iter().map(|line| line.tax_amount_cents).sum();
    let discount = items.iter().map(|line| line.discount_amount_cents).sum();
    let shipping = if product >= 10_000 { 0 } else { 595 };
    let (customer, address) = shopper(&mut random);
    Order {
        raw_status: Some(format!("{status:?}").to_uppercase()),
        status,
        total_amount_cents: product + tax + shipping - discount,
        product_amount_cents: product,
        tax_amount_cents: tax,
        discount_amount_cents: discount,
        shipping_amount_cents: shipping,
        shipping_tax_amount_cents: 0,
        currency: Currency::USD,
        tags: if random.chance(20) { vec!["loyalty".to_owned()] } else { Vec::new() },
        concept: Some("main".to_owned()),
        note: random.chance(10).then(|| "Please leave it with the neighbours.".to_owned()),
        created_at,
        updated_at: last_refund.unwrap_or(shipped_at),
        customer,
        shipping_address: address.clone(),
        billing_address: address,
        identifier,
        items,
        refunds,
    }
}

fn line(
    random: &mut Random,
    order: &str,
    number: i64,
    status: OrderStatus,
    shipped_at: DateTime<Utc>,
) -> OrderLine {
    let product = random.pick(catalog::PRODUCTS);
    let colour = random.pick(catalog::COLOURS);
    let size = random.pick(catalog::SIZES);
    let quantity = 1 + random.between(0, 2).min(random.between(0, 2));
    let (shipped, canceled) = match status {
        OrderStatus::Shipped => (quantity, 0),
        OrderStatus::Created => (0, 0),
        OrderStatus::Cancelled => (0, quantity),
    };
    let unit_price = product.price_cents;
    let product_amount = unit_price * shipped;
    let discount = if random.chance(15) { product_amount / 10 } else { 0 };
    let style = product.style;
    let is_shipped = shipped > 0;
    let sku = format!("{style}-{}-{size}", colour.to_uppercase());
    OrderLine {
        identifier: format!("{order}-{number}"),
        upc: Some(format!("0{:011}", random.between(0, 99_999_999_999))),
        quantity,
        quantity_shipped: shipped,
        quantity_canceled: canceled,
        tracking_number: is_shipped.then(|| format!("1Z{:016}", random.between(0, 9_999_999_999))),
        shipped_date: is_shipped.then_some(shipped_at),
        delivered_date: None,
        product_identifier: format!("prod-{style}"),
        variant_identifier: Some(style.to_owned()),
        title: format!("{}, {colour}, {size}", product.title),
        tags: if random.chance(8) { vec!["FinalSale".to_owned()] } else { Vec::new() },
        product_amount_cents: product_amount,
        tax_amount_cents: (product_amount - discount) * 825 / 10_000,
        discount_amount_cents: discount,
        unit_price_amount_cents: unit_price,
        image_url: Some(format!("https://images.shop.example/{style}/{colour}.jpg")),
        weight: Some(product.weight),
        concept: None,
        sku: Some(sku),
    }
}

/// In one order of ten, a unit of the first shipped line was refunded.
fn refunds(
    random: &mut Random,
    order: &str,
    items: &[OrderLine],
    shipped_at: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Vec<Refund> {
    let refunded = items.iter().find(|line| line.quantity_shipped > 0);
    let Some(line) = refunded.filter(|_| random.chance(10)) else { return Vec::new() };
    vec![Refund {
        identifier: format!("{order}-refund-1"),
        total_refund_amount_cents: (line.product_amount_cents - line.discount_amount_cents)
            / line.quantity_shipped,
        refund_line_items: vec![RefundLine {
            identifier: format!("{order}-refund-1-1"),
            quantity: 1,
            order_item_identifier: line.identifier.clone(),
        }],
        note: None,
        created_at: (shipped_at + TimeDelta::days(random.between(5, 25))).min(until),
        rma_identifier: None,
        tags: Vec::new(),
    }]
}

fn shopper(random: &mut Random) -> (Customer, Address) {
    let first = random.pick(catalog::FIRST_NAMES);
    let last = random.pick(catalog::LAST_NAMES);
    let City { name: city, state, zip_code } = random.pick(catalog::CITIES);
    let email = format!("{first}.{last}{}@mail.example", random.between(1, 999)).to_lowercase();
    let phone = format!("+1555{:07}", random.between(0, 9_999_999));
    let customer = Customer {
        identifier: email.clone(),
        first_name: Some((*first).to_owned()),
        last_name: Some((*last).to_owned()),
        email: Some(email),
        phone: Some(phone.clone()),
    };
    let address = Address {
        name: format!("{first} {last}"),
        street1: format!("{} {}", random.between(1, 9_999), random.pick(catalog::STREETS)),
        street2: random.chance(25).then(|| format!("Apt {}", random.between(1, 60))),
        city: (*city).to_owned(),
        state: Some((*state).to_owned()),
        zip_code: Some((*zip_code).to_owned()),
        country_code: "US".to_owned(),
        phone: Some(phone),
    };
    (customer, address)
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    while digits.is_empty() || number > 0 {
        let digit = u32::try_from(number % 36).ok().and_then(|digit| char::from_digit(digit, 36));
        digits.extend(digit);
        number /= 36;
    }
    digits.iter().rev().collect::<String>().to_uppercase()
}

/// A SplitMix64 generator, which gives the same numbers on every platform.
struct Random(u64);

impl Random {
    fn new(seed: u64, index: u64) -> Self {
        let mut random = Self(seed);
        let start = random.next() ^ index.wrapping_mul(0xd134_2543_de82_ef95);
        Self(start)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number between `low` and `high`, both inclusive.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = high.abs_diff(low) + 1;
        low.saturating_add_unsigned(self.next() % span)
    }

    fn chance(&mut self, percent: i64) -> bool {
        self.between(1, 100) <= percent
    }

    #[expect(clippy::indexing_slicing, reason = "a remainder is below its divisor")]
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let number = usize::try_from(self.next() >> 33).unwrap_or_default();
        &from[number % from.len()]
    }
}
