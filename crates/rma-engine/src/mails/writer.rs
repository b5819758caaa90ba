//! Writes the mails about a return.

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use domain::mail::Mail;
use domain::merchant::{Language, MailEvent, MailText, Merchant, Settings};
use domain::returns::{MailOccasion, ReturnMethod, Rma, RmaUnit};
use texts::Texts;

use super::html::html_part;
use super::items::Items;
use super::parts::{Block, Content, Link, MAX_CHARS, line};
use super::text::text_part;

/// Paragraphs that the merchant writes are cut at this length.
const MAX_NOTE_CHARS: usize = 2_000;

/// Writes the mails about a return.
pub(super) struct Writer<'a> {
    portal_url: &'a str,
    merchant: &'a Merchant,
    rma: &'a Rma,
    language: Language,
    texts: &'static Texts,
    /// The name of the shop.
    shop: String,
}

impl<'a> Writer<'a> {
    pub(super) fn new(portal_url: &'a str, merchant: &'a Merchant, rma: &'a Rma) -> Self {
        let offered = &merchant.settings.appearance.languages;
        let chosen = rma.language.filter(|language| offered.contains(language));
        let language = chosen.or(offered.first().copied()).unwrap_or(Language::En);
        let shop = line(merchant.settings.portal_name(), MAX_CHARS);
        Self { portal_url, merchant, rma, language, texts: Texts::of(language.into()), shop }
    }

    fn settings(&self) -> &'a Settings {
        &self.merchant.settings
    }

    /// The mail about an occasion, without its recipient.
    pub(super) fn mail(&self, occasion: &MailOccasion<'_>) -> askama::Result<Mail> {
        let content = self.content(occasion);
        let mails = &self.settings().mails;
        Ok(Mail {
            to: String::new(),
            from_name: Some(mails.sender_name.clone().unwrap_or_else(|| self.shop.clone())),
            reply_to: mails.reply_to.clone(),
            text: text_part(&content),
            html: html_part(&content, &self.shop, &self.settings().appearance)?,
            subject: content.subject,
        })
    }

    fn content(&self, MailOccasion { event, units }: &MailOccasion<'_>) -> Content {
        let mut blocks = self.opening(*event);
        blocks.extend(match event {
            MailEvent::Confirmed => self.confirmed(units),
            MailEvent::Received => self.received(units),
            MailEvent::Refunded => self.refunded(units),
            MailEvent::ExchangePlaced => self.exchanged(units),
            MailEvent::Declined => self.declined(units),
            MailEvent::AboutToExpire => self.about_to_expire(units),
            MailEvent::Withdrawal => self.withdrawn(units),
        });
        let shop = self.texts.t1("mailed-reason", "shop", &self.shop);
        let reply = self.settings().mails.reply_to.as_ref().map(|_| self.texts.t("mailed-reply"));
        Content {
            language: self.language,
            subject: self.subject(*event),
            blocks,
            links: self.links(),
            remarks: reply.into_iter().chain([shop]).collect(),
        }
    }

    fn subject(&self, event: MailEvent) -> String {
        let own = self.own_text(event).and_then(|text| text.subject.as_deref());
        own.map_or_else(|| self.text(event, "subject"), |own| line(&self.filled(own), MAX_CHARS))
    }

    /// The first paragraphs. The merchant's own come instead of ours, except that an acknowledgement always has the
    /// content and the time of the statement.
    fn opening(&self, event: MailEvent) -> Vec<Block> {
        let own = self.own_text(event).and_then(|text| text.opening.as_deref());
        let own = own.map(|own| self.filled(own)).unwrap_or_default();
        let lines = own.lines().map(|own| line(own, MAX_NOTE_CHARS));
        let mut texts: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
        if event == MailEvent::Withdrawal {
            texts.push(self.time_of_receipt());
        }
        if event == MailEvent::Withdrawal || texts.is_empty() {
            texts.push(self.text(event, "text"));
        }
        texts.into_iter().map(Block::Paragraph).collect()
    }

    fn own_text(&self, event: MailEvent) -> Option<&'a MailText> {
        self.settings().mails.text(self.language, event)
    }

    /// A text of the merchant with the number of the return and the name of the shop.
    fn filled(&self, text: &str) -> String {
        text.replace("{rma}", &self.rma.rma_identifier).replace("{shop}", &self.shop)
    }

    /// Our text of an event.
    fn text(&self, event: MailEvent, part: &str) -> String {
        let id = match event {
            MailEvent::Confirmed => "mailed-confirmed",
            MailEvent::Received => "mailed-received",
            MailEvent::Refunded => "mailed-refunded",
            MailEvent::ExchangePlaced => "mailed-exchange",
            MailEvent::Declined => "mailed-declined",
            MailEvent::AboutToExpire => "mailed-reminder",
            MailEvent::Withdrawal => "mailed-withdrawal",
        };
        let id = format!("{id}-{part}");
        self.texts.t2(&id, "rma", &self.rma.rma_identifier, "shop", &self.shop)
    }

    fn confirmed(&self, units: &[&RmaUnit]) -> Vec<Block> {
        let mut blocks = self.sending();
        blocks.extend([self.button(), self.facts(), self.heading("return-items")]);
        blocks.push(self.items(units).with_outcomes());
        blocks.extend(self.shipping_cost());
        blocks
    }

    fn received(&self, units: &[&RmaUnit]) -> Vec<Block> {
        vec![self.items(units).titles(), self.button(), self.facts()]
    }

    fn refunded(&self, units: &[&RmaUnit]) -> Vec<Block> {
        vec![self.items(units).with_refunds(), self.button(), self.facts()]
    }

    fn exchanged(&self, units: &[&RmaUnit]) -> Vec<Block> {
        vec![self.items(units).with_orders(), self.button(), self.facts()]
    }

    fn declined(&self, units: &[&RmaUnit]) -> Vec<Block> {
        let reason = self.decline_reason().map(|reason| {
            Block::Paragraph(self.texts.t1("return-declined-reason", "reason", reason))
        });
        let mut blocks: Vec<_> = reason.into_iter().collect();
        blocks.extend([self.items(units).titles(), self.button(), self.facts()]);
        blocks
    }

    fn about_to_expire(&self, units: &[&RmaUnit]) -> Vec<Block> {
        let mut blocks = self.sending();
        blocks.extend([self.button(), self.facts(), self.heading("return-items")]);
        blocks.push(self.items(units).titles());
        blocks
    }

    fn withdrawn(&self, units: &[&RmaUnit]) -> Vec<Block> {
        let mut facts = vec![(self.texts.t("withdrawn-shop"), self.shop.clone())];
        if let Some(person) = &self.rma.withdrawal {
            let value = |text: &str| line(text, MAX_CHARS);
            facts.extend([
                (self.texts.t("withdrawn-name"), value(&person.name)),
                (self.texts.t("withdrawn-contact"), value(&person.email)),
            ]);
        }
        facts.extend(self.numbers());
        facts.push((self.texts.t("withdrawn-method"), self.texts.t(self.method())));
        facts.extend(self.cost_of_withdrawal());
        let acknowledgement = Block::Button(Link {
            label: self.texts.t("withdrawn-title"),
            url: self.url("/withdrawal"),
        });
        let items = self.items(units).titles();
        vec![Block::Facts(facts), self.heading("withdrawn-items"), items, acknowledgement]
    }

    /// The time at which the statement was received, at the merchant's place.
    fn time_of_receipt(&self) -> String {
        let at = self.rma.created_at;
        let local = at.with_timezone(&self.settings().zone());
        let time = local.format("%H:%M:%S").to_string();
        let offset = local.format("%:z").to_string();
        let time = self.texts.t2("withdrawn-time", "time", time, "offset", offset);
        self.texts.t2("withdrawn-received", "date", self.texts.day(&self.day(at)), "time", time)
    }

    fn cost_of_withdrawal(&self) -> Option<(String, String)> {
        let cents = self.rma.return_shipping_cost_cents;
        let is_kept = self.rma.return_method == ReturnMethod::CustomerKeep;
        let cost = match cents {
            0 => self.texts.t("method-free"),
            cents => self.texts.money(&cents, &self.rma.currency),
        };
        (!is_kept).then(|| (self.texts.t("withdrawn-cost"), cost))
    }

    /// How the units are sent back.
    fn sending(&self) -> Vec<Block> {
        let steps: &[&str] = match self.rma.return_method {
            ReturnMethod::CustomerKeep => {
                return vec![Block::Paragraph(self.texts.t("return-keep"))];
            }
            ReturnMethod::ExpressReturns => {
                &["return-express-bring", "mailed-express-show", "return-express-receipt"]
            }
            ReturnMethod::MailBack => {
                &["return-mail-pack", "return-mail-label", "return-mail-receipt"]
            }
        };
        let mut blocks = vec![self.heading("return-send")];
        if let Some(to) = &self.rma.return_to {
            let lines = to.address_lines.iter().map(|text| line(text, MAX_CHARS)).collect();
            blocks.push(Block::Paragraph(self.texts.t("return-mail-address")));
            blocks.push(Block::Address(lines));
        }
        blocks.push(Block::Steps(steps.iter().map(|id| self.texts.t(id)).collect()));
        blocks.push(Block::Paragraph(self.texts.t("mailed-label")));
        blocks.extend(self.drop_off_day().map(|day| {
            let day = self.texts.day(&day);
            Block::Paragraph(self.texts.t1("return-drop-off-by", "date", day))
        }));
        blocks
    }

    /// The last day on which the shopper should hand over the units. The time ends with it.
    fn drop_off_day(&self) -> Option<NaiveDate> {
        let end = self.rma.send_by(self.settings())?;
        Some(self.day(end - TimeDelta::seconds(1)))
    }

    /// The cost of the return that is subtracted from the refund. A giftee sees no amounts.
    fn shipping_cost(&self) -> Option<Block> {
        let cents = self.rma.return_shipping_cost_cents;
        let cost = self.texts.money(&-cents, &self.rma.currency);
        let fact = (self.texts.t("return-shipping"), cost);
        (cents > 0 && !self.is_gift()).then(|| Block::Facts(vec![fact]))
    }

    /// The merchant's reason of a decline, or its words about the rule that asked for the review.
    fn decline_reason(&self) -> Option<String> {
        let review = self.rma.review.as_ref()?;
        let note = review.decided.as_ref().and_then(|decided| decided.note.as_ref());
        let rules = &self.settings().policy.rules;
        let rule = rules.iter().find(|rule| rule.id == review.rule);
        let reason = note.or_else(|| rule?.text.get(&self.language))?;
        Some(line(reason, MAX_NOTE_CHARS)).filter(|reason| !reason.is_empty())
    }

    /// The numbers of the return and of its orders, with which the shopper finds it in the portal.
    fn numbers(&self) -> Vec<(String, String)> {
        let mut orders: Vec<_> =
            self.rma.units.iter().map(|unit| unit.id.order_identifier.as_str()).collect();
        orders.sort_unstable();
        orders.dedup();
        let number = (self.texts.t("return-number"), self.rma.rma_identifier.clone());
        let order = |order| (self.texts.t("withdrawn-order"), line(order, MAX_CHARS));
        [number].into_iter().chain(orders.into_iter().map(order)).collect()
    }

    fn items<'u>(&self, units: &[&'u RmaUnit]) -> Items<'u> {
        Items::new(self.texts, self.rma, units)
    }

    fn facts(&self) -> Block {
        Block::Facts(self.numbers())
    }

    fn heading(&self, id: &str) -> Block {
        Block::Heading(self.texts.t(id))
    }

    fn button(&self) -> Block {
        Block::Button(Link { label: self.texts.t("mailed-show"), url: self.url("") })
    }

    /// The URL of a page below that of the return.
    fn url(&self, path: &str) -> String {
        let Self { portal_url, merchant, rma, language, .. } = self;
        let (merchant, rma) = (&merchant.identifier, &rma.rma_identifier);
        format!("{portal_url}/{merchant}/returns/{rma}{path}?lang={language}")
    }

    fn links(&self) -> Vec<Link> {
        let appearance = &self.settings().appearance;
        let link = |id: &str, url: &Option<String>| {
            url.as_ref().map(|url| Link { label: self.texts.t(id), url: url.clone() })
        };
        let policy = link("footer-policy", &appearance.policy_url);
        let contact = link("footer-contact", &appearance.contact_url);
        policy.into_iter().chain(contact).collect()
    }

    fn method(&self) -> &'static str {
        match self.rma.return_method {
            ReturnMethod::MailBack => "method-mail",
            ReturnMethod::ExpressReturns => "method-express",
            ReturnMethod::CustomerKeep => "method-keep",
        }
    }

    fn is_gift(&self) -> bool {
        self.rma.giftee_email.is_some()
    }

    /// The day of a time in the merchant's time zone.
    fn day(&self, at: DateTime<Utc>) -> NaiveDate {
        at.with_timezone(&self.settings().zone()).date_naive()
    }
}
