//! Flags for the settings of a merchant.

use clap::Args;
use domain::merchant::{MethodOffer, ReturnReason};
use domain::returns::ReturnMethod;
use serde_json::{Map, Value, json};

#[derive(Args)]
pub(super) struct SettingsArgs {
    /// IANA time zone of days and return windows [new merchant: UTC]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// ISO 4217 code of shipping costs and gift card bonuses, which
    /// are zero for orders in other currencies [new merchant: USD]
    #[arg(long, value_name = "CODE", verbatim_doc_comment)]
    currency: Option<String>,
    /// Whether our warehouse receives the returned goods
    #[arg(long, value_name = "BOOL")]
    managed_receiving: Option<bool>,
    /// Days after shipping in which units can be returned [new merchant: 30]
    #[arg(long, value_name = "DAYS")]
    return_window_days: Option<u16>,
    /// A line tag that excludes returns; repeat the flag to set the whole list
    #[arg(long = "final-sale-tag", value_name = "TAG")]
    final_sale_tags: Vec<String>,
    /// Remove all final-sale tags
    #[arg(long, conflicts_with = "final_sale_tags")]
    no_final_sale_tags: bool,
    /// The heaviest unit that can be returned with express-returns,
    /// in the unit of the weights of your lines
    #[arg(long, value_name = "WEIGHT", verbatim_doc_comment)]
    express_max_weight: Option<f64>,
    /// Accept any weight for express-returns
    #[arg(long, conflicts_with = "express_max_weight")]
    no_express_max_weight: bool,
    /// The heaviest parcel for which a label is requested, in the unit
    /// of the weights of your lines; a heavier return needs several
    #[arg(long, value_name = "WEIGHT", verbatim_doc_comment)]
    parcel_max_weight: Option<f64>,
    /// Request one label for each return
    #[arg(long, conflicts_with = "parcel_max_weight")]
    no_parcel_max_weight: bool,
    /// The concept of exchange items whose line and order name none
    #[arg(long, value_name = "CONCEPT")]
    concept: Option<String>,
    /// Remove the concept
    #[arg(long, conflicts_with = "concept")]
    no_concept: bool,
    /// A return reason as CODE=LABEL, or CODE:exchange=LABEL to offer
    /// an exchange for it; repeat the flag to set the whole list
    #[arg(long = "return-reason", verbatim_doc_comment, value_name = "REASON", value_parser = parse_reason)]
    reasons: Vec<ReturnReason>,
    /// A return method as METHOD, or METHOD=CENTS with its price for the
    /// shopper; METHOD is mail-back, express-returns or customer-keep;
    /// repeat the flag to set the whole list
    #[arg(long = "return-method", verbatim_doc_comment, value_name = "METHOD", value_parser = parse_method)]
    methods: Vec<MethodOffer>,
    /// Whether return shipping is free when every unit is exchanged
    #[arg(long, value_name = "BOOL")]
    free_exchange_shipping: Option<bool>,
    /// Days after the request in which the shopper hands over the
    /// parcel; a return without a scan then expires [new merchant: 30]
    #[arg(long, value_name = "DAYS", verbatim_doc_comment)]
    send_within_days: Option<u16>,
    /// Days after an exchange order in which the exchanged unit comes
    /// back; a unit without a scan is then due [new merchant: 30]
    #[arg(long, value_name = "DAYS", verbatim_doc_comment)]
    exchange_deadline_days: Option<u16>,
    /// Offer gift cards with this SKU instead of a refund; replaces the SKU and the bonus
    #[arg(long, value_name = "SKU", requires = "gift_card_bonus_cents")]
    gift_card_sku: Option<String>,
    /// Bonus for a shopper who chooses a gift card
    #[arg(long, value_name = "CENTS", requires = "gift_card_sku")]
    gift_card_bonus_cents: Option<i64>,
    /// Stop offering gift cards
    #[arg(long, conflicts_with = "gift_card_sku")]
    no_gift_card: bool,
    /// Reject orders whose amounts do not add up, instead of warning
    #[arg(long, value_name = "BOOL")]
    strict_amounts: Option<bool>,
    /// Reject new refunds with a date in the past
    #[arg(long, value_name = "BOOL")]
    strict_refund_dates: Option<bool>,
    /// E-mail address of the contact for undeliverable messages;
    /// replaces the contact with its name and phone
    #[arg(long, value_name = "EMAIL", verbatim_doc_comment)]
    support_email: Option<String>,
    /// Name of the support contact
    #[arg(long, value_name = "NAME", requires = "support_email")]
    support_name: Option<String>,
    /// Phone number of the support contact
    #[arg(long, value_name = "PHONE", requires = "support_email")]
    support_phone: Option<String>,
    /// Remove the support contact
    #[arg(long, conflicts_with = "support_email")]
    no_support_contact: bool,
    /// URL to which the paths of endpoints are appended
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Remove the base URL
    #[arg(long, conflicts_with = "base_url")]
    no_base_url: bool,
}

impl SettingsArgs {
    /// The request body with the settings that change. A null removes a setting.
    pub(super) fn body(self, name: Option<String>) -> Map<String, Value> {
        let returns = self.returns();
        let contact = self.support_email.map(|email| {
            json!({ "email": email, "name": self.support_name, "phone": self.support_phone })
        });
        let tags = (self.no_final_sale_tags || !self.final_sale_tags.is_empty())
            .then(|| json!(self.final_sale_tags));
        let clearable = |value: Option<Value>, clear: bool| value.or(clear.then_some(Value::Null));
        object([
            ("name", name.map(Value::from)),
            ("time_zone", self.time_zone.map(Value::from)),
            ("currency", self.currency.map(Value::from)),
            ("managed_receiving", self.managed_receiving.map(Value::from)),
            ("return_window_days", self.return_window_days.map(Value::from)),
            ("final_sale_tags", tags),
            (
                "express_max_weight",
                clearable(self.express_max_weight.map(Value::from), self.no_express_max_weight),
            ),
            (
                "parcel_max_weight",
                clearable(self.parcel_max_weight.map(Value::from), self.no_parcel_max_weight),
            ),
            ("concept", clearable(self.concept.map(Value::from), self.no_concept)),
            ("returns", (!returns.is_empty()).then_some(returns.into())),
            ("strict_amounts", self.strict_amounts.map(Value::from)),
            ("strict_refund_dates", self.strict_refund_dates.map(Value::from)),
            ("support_contact", clearable(contact, self.no_support_contact)),
            ("base_url", clearable(self.base_url.map(Value::from), self.no_base_url)),
        ])
    }

    fn returns(&self) -> Map<String, Value> {
        let card = self.gift_card_sku.as_ref().map(
            |sku| json!({ "sku": sku, "bonus_credit_amount_cents": self.gift_card_bonus_cents }),
        );
        object([
            ("reasons", (!self.reasons.is_empty()).then(|| json!(self.reasons))),
            ("methods", (!self.methods.is_empty()).then(|| json!(self.methods))),
            ("free_exchange_shipping", self.free_exchange_shipping.map(Value::from)),
            ("send_within_days", self.send_within_days.map(Value::from)),
            ("exchange_deadline_days", self.exchange_deadline_days.map(Value::from)),
            ("gift_card", card.or(self.no_gift_card.then_some(Value::Null))),
        ])
    }
}

/// An object of the members that have a value.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn parse_reason(text: &str) -> Result<ReturnReason, String> {
    let (code, label) = text.split_once('=').ok_or("write CODE=LABEL or CODE:exchange=LABEL")?;
    let exchange = code.strip_suffix(":exchange");
    Ok(ReturnReason {
        code: exchange.unwrap_or(code).to_owned(),
        label: label.to_owned(),
        offers_exchange: exchange.is_some(),
    })
}

fn parse_method(text: &str) -> Result<MethodOffer, String> {
    let (method, cents) = text.split_once('=').unwrap_or((text, "0"));
    let methods = "the methods are mail-back, express-returns, customer-keep";
    Ok(MethodOffer {
        method: method.parse::<ReturnMethod>().map_err(|_unknown| methods)?,
        shipping_cost_cents: cents.parse().map_err(|_not_a_number| "cents are a whole number")?,
    })
}
