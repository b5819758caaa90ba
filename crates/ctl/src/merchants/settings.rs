//! A merchant's settings, from the command line.

use clap::Args;
use domain::merchant::{MethodOffer, ReturnReason};
use domain::returns::ReturnMethod;
use serde_json::{Map, Value, json};

#[derive(Args)]
pub(super) struct Flags {
    /// IANA time zone, for days and windows; UTC to begin with
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// ISO 4217 code, of what return shipping costs and of the gift card's bonus: for orders in
    /// another currency both are nothing; USD to begin with
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,
    /// Whether we receive the returned goods for the merchant
    #[arg(long, value_name = "BOOL")]
    managed_receiving: Option<bool>,
    /// Days from shipping within which units can be returned; 30 to begin with
    #[arg(long, value_name = "DAYS")]
    return_window_days: Option<u16>,
    /// A line tag that forbids a return; repeat it to list all of them
    #[arg(long = "final-sale-tag", value_name = "TAG")]
    final_sale_tags: Vec<String>,
    /// Remove the list of tags
    #[arg(long, conflicts_with = "final_sale_tags")]
    no_final_sale_tags: bool,
    /// A reason that shoppers can give, CODE=LABEL or, when other variants of the product are
    /// offered for it, CODE:exchange=LABEL; repeat it to list all of them
    #[arg(long = "return-reason", value_name = "REASON", value_parser = reason)]
    reasons: Vec<ReturnReason>,
    /// How shoppers can send something back and what it costs them, METHOD or METHOD=CENTS;
    /// methods are mail-back, express-returns, customer-keep; repeat it to list all of them
    #[arg(long = "return-method", value_name = "METHOD", value_parser = method)]
    methods: Vec<MethodOffer>,
    /// Whether a return in which every unit is exchanged ships for nothing
    #[arg(long, value_name = "BOOL")]
    free_exchange_shipping: Option<bool>,
    /// Offer a gift card instead of a refund: the SKU agreed for it. Replaces the card and its bonus
    #[arg(long, value_name = "SKU", requires = "gift_card_bonus_cents")]
    gift_card_sku: Option<String>,
    /// What the shopper gets on top for choosing the card
    #[arg(long, value_name = "CENTS", requires = "gift_card_sku")]
    gift_card_bonus_cents: Option<i64>,
    /// Offer no gift card
    #[arg(long, conflicts_with = "gift_card_sku")]
    no_gift_card: bool,
    /// Refuse orders whose sums do not add up, instead of warning
    #[arg(long, value_name = "BOOL")]
    strict_amounts: Option<bool>,
    /// Refuse new refunds dated in the past
    #[arg(long, value_name = "BOOL")]
    strict_refund_dates: Option<bool>,
    /// Whom we tell when messages cannot be delivered. Replaces the contact: what is not said of it,
    /// name or phone, is removed
    #[arg(long, value_name = "EMAIL")]
    support_email: Option<String>,
    #[arg(long, value_name = "NAME", requires = "support_email")]
    support_name: Option<String>,
    #[arg(long, value_name = "PHONE", requires = "support_email")]
    support_phone: Option<String>,
    /// Remove the support contact
    #[arg(long, conflicts_with = "support_email")]
    no_support_contact: bool,
    /// What the paths of endpoints are relative to
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Remove the base URL
    #[arg(long, conflicts_with = "base_url")]
    no_base_url: bool,
}

impl Flags {
    /// What is to be changed, as the API takes it.
    pub(super) fn change(self, name: Option<String>) -> Map<String, Value> {
        let offered = self.offered();
        let contact = self.support_email.map(|email| {
            json!({ "email": email, "name": self.support_name, "phone": self.support_phone })
        });
        let tags = (self.no_final_sale_tags || !self.final_sale_tags.is_empty())
            .then(|| json!(self.final_sale_tags));
        let given = [
            ("name", name.map(Value::from)),
            ("time_zone", self.time_zone.map(Value::from)),
            ("currency", self.currency.map(Value::from)),
            ("managed_receiving", self.managed_receiving.map(Value::from)),
            ("return_window_days", self.return_window_days.map(Value::from)),
            ("final_sale_tags", tags),
            ("returns", (!offered.is_empty()).then_some(Value::Object(offered))),
            ("strict_amounts", self.strict_amounts.map(Value::from)),
            ("strict_refund_dates", self.strict_refund_dates.map(Value::from)),
            ("support_contact", contact.or(self.no_support_contact.then_some(Value::Null))),
            (
                "base_url",
                self.base_url.map(Value::from).or(self.no_base_url.then_some(Value::Null)),
            ),
        ];
        said(given)
    }

    /// What is to be changed of what shoppers are offered.
    fn offered(&self) -> Map<String, Value> {
        let card = self.gift_card_sku.as_ref().map(
            |sku| json!({ "sku": sku, "bonus_credit_amount_cents": self.gift_card_bonus_cents }),
        );
        said([
            ("reasons", (!self.reasons.is_empty()).then(|| json!(self.reasons))),
            ("methods", (!self.methods.is_empty()).then(|| json!(self.methods))),
            ("free_exchange_shipping", self.free_exchange_shipping.map(Value::from)),
            ("gift_card", card.or(self.no_gift_card.then_some(Value::Null))),
        ])
    }
}

fn said<const N: usize>(given: [(&str, Option<Value>); N]) -> Map<String, Value> {
    given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn reason(text: &str) -> Result<ReturnReason, String> {
    let (code, label) = text.split_once('=').ok_or("say CODE=LABEL or CODE:exchange=LABEL")?;
    let exchange = code.strip_suffix(":exchange");
    Ok(ReturnReason {
        code: exchange.unwrap_or(code).to_owned(),
        label: label.to_owned(),
        offers_exchange: exchange.is_some(),
    })
}

fn method(text: &str) -> Result<MethodOffer, String> {
    let (method, cents) = text.split_once('=').unwrap_or((text, "0"));
    let method = method.parse::<ReturnMethod>();
    Ok(MethodOffer {
        method: method
            .map_err(|_unknown| "methods are mail-back, express-returns, customer-keep")?,
        shipping_cost_cents: cents.parse().map_err(|_not_a_number| "cents are a whole number")?,
    })
}
