//! The body of a request that creates a merchant or changes its settings.

use chrono_tz::Tz;
use utoipa::ToSchema;

use super::appearance::{Appearance, AppearanceChange};
use super::guard::Guard;
use super::mails::{MailsChange, ShopperMails};
use super::patch::replace;
use super::policy::PolicyChange;
use super::rules::{Policy, RulesChange};
use super::settings::{Settings, SupportContact};
use super::urls::{base_url, email};
use crate::access::{InvalidMerchantId, MerchantId};
use crate::json::{
    Field, Object, ValidationError, array, boolean, currency, integer, number, object, parsed,
    printable_text, read_fields, text,
};
use crate::warehouse::Warehouses;

const SETTINGS: [&str; 16] = [
    "name",
    "time_zone",
    "currency",
    "managed_receiving",
    "return_window_days",
    "final_sale_tags",
    "express_max_weight",
    "concept",
    "returns",
    "policy",
    "appearance",
    "mails",
    "strict_amounts",
    "strict_refund_dates",
    "support_contact",
    "base_url",
];

/// The first parts of paths of the portal and the console, which could not show a merchant of that name.
const RESERVED: [&str; 7] =
    ["assets", "healthz", "metrics", "new", "readyz", "sign-out", "version"];

fn new_identifier(text: &str) -> Result<MerchantId, String> {
    if RESERVED.contains(&text) {
        return Err(format!("must not be {text}: pages of Backhaul have this path"));
    }
    text.parse().map_err(|error: InvalidMerchantId| error.to_string())
}

/// Reads a new merchant: `identifier`, `name` and any of the settings. It has no warehouses yet.
pub fn read_new_merchant(document: &Object<'_>, guard: &Guard) -> Option<(MerchantId, Settings)> {
    document.reject_unknown(&[&SETTINGS[..], &["identifier"]].concat());
    let identifier = document.required("identifier", parsed(1..=63, new_identifier));
    let name = document.required("name", printable_text(1..=200));
    let change = SettingsChange::read_fields(document, guard);
    let mut settings = Settings::new(name.clone().unwrap_or_default());
    let warehouses = Warehouses::new();
    let Some(change) = change else {
        report_conflicts(document, guard, settings, &warehouses);
        return None;
    };
    if let Err(invalid) = change.apply(&mut settings, &warehouses) {
        invalid.errors.into_iter().for_each(|error| document.report(error));
        return None;
    }
    Some((name.and(identifier)?, settings))
}

/// Reports what a change with faults would break between settings, as far as the change can be read.
fn report_conflicts(
    document: &Object<'_>,
    guard: &Guard,
    mut settings: Settings,
    warehouses: &Warehouses,
) {
    // Without the reasons and methods nothing can be said about their names.
    let Some(returns) = document.optional("returns", object(PolicyChange::read)) else { return };
    returns.unwrap_or_default().apply(&mut settings.returns);
    let appearance =
        document.clearable("appearance", object(|it| AppearanceChange::read(it, guard)));
    apply_appearance(appearance.flatten(), &mut settings);
    let Settings { appearance, policy, returns, .. } = &settings;
    let errors_of_draft = object(|draft| Some(policy.errors_of_draft(draft, returns, warehouses)));
    let of_policy = match document.clearable("policy", errors_of_draft) {
        Some(Some(Some(errors))) => errors,
        Some(None) => policy.errors(returns, warehouses),
        Some(Some(None)) | None => Vec::new(),
    };
    let of_appearance = appearance.errors(&returns.reasons);
    of_appearance.into_iter().chain(of_policy).for_each(|error| document.report(error));
}

/// Settings to be changed. Omitted settings stay as they are. `express_max_weight`, `concept`,
/// `policy`, `appearance`, `mails`, `support_contact` and `base_url` can be null.
#[derive(Debug, Clone, Default, PartialEq, ToSchema)]
#[schema(as = SettingsRequest)]
pub struct SettingsChange {
    #[schema(nullable = false, min_length = 1, max_length = 200)]
    name: Option<String>,
    /// An IANA time zone, like `Europe/Berlin`.
    #[schema(nullable = false, min_length = 1, max_length = 64)]
    time_zone: Option<String>,
    /// An ISO 4217 code.
    #[schema(nullable = false)]
    currency: Option<String>,
    #[schema(nullable = false)]
    managed_receiving: Option<bool>,
    #[schema(nullable = false, maximum = 3650)]
    return_window_days: Option<u16>,
    /// Tags of up to 100 characters.
    #[schema(nullable = false, max_items = 100)]
    final_sale_tags: Option<Vec<String>>,
    /// The heaviest unit that can be returned with `express-returns`, in the unit of the lines'
    /// `weight`.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1_000_000_000)]
    express_max_weight: Option<Option<f64>>,
    /// The `concept` of exchange items whose line and order name none.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255)]
    concept: Option<Option<String>>,
    #[schema(nullable = false)]
    returns: Option<PolicyChange>,
    #[schema(value_type = Option<RulesChange>)]
    policy: Option<Option<RulesChange>>,
    #[schema(value_type = Option<AppearanceChange>)]
    appearance: Option<Option<AppearanceChange>>,
    #[schema(value_type = Option<MailsChange>)]
    mails: Option<Option<MailsChange>>,
    #[schema(nullable = false)]
    strict_amounts: Option<bool>,
    #[schema(nullable = false)]
    strict_refund_dates: Option<bool>,
    #[schema(value_type = Option<SupportContact>)]
    support_contact: Option<Option<SupportContact>>,
    #[schema(value_type = Option<String>, min_length = 1, max_length = 2000)]
    base_url: Option<Option<String>>,
}

impl SettingsChange {
    pub fn read(document: &Object<'_>, guard: &Guard) -> Option<Self> {
        document.reject_unknown(&SETTINGS);
        Self::read_fields(document, guard)
    }

    /// Reads a change of the settings of a merchant with these warehouses. Reports also what it would break between
    /// settings, so that one response has every fault.
    pub fn read_for(
        document: &Object<'_>,
        guard: &Guard,
        settings: &Settings,
        warehouses: &Warehouses,
    ) -> Option<Self> {
        let Some(change) = Self::read(document, guard) else {
            report_conflicts(document, guard, settings.clone(), warehouses);
            return None;
        };
        if let Err(invalid) = change.clone().apply(&mut settings.clone(), warehouses) {
            invalid.errors.into_iter().for_each(|error| document.report(error));
            return None;
        }
        Some(change)
    }

    fn read_fields(document: &Object<'_>, guard: &Guard) -> Option<Self> {
        read_fields!(Self {
            name: document.optional("name", printable_text(1..=200)),
            time_zone: document.optional("time_zone", time_zone),
            currency: document
                .optional("currency", |field| Some(currency(field)?.code().to_owned())),
            managed_receiving: document.optional("managed_receiving", boolean),
            return_window_days: document.optional("return_window_days", days),
            final_sale_tags: document.optional("final_sale_tags", array(0..=100, text(1..=100))),
            express_max_weight: document.clearable("express_max_weight", number(0.0..=1e9)),
            concept: document.clearable("concept", text(1..=255)),
            returns: document.optional("returns", object(PolicyChange::read)),
            policy: document.clearable("policy", object(RulesChange::read)),
            appearance: document.clearable(
                "appearance",
                object(|appearance| AppearanceChange::read(appearance, guard)),
            ),
            mails: document.clearable("mails", object(MailsChange::read)),
            strict_amounts: document.optional("strict_amounts", boolean),
            strict_refund_dates: document.optional("strict_refund_dates", boolean),
            support_contact: document.clearable("support_contact", object(support_contact)),
            base_url: document.clearable("base_url", base_url(guard)),
        })
    }

    /// Changes the settings of a merchant with these warehouses. An error means that the result breaks a rule that spans
    /// several settings and must not be stored.
    pub fn apply(
        self,
        settings: &mut Settings,
        warehouses: &Warehouses,
    ) -> Result<(), ValidationError> {
        self.returns.unwrap_or_default().apply(&mut settings.returns);
        match self.policy {
            Some(Some(change)) => change.apply(&mut settings.policy),
            Some(None) => settings.policy = Policy::default(),
            None => {}
        }
        apply_appearance(self.appearance, settings);
        match self.mails {
            Some(Some(change)) => change.apply(&mut settings.mails),
            Some(None) => settings.mails = ShopperMails::default(),
            None => {}
        }
        replace(&mut settings.name, self.name);
        replace(&mut settings.time_zone, self.time_zone);
        replace(&mut settings.currency, self.currency);
        replace(&mut settings.managed_receiving, self.managed_receiving);
        replace(&mut settings.return_window_days, self.return_window_days);
        replace(&mut settings.final_sale_tags, self.final_sale_tags);
        replace(&mut settings.express_max_weight, self.express_max_weight);
        replace(&mut settings.concept, self.concept);
        replace(&mut settings.strict_amounts, self.strict_amounts);
        replace(&mut settings.strict_refund_dates, self.strict_refund_dates);
        replace(&mut settings.support_contact, self.support_contact);
        replace(&mut settings.base_url, self.base_url);
        let errors = settings.appearance.errors(&settings.returns.reasons);
        let of_policy = settings.policy.errors(&settings.returns, warehouses);
        let errors = errors.into_iter().chain(of_policy);
        ValidationError::from_errors(errors).map_or(Ok(()), Err)
    }
}

/// Changes the appearance. `null` restores the default one. The labels of a reason go with the reason.
fn apply_appearance(change: Option<Option<AppearanceChange>>, settings: &mut Settings) {
    let has_labels = change.iter().flatten().any(AppearanceChange::has_labels);
    match change {
        Some(Some(change)) => change.apply(&mut settings.appearance),
        Some(None) => settings.appearance = Appearance::default(),
        None => {}
    }
    if !has_labels {
        settings.appearance.retain_labels(&settings.returns.reasons);
    }
}

fn days(field: Field<'_>) -> Option<u16> {
    integer(0..=3650)(field)?.try_into().ok()
}

fn support_contact(contact: &Object<'_>) -> Option<SupportContact> {
    read_fields!(contact => SupportContact {
        email: contact.required("email", email),
        name: contact.optional("name", printable_text(1..=200)),
        phone: contact.optional("phone", printable_text(1..=50)),
    })
}

fn time_zone(field: Field<'_>) -> Option<String> {
    parsed(1..=64, |text| match text.parse::<Tz>() {
        Ok(zone) => Ok(zone.name().to_owned()),
        Err(_) => Err("must be an IANA time zone, like Europe/Berlin"),
    })(field)
}
