//! The units of a return as items of a mail: units that are alike are one item.

use domain::returns::{Resolution, Rma, RmaUnit};
use texts::Texts;

use super::parts::{Block, Item, MAX_CHARS, line};

/// The largest number of items in a mail. The page of the return shows all.
const MAX_ITEMS: usize = 50;

pub(super) struct Items<'a> {
    texts: &'static Texts,
    groups: Vec<Group<'a>>,
    currency: String,
    /// A giftee sees no amounts.
    is_gift: bool,
    /// Whether the return shipping is subtracted from the refunds.
    costs_shipping: bool,
}

/// Units that are alike.
struct Group<'a> {
    unit: &'a RmaUnit,
    count: usize,
    refund_cents: i64,
}

impl<'a> Items<'a> {
    pub(super) fn new(texts: &'static Texts, rma: &Rma, units: &[&'a RmaUnit]) -> Self {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for &unit in units {
            let refund_cents = unit.refund_financials().shopper_refund_amount_cents;
            match groups.iter_mut().find(|group| is_alike(group.unit, unit)) {
                Some(group) => {
                    group.count += 1;
                    group.refund_cents += refund_cents;
                }
                None => groups.push(Group { unit, count: 1, refund_cents }),
            }
        }
        Self {
            texts,
            groups,
            currency: rma.currency.clone(),
            is_gift: rma.giftee_email.is_some(),
            costs_shipping: rma.return_shipping_cost_cents > 0,
        }
    }

    pub(super) fn titles(&self) -> Block {
        self.block(|_| Vec::new())
    }

    /// With the refund, variant or gift card that the shopper chose.
    pub(super) fn with_outcomes(&self) -> Block {
        self.block(|group| vec![self.outcome(group)])
    }

    pub(super) fn with_refunds(&self) -> Block {
        let id =
            if self.costs_shipping { "item-refunded-before-shipping" } else { "item-refunded" };
        self.block(|group| {
            let amount = self.amount(group);
            amount.map(|amount| self.texts.t1(id, "amount", amount)).into_iter().collect()
        })
    }

    /// With the orders of variants and gift cards.
    pub(super) fn with_orders(&self) -> Block {
        self.block(|group| {
            let is_card = group.unit.resolution == Resolution::GiftCard;
            let id = if is_card { "item-gift-card-order" } else { "item-exchange-order" };
            let order = group.unit.exchange_order_identifier.as_deref();
            let order = order.map(|order| self.texts.t1(id, "order", line(order, MAX_CHARS)));
            [self.outcome(group)].into_iter().chain(order).collect()
        })
    }

    fn block(&self, details: impl Fn(&Group<'a>) -> Vec<String>) -> Block {
        let item = |group: &Group<'a>| {
            let title = line(&group.unit.title, MAX_CHARS);
            let title = match group.count {
                1 => title,
                count => self.texts.t2("item-count", "count", count, "title", title),
            };
            Item { title, details: details(group) }
        };
        let mut items: Vec<_> = self.groups.iter().take(MAX_ITEMS).map(item).collect();
        let left: usize = self.groups.iter().skip(MAX_ITEMS).map(|group| group.count).sum();
        if left > 0 {
            let title = self.texts.t1("mailed-more", "count", left);
            items.push(Item { title, details: Vec::new() });
        }
        Block::Items(items)
    }

    fn outcome(&self, group: &Group<'a>) -> String {
        match (&group.unit.resolution, self.amount(group)) {
            (Resolution::Refund, Some(amount)) => self.texts.t1("item-refund", "amount", amount),
            (Resolution::Refund, None) => self.texts.t("item-refund-gift"),
            (Resolution::Exchange { variant }, _) => {
                self.texts.t1("item-exchange", "title", line(&variant.title, MAX_CHARS))
            }
            (Resolution::GiftCard, _) => self.texts.t("item-gift-card"),
        }
    }

    /// The refund of a group in words.
    fn amount(&self, group: &Group<'a>) -> Option<String> {
        (!self.is_gift).then(|| self.texts.money(&group.refund_cents, &self.currency))
    }
}

/// Whether a mail shows the same about both units, apart from the amounts.
fn is_alike(first: &RmaUnit, second: &RmaUnit) -> bool {
    first.id.order_identifier == second.id.order_identifier
        && first.id.order_line_item_identifier == second.id.order_line_item_identifier
        && first.title == second.title
        && first.resolution == second.resolution
        && first.exchange_order_identifier == second.exchange_order_identifier
}
