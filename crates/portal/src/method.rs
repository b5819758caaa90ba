//! The page on which the shopper chooses the way back of the items.

use actix_web::{HttpResponse, web};
use askama::Template;
use platform::http::Sequential;

use crate::{
    basket::{self, Item},
    choose::{self, Accepted},
    draft::{Resolution, ReturnDraft},
    error::PageError,
    page::{Page, Step, html, redirect, rejected},
    refusal::{self, Refusal},
    resolution::{self, is_gift},
    sent::{Problem, Sent},
    visit::{Proven, Visit},
};

#[derive(Template)]
#[template(path = "method.html")]
struct MethodPage {
    page: Page,
    methods: Vec<MethodOption>,
    problems: Vec<Problem>,
    hidden: Vec<(&'static str, String)>,
    form_method: &'static str,
    back: String,
}

/// A return method that the merchant offers.
#[derive(Debug)]
pub(crate) struct MethodOption {
    pub(crate) value: String,
    pub(crate) label: String,
    hint: String,
    /// The merchant's words about the cost.
    note: Option<String>,
    /// The cost of the whole return; a giftee does not see it.
    pub(crate) cost: Option<String>,
    cost_cents: i64,
    /// Sentences about the items that cannot come back in this way.
    pub(crate) refusals: Vec<String>,
    pub(crate) is_chosen: bool,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(
        web::resource("/{merchant}/method")
            .route(web::get().to(show_method))
            .route(web::post().to(show_method)),
    );
}

async fn show_method(
    Sequential(Proven(visit), sent): Sequential<Proven, Sent>,
) -> Result<HttpResponse, PageError> {
    let draft = if sent.fields.has("resolutions") {
        match resolution::accept(&visit, &sent).await? {
            Accepted::ReturnDraft(draft) => draft,
            Accepted::Page(page) => return Ok(page),
        }
    } else {
        sent.draft
    };
    if draft.choices.is_empty() {
        return Ok(redirect(&visit.url("/choose")));
    }
    let Some(items) = basket::load(&visit, &draft).await? else {
        return choose::show_again(&visit, &draft).await;
    };
    if items.iter().any(|item| item.choice.resolution.is_none()) {
        return Ok(redirect(&draft.url(&visit, "/resolution")));
    }
    let page = MethodPage::new(&visit, &draft, &items);
    html(&page.page, &page)
}

/// Whether the shopper has chosen a method that is possible for the items.
pub(crate) fn is_chosen(visit: &Visit, draft: &ReturnDraft, items: &[Item]) -> bool {
    let page = MethodPage::new(visit, draft, items);
    draft.method.is_some() && page.methods.iter().any(|method| method.is_chosen)
}

/// The page with the error that no possible method is chosen.
pub(crate) fn show_again(
    visit: &Visit,
    draft: &ReturnDraft,
    items: &[Item],
) -> Result<HttpResponse, PageError> {
    let mut page = MethodPage::new(visit, draft, items);
    let possible = page.methods.iter().position(|method| method.refusals.is_empty());
    let (id, text) = match possible {
        Some(index) => (format!("method-{index}"), page.page.t("method-missing")),
        None => ("methods".to_owned(), page.page.t("method-none")),
    };
    page.problems = vec![Problem { id, text }];
    rejected(&page.page, &page)
}

impl MethodPage {
    fn new(visit: &Visit, draft: &ReturnDraft, items: &[Item]) -> Self {
        let page = Page::new(visit, Some(Step::Method));
        let methods = methods(&page, items, draft.method.as_deref(), is_gift(visit));
        let choices = ReturnDraft { choices: draft.choices.clone(), method: None };
        Self {
            methods,
            problems: Vec::new(),
            hidden: choices.fields(),
            form_method: if choices.is_long() { "post" } else { "get" },
            back: draft.url(visit, "/resolution"),
            page,
        }
    }
}

/// The merchant's methods. The chosen one is marked if the items allow it; without a choice, the cheapest.
pub(crate) fn methods(
    page: &Page,
    items: &[Item],
    chosen: Option<&str>,
    is_gift: bool,
) -> Vec<MethodOption> {
    let portal = &page.portal;
    let is_exchanged = |item: &Item| item.choice.resolution != Some(Resolution::Refund);
    let is_free = portal.free_exchange_shipping && items.iter().all(is_exchanged);
    let currency = items.first().map_or("", |item| item.line.currency.as_str());
    let option = |offer: &crate::merchant::MethodOffer| {
        let has_cost = portal.currency == currency && !is_free;
        let by_settings = if has_cost { offer.shipping_cost_cents } else { 0 };
        let (cost_cents, rule) = cost(items, &offer.method, by_settings);
        let cost = match cost_cents {
            0 => page.t("method-free"),
            cents => page.money(&cents, currency),
        };
        let name = text_id(&offer.method);
        MethodOption {
            label: page.t(name),
            hint: page.t(&format!("{name}-hint")),
            note: portal.rule_text(rule, page.language).map(str::to_owned),
            cost: (!is_gift).then_some(cost),
            cost_cents,
            refusals: refusals(page, items, &offer.method),
            is_chosen: false,
            value: offer.method.clone(),
        }
    };
    let mut methods: Vec<_> = portal.methods.iter().map(option).collect();
    let is_chosen = |it: &MethodOption| chosen.is_none_or(|chosen| chosen == it.value);
    let possible = methods.iter_mut().filter(|it| it.refusals.is_empty() && is_chosen(it));
    if let Some(method) = possible.min_by_key(|it| it.cost_cents) {
        method.is_chosen = true;
    }
    methods
}

/// The highest cost of an item, and the rule that caused it.
fn cost<'a>(items: &'a [Item], method: &str, by_settings: i64) -> (i64, Option<&'a str>) {
    let cost = |item: &'a Item| {
        let option = item.option(method);
        let rule = option.and_then(|option| option.cost_rule.as_deref());
        let by_rule = option.and_then(|option| option.return_shipping_cost_cents);
        (if rule.is_some() { by_rule.unwrap_or_default() } else { by_settings }, rule)
    };
    items.iter().map(cost).max_by_key(|(cents, _)| *cents).unwrap_or((by_settings, None))
}

fn refusals(page: &Page, items: &[Item], method: &str) -> Vec<String> {
    let paid: Option<i64> = items.iter().map(Item::paid).sum();
    let too_much = Refusal { code: "keep_not_allowed".to_owned(), rule: None };
    let refusal = |item: &Item| {
        let option = item.option(method);
        let by_rule = option.and_then(|option| option.ineligible.as_ref());
        let limit = item.keep_up_to(method, items);
        let by_sum = limit.zip(paid).filter(|(limit, paid)| paid > limit).map(|_| &too_much);
        let refusal = by_rule.or_else(|| item.line.refusal(method)).or(by_sum)?;
        let reason = refusal::sentence(page, refusal, None);
        Some(page.t2("method-refused", "title", &item.line.title, "reason", reason))
    };
    items.iter().filter_map(refusal).collect()
}

/// The start of the ids of a method's texts.
pub(crate) fn text_id(method: &str) -> &'static str {
    match method {
        "express-returns" => "method-express",
        "customer-keep" => "method-keep",
        _ => "method-mail",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        basket::tests::{item, item_of, page},
        order::tests::{order, order_of, unit},
    };

    fn costs(choice: &str, is_gift: bool) -> Vec<Option<String>> {
        let methods = methods(&page(), &[item(choice)], None, is_gift);
        methods.into_iter().map(|method| method.cost).collect()
    }

    #[test]
    fn the_cost_is_that_of_the_whole_return() {
        let [paid, free] = ["€4.95", "Free"].map(|text| Some(text.to_owned()));
        assert_eq!(costs("A-1~1~2~SMALL~refund", false), [paid, free.clone()]);
        assert_eq!(costs("A-1~1~2~SMALL~gift_card", false), [free.clone(), free]);
        assert_eq!(costs("A-1~1~2~SMALL~gift_card", true), [None, None]);
    }

    #[test]
    fn a_heavy_item_does_not_come_back_by_express() {
        let mut heavy = unit("1", 1);
        heavy["unavailable_methods"] =
            json!([{ "method": "express-returns", "code": "too_heavy_for_express" }]);
        let mut item = item("A-1~1~1~SMALL~refund");
        item.line = order(&[heavy]).lines.remove(0);
        let methods = methods(&page(), &[item], Some("express-returns"), false);
        let chosen: Vec<_> = methods.iter().map(|it| (it.is_chosen, it.refusals.len())).collect();
        assert_eq!(chosen, [(false, 0), (false, 1)]);
    }

    #[test]
    fn rules_decide_costs_and_methods() {
        let mut bulky = unit("1", 1);
        let option = |method: &str, refusal: serde_json::Value| {
            json!({ "outcome": "refund", "method": method, "ineligible": refusal,
                    "return_shipping_cost_cents": 900, "cost_rule": "bulky" })
        };
        let refused = json!({ "code": "method_not_offered", "rule": "sale" });
        bulky["choices"] = json!([
            { "options": [option("mail-back", json!(null)), option("express-returns", refused)] },
            { "reasons": ["OTHER"], "options": [] },
        ]);
        let mut item = item("A-1~1~1~SMALL~refund");
        item.line = order(&[bulky]).lines.remove(0);
        let methods = methods(&page(), &[item], None, false);
        let shown: Vec<_> = methods
            .iter()
            .map(|it| (it.cost.as_deref(), it.note.as_deref(), it.refusals.join(" ")))
            .collect();
        let note = Some("Large items cost more.");
        let refusal = "Not possible for Shirt 1: Sale items stay yours.".to_owned();
        assert_eq!(shown, [(Some("€9.00"), note, String::new()), (Some("€9.00"), note, refusal)]);
    }

    #[test]
    fn items_that_cost_too_much_together_cannot_be_kept() {
        let mut small = unit("1", 1);
        small["choices"] = json!([{ "options": [
            { "outcome": "refund", "method": "mail-back", "return_shipping_cost_cents": 0, "keep_up_to_cents": 5000 },
        ] }]);
        let mut item = item("A-1~1~1~SMALL~refund");
        item.line = order(&[small]).lines.remove(0);
        let refusals =
            |items: &[Item]| methods(&page(), items, None, false).remove(0).refusals.len();
        assert_eq!(refusals(std::slice::from_ref(&item)), 0);
        assert_eq!(refusals(&[item.clone(), item]), 2);
    }

    #[test]
    fn units_that_are_kept_already_count_for_every_order_of_the_return() {
        let item = |order: &str, kept: i64, limit: i64| {
            let mut unit = unit("1", 1);
            unit["choices"] = json!([{ "options": [
                { "outcome": "refund", "method": "mail-back", "return_shipping_cost_cents": 0, "keep_up_to_cents": limit },
            ] }]);
            let page =
                json!({ "order_identifier": order, "kept_amount_cents": kept, "units": [unit] });
            item_of(order_of(page), &format!("{order}~1~1~SMALL~refund"))
        };
        let refusals =
            |items: &[Item]| methods(&page(), items, None, false).remove(0).refusals.len();
        // A unit costs 4995. The units that are kept of the own order are no part of the limit already.
        assert_eq!(refusals(&[item("A-1", 9_999, 4_995)]), 0);
        let both = |first, second| [item("A-1", first, 10_000), item("A-2", second, 10_000)];
        assert_eq!(refusals(&both(10, 10)), 0);
        assert_eq!(refusals(&both(10, 11)), 1);
        assert_eq!(refusals(&both(11, 11)), 2);
        // Two items of an order count once.
        let other = item("A-2", 5_000, 20_000);
        assert_eq!(refusals(&[item("A-1", 0, 20_000), other.clone(), other]), 0);
    }

    #[test]
    fn the_cheapest_possible_method_is_preselected() {
        let methods = methods(&page(), &[item("A-1~1~1~SMALL~refund")], None, false);
        let chosen: Vec<_> = methods.iter().map(|it| it.is_chosen).collect();
        assert_eq!(chosen, [false, true]);
    }
}
