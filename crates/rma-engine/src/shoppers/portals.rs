//! The portal of a merchant, as shoppers see it before they have proven anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::access::MerchantId;
use domain::merchant::{
    Appearance, Colors, GiftCardOffer, Language, LookupKey, Merchant, MethodOffer, ReasonLabels,
    ReturnReason,
};
use merchants::Merchants;
use serde::Serialize;
use utoipa::ToSchema;

/// The appearance of a merchant's portal and the choices in it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Portal {
    merchant: MerchantId,
    /// Grows with every change of the merchant.
    version: i64,
    name: String,
    logo_url: Option<String>,
    colors: Colors,
    /// The first is the default.
    languages: Vec<Language>,
    policy_url: Option<String>,
    contact_url: Option<String>,
    contact_email: Option<String>,
    /// Hosts of product pictures.
    image_hosts: Vec<String>,
    /// Facts of which a shopper must know one, beside the identifier of the order.
    lookup_keys: Vec<LookupKey>,
    /// Whether shoppers can withdraw from the contract, with the reason `withdrawal`.
    withdrawal: bool,
    /// Whether shoppers get mails about their returns, in the `language` that a return names.
    mails: bool,
    /// IANA time zone of return windows.
    time_zone: String,
    /// ISO 4217 code of shipping costs and bonus. Orders in another currency have neither.
    #[schema(example = "USD")]
    currency: String,
    reasons: Vec<PortalReason>,
    methods: Vec<MethodOffer>,
    free_exchange_shipping: bool,
    gift_card: Option<GiftCardOffer>,
    /// The merchant's words about its rules, by the id of the rule and the language.
    #[schema(value_type = BTreeMap<String, BTreeMap<String, String>>)]
    rule_texts: BTreeMap<String, ReasonLabels>,
}

/// A return reason with its labels.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PortalReason {
    #[serde(flatten)]
    reason: ReturnReason,
    /// The label in each language of the portal.
    #[schema(value_type = std::collections::BTreeMap<String, String>, example = json!({ "en": "Too small" }))]
    labels: ReasonLabels,
}

/// Finds the merchant whose identifier or host name is `name`.
pub(crate) fn find(merchants: &Merchants, name: &str) -> Option<Arc<Merchant>> {
    let by_identifier = name.parse().ok().and_then(|id| merchants.get(&id));
    by_identifier.or_else(|| merchants.by_host_name(&name.to_lowercase()))
}

impl Portal {
    /// The portal of a merchant. `sends_mail` says whether this installation can send mails.
    pub(crate) fn new(merchant: &Merchant, sends_mail: bool) -> Self {
        let settings = &merchant.settings;
        let appearance = settings.appearance.clone();
        let policy = settings.returns.clone();
        let with_text = settings.policy.rules.iter().filter(|rule| !rule.text.is_empty());
        Self {
            rule_texts: with_text.map(|rule| (rule.id.clone(), rule.text.clone())).collect(),
            merchant: merchant.identifier.clone(),
            version: merchant.version,
            name: settings.portal_name().to_owned(),
            time_zone: settings.time_zone.clone(),
            currency: settings.currency.clone(),
            reasons: policy
                .reasons
                .iter()
                .map(|it| PortalReason::new(it.clone(), &appearance))
                .collect(),
            methods: policy.methods,
            free_exchange_shipping: policy.free_exchange_shipping,
            gift_card: policy.gift_card,
            logo_url: appearance.logo_url,
            colors: appearance.colors,
            languages: appearance.languages,
            policy_url: appearance.policy_url,
            contact_url: appearance.contact_url,
            contact_email: appearance.contact_email,
            image_hosts: appearance.image_hosts,
            lookup_keys: appearance.lookup_keys,
            withdrawal: appearance.withdrawal,
            mails: sends_mail && settings.mails.reply_to.is_some(),
        }
    }
}

impl PortalReason {
    fn new(reason: ReturnReason, appearance: &Appearance) -> Self {
        let own = appearance.reason_labels.get(&reason.code);
        let label = |language: &Language| {
            let label = own.and_then(|labels| labels.get(language)).unwrap_or(&reason.label);
            (*language, label.clone())
        };
        let labels = appearance.languages.iter().map(label).collect();
        Self { reason, labels }
    }
}
