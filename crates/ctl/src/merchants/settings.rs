//! A merchant's settings, from the command line.

use clap::Args;
use serde_json::{Map, Value, json};

#[derive(Args)]
pub(super) struct Flags {
    /// IANA time zone, for days and windows; UTC to begin with
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// ISO 4217 code; USD to begin with
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
    /// Refuse orders whose sums do not add up, instead of warning
    #[arg(long, value_name = "BOOL")]
    strict_amounts: Option<bool>,
    /// Refuse new refunds dated in the past
    #[arg(long, value_name = "BOOL")]
    strict_refund_dates: Option<bool>,
    /// Whom we tell when messages cannot be delivered
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
            ("strict_amounts", self.strict_amounts.map(Value::from)),
            ("strict_refund_dates", self.strict_refund_dates.map(Value::from)),
            ("support_contact", contact.or(self.no_support_contact.then_some(Value::Null))),
            (
                "base_url",
                self.base_url.map(Value::from).or(self.no_base_url.then_some(Value::Null)),
            ),
        ];
        let said = given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        said.collect()
    }
}
