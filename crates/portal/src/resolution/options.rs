//! The resolutions for an item, as the page shows them.

use pages::form::Fields;

use crate::{
    basket::{Item, bonus},
    draft::{Choice, Resolution},
    offer::Pickers,
    page::Page,
    refusal,
    sent::Problem,
};

/// The variants for an exchange.
#[derive(Debug)]
pub(super) enum Exchange {
    /// The item cannot be exchanged.
    None,
    /// Scripts load the variants from this URL.
    Later(String),
    Shown(Pickers),
}

#[derive(Debug)]
pub(super) struct ItemOptions {
    /// The number on the page, for the ids of fields.
    pub(super) index: usize,
    /// The line in the names of fields.
    pub(super) key: String,
    pub(super) title: String,
    pub(super) count: u32,
    pub(super) image: Option<String>,
    pub(super) options: Vec<ResolutionOption>,
    /// Why there is no option.
    pub(super) none: String,
    pub(super) exchange: Exchange,
    pub(super) error: Option<String>,
    chosen: Option<Resolution>,
}

/// A resolution that can be chosen.
#[derive(Debug)]
pub(super) struct ResolutionOption {
    pub(super) value: &'static str,
    pub(super) label: String,
    pub(super) hint: String,
    pub(super) is_chosen: bool,
    pub(super) is_exchange: bool,
}

impl ItemOptions {
    pub(super) fn new(
        page: &Page,
        item: &Item,
        index: usize,
        is_gift: bool,
        exchange: Exchange,
        fields: &Fields,
    ) -> Self {
        let key = item.key();
        let possible = item.resolutions(page, is_gift);
        let typed = Resolution::from_value(fields.text(&format!("resolution.{key}")));
        let chosen = typed.or(item.choice.resolution).filter(|chosen| possible.contains(chosen));
        let shown = chosen.or(possible.first().copied());
        let option = |resolution: &Resolution| ResolutionOption {
            value: resolution.value(),
            label: page.t(label(*resolution)),
            hint: hint(page, item, *resolution, is_gift),
            is_chosen: shown == Some(*resolution),
            is_exchange: *resolution == Resolution::Exchange,
        };
        Self {
            index,
            title: item.line.title.clone(),
            count: item.choice.count,
            image: page.portal.image(item.line.image_url.as_deref()).map(str::to_owned),
            options: possible.iter().map(option).collect(),
            none: nothing_possible(page, item),
            exchange,
            error: None,
            chosen,
            key,
        }
    }

    /// Puts an error beside the item if its resolution is not possible.
    pub(super) fn check(&mut self, page: &Page) -> Option<Problem> {
        let title = &self.title;
        let none = &self.none;
        let (id, text) = match (&self.chosen, &self.exchange) {
            (None, _) if self.options.is_empty() => ("item", none.clone()),
            (None, _) => ("resolution", page.t1("resolution-missing", "title", title)),
            (Some(Resolution::Exchange), Exchange::Shown(pickers)) => match &pickers.none {
                Some(_) => ("resolution", page.t1("resolution-no-variant", "title", title)),
                None if pickers.sku().is_some() => return None,
                None if pickers.is_complete() => {
                    ("pick0", page.t1("resolution-combination", "title", title))
                }
                None => ("pick0", page.t1("resolution-variant-missing", "title", title)),
            },
            _ => return None,
        };
        let id = match id {
            // The first resolution.
            "resolution" => format!("resolution-{}-0", self.index),
            id => format!("{id}-{}", self.index),
        };
        self.error = Some(text.clone());
        Some(Problem { id, text })
    }

    /// The choice for the next step.
    pub(super) fn choice(&self, choice: &Choice) -> Choice {
        let sku = match (&self.exchange, self.chosen) {
            (Exchange::Shown(pickers), Some(Resolution::Exchange)) => pickers.sku(),
            _ => None,
        };
        let variant = sku.unwrap_or_default().to_owned();
        Choice { resolution: self.chosen, variant, ..choice.clone() }
    }
}

/// The refusal of the reason; or a gift can be neither exchanged nor paid out as a gift card.
fn nothing_possible(page: &Page, item: &Item) -> String {
    let title = &item.line.title;
    match item.line.refusal_of_reason(&item.choice.reason) {
        Some(refusal) => format!("{title}: {}", refusal::sentence(page, refusal, None)),
        None => page.t1("resolution-none", "title", title),
    }
}

fn label(resolution: Resolution) -> &'static str {
    match resolution {
        Resolution::Refund => "resolution-refund",
        Resolution::Exchange => "resolution-exchange",
        Resolution::GiftCard => "resolution-gift-card",
    }
}

/// The amounts of a resolution. A giftee sees none.
fn hint(page: &Page, item: &Item, resolution: Resolution, is_gift: bool) -> String {
    let currency = &item.line.currency;
    let paid = item.paid().map(|cents| page.money(&cents, currency));
    match (resolution, paid) {
        (Resolution::Exchange, _) => page.t("resolution-exchange-hint"),
        (Resolution::GiftCard, _) if is_gift => page.t("resolution-gift-card-hint-gift"),
        (Resolution::Refund, Some(paid)) => page.t1("resolution-refund-hint", "amount", paid),
        (Resolution::GiftCard, Some(paid)) => {
            match item.rule_bonus().unwrap_or_else(|| bonus(page, currency)) {
                0 => page.t1("resolution-gift-card-hint", "amount", paid),
                bonus => {
                    let bonus = page.money(&bonus, currency);
                    page.t2("resolution-gift-card-bonus", "amount", paid, "bonus", bonus)
                }
            }
        }
        (_, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        basket::tests::{item, page},
        offer::Offer,
    };

    fn options(choice: &str, fields: &[(&str, &str)], exchange: Exchange) -> ItemOptions {
        let fields: Fields =
            fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ItemOptions::new(&page(), &item(choice), 3, false, exchange, &fields)
    }

    #[test]
    fn the_first_resolution_is_preselected() {
        let options = options("A-1~1~2~SMALL", &[], Exchange::None);
        let chosen: Vec<_> = options.options.iter().map(|option| option.is_chosen).collect();
        assert_eq!(chosen, [true, false, false]);
        let hints: Vec<_> = options.options.iter().map(|option| option.hint.as_str()).collect();
        assert_eq!(hints.first(), Some(&"You get €99.90 back."));
        assert!(hints.last().unwrap().contains("€5.00"), "{hints:?}");
    }

    #[test]
    fn a_reason_with_which_nothing_is_possible_is_explained() {
        let mut item = item("A-1~1~1~SMALL");
        let expired = json!({ "code": "window_expired" });
        let choices = json!([
            { "reasons": ["SMALL"], "options": [
                { "outcome": "refund", "method": "mail-back", "ineligible": expired },
                { "outcome": "exchange", "method": "mail-back", "ineligible": expired },
            ] },
            { "reasons": [], "options": [{ "outcome": "refund", "method": "mail-back" }] },
        ]);
        item.line.choices = serde_json::from_value(choices).unwrap();
        let fields = Fields::default();
        let mut options = ItemOptions::new(&page(), &item, 3, false, Exchange::None, &fields);
        let problem = options.check(&page()).unwrap();
        let expected = format!("{}: The time for returns is over.", item.line.title);
        assert_eq!((problem.id.as_str(), problem.text), ("item-3", expected));
        item.choice.reason = "OTHER".to_owned();
        let options = ItemOptions::new(&page(), &item, 3, false, Exchange::None, &fields);
        assert_eq!(options.options.len(), 1);
    }

    #[test]
    fn a_typed_resolution_replaces_the_earlier_one() {
        let fields = [("resolution.A-1~1", "gift_card")];
        let mut options = options("A-1~1~1~SMALL~exchange~M-B", &fields, Exchange::None);
        assert_eq!(options.check(&page()), None);
        let choice = options.choice(&Choice::parse("A-1~1~1~SMALL~exchange~M-B").unwrap());
        assert_eq!(choice.value(), "A-1~1~1~SMALL~gift_card");
    }

    #[test]
    fn an_exchange_needs_a_variant() {
        let chosen = item("A-1~1~1~SMALL");
        let none = Pickers::new(&page(), &chosen, &Offer::default(), &Fields::default());
        let fields = [("resolution.A-1~1", "exchange")];
        let mut options = options("A-1~1~1~SMALL", &fields, Exchange::Shown(none));
        assert_eq!(options.check(&page()).unwrap().id, "resolution-3-0");
        assert!(options.error.is_some());
    }

    #[test]
    fn a_missing_resolution_is_an_error() {
        let mut options = options("A-1~1~1~SMALL", &[], Exchange::None);
        assert_eq!(options.check(&page()).unwrap().id, "resolution-3-0");
    }
}
