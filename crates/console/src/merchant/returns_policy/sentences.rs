//! Rules for returns as sentences.

use std::fmt::Display;

use chrono::NaiveDate;
use domain::{
    merchant::{
        Conditions, Cost, DateRange, DayRange, Effects, Keep, Language, Outcome, ReturnCount,
        ReturnMethod, Review, ReviewDecision, ReviewTerms, Rule, Settings, Window, WindowStart,
    },
    policy::NON_RETURNABLE_TAGS,
};
use pages::text::{count, money};

/// A rule as a sentence. Amounts without a currency are in that of the merchant, and reasons have its labels.
pub(super) fn of_rule(rule: &Rule, settings: &Settings) -> String {
    let conditions = conditions(&rule.when, settings);
    let start = match conditions.is_empty() {
        true => "Always".to_owned(),
        false => format!("If {}", listed(&conditions, "and")),
    };
    let effects = effects(&rule.then, &settings.currency).join("; ");
    let text = |(language, text): (&Language, &String)| format!("“{text}” ({language})");
    let texts: Vec<_> = rule.text.iter().map(text).collect();
    match texts.is_empty() {
        true => format!("{start}: {effects}."),
        false => format!("{start}: {effects}. Shoppers read {}.", texts.join(", ")),
    }
}

/// The merchant's other settings, which are the last rule, as a sentence.
pub(super) fn of_settings(settings: &Settings) -> String {
    let returns = &settings.returns;
    let own = settings.final_sale_tags.iter().map(String::as_str);
    let tags: Vec<_> = NON_RETURNABLE_TAGS.into_iter().chain(own).collect();
    let window = Window { days: Some(settings.return_window_days), from: None, until: None };
    let mut clauses = vec![format!(
        "the unit can be returned {}, unless the line has the tag {}",
        time_of(&window),
        listed(&tags, "or")
    )];
    for offer in &returns.methods {
        clauses.push(match (offer.method, offer.shipping_cost_cents) {
            (ReturnMethod::CustomerKeep, _) => "the shopper can keep nothing".to_owned(),
            (method, 0) => format!("return shipping by {method} is free"),
            (method, cents) => {
                let free = if returns.free_exchange_shipping { FREE_EXCHANGE } else { "" };
                let cost = money(cents, &settings.currency);
                format!("return shipping by {method} costs {cost}{free}")
            }
        });
    }
    if let Some(weight) = settings.express_max_weight {
        clauses.push(format!("units heavier than {weight} cannot be returned by express-returns"));
    }
    if let Some(card) = returns.gift_card.as_ref().filter(|it| it.bonus_credit_amount_cents > 0) {
        let bonus = money(card.bonus_credit_amount_cents, &settings.currency);
        clauses.push(format!("a gift card has a bonus of {bonus}"));
    }
    format!("Otherwise: {}.", clauses.join("; "))
}

const FREE_EXCHANGE: &str = ", and nothing if every unit is exchanged";

/// The conditions, one clause each. All fields are named, so that a new condition gets its clause.
fn conditions(when: &Conditions, settings: &Settings) -> Vec<String> {
    let Conditions {
        line_tags,
        order_tags,
        skus,
        unit_price,
        weight,
        countries,
        ordered,
        days_since_order,
        days_since_shipping,
        days_since_delivery,
        reasons,
        methods,
        outcomes,
        concepts,
        returns_of_shopper,
        shoppers,
    } = when;
    let clauses = [
        one_of("the line has the tag", line_tags),
        one_of("the order has the tag", order_tags),
        one_of("the SKU is", skus),
        unit_price.as_ref().map(|range| {
            let currency = range.currency.as_ref().unwrap_or(&settings.currency);
            let amount = |cents| money(cents, currency);
            format!("the unit price is {}", between(range.min_cents, range.max_cents, amount))
        }),
        weight.map(|range| {
            format!("the weight is {}", between(range.min, range.max, |weight| weight.to_string()))
        }),
        one_of("the order goes to", countries),
        ordered.map(|range| format!("the order was placed {}", days_of(range))),
        days_ago("the order was placed", *days_since_order),
        days_ago("the unit was shipped", *days_since_shipping),
        days_ago("the unit was delivered", *days_since_delivery),
        reasons.as_deref().map(|codes| format!("the reason is {}", reasons_of(codes, settings))),
        methods.as_deref().map(|methods| format!("the method is {}", listed(methods, "or"))),
        outcomes.as_deref().map(|outcomes| format!("the shopper wants {}", results(outcomes))),
        one_of("the concept is", concepts),
        returns_of_shopper.map(returns_in_words),
        one_of("the shopper is on the list", shoppers),
    ];
    clauses.into_iter().flatten().collect()
}

/// The effects, one clause each. All fields are named, so that a new effect gets its clause.
fn effects(then: &Effects, currency: &str) -> Vec<String> {
    let Effects {
        returnable,
        window,
        costs,
        methods,
        outcomes,
        keep,
        gift_card_bonus_percent,
        exchange_bonus_percent,
        review,
        return_to,
    } = then;
    let percent = |start: &str, noun: &str, percent: Option<i64>| {
        percent.map(|percent| match percent {
            0 => format!("{start} has no {noun}"),
            percent => format!("{start} has a {noun} of {percent} % of the amount paid"),
        })
    };
    let before_costs = [
        returnable.map(|returnable| match returnable {
            true => "the unit can be returned, whatever its tags".to_owned(),
            false => "the unit cannot be returned".to_owned(),
        }),
        window.map(|window| format!("the unit can be returned {}", time_of(&window))),
    ];
    let costs = costs.iter().flatten().map(|cost| Some(cost_in_words(cost, currency)));
    let after_costs = [
        methods.as_deref().map(|it| format!("the only method is {}", listed(it, "or"))),
        outcomes.as_deref().map(|it| format!("the shopper gets only {}", results(it))),
        keep.as_ref().map(|keep| keep_in_words(keep, currency)),
        percent("a gift card", "bonus", *gift_card_bonus_percent),
        percent("a variant of another price", "discount", *exchange_bonus_percent),
        review.map(review_in_words),
        return_to.as_ref().map(|warehouse| format!("the unit goes to the warehouse {warehouse}")),
    ];
    before_costs.into_iter().chain(costs).chain(after_costs).flatten().collect()
}

fn review_in_words(review: Review) -> String {
    let Some(ReviewTerms { within_days, then }) = review.terms() else {
        return "the return needs no review".to_owned();
    };
    let decision = match then {
        ReviewDecision::Approve => "approved",
        ReviewDecision::Decline => "declined",
    };
    let days = count(within_days, "day", "days");
    format!("the return waits for a review, and is {decision} after {days} if nobody decides")
}

/// Values in words: "a, b or c".
fn listed(values: &[impl Display], conjunction: &str) -> String {
    let Some((last, others)) = values.split_last() else { return String::new() };
    if others.is_empty() {
        return last.to_string();
    }
    let others: Vec<_> = others.iter().map(ToString::to_string).collect();
    format!("{} {conjunction} {last}", others.join(", "))
}

/// A clause about a list of which one value must hold.
fn one_of(start: &str, values: &Option<Vec<String>>) -> Option<String> {
    let values = values.as_deref()?;
    Some(format!("{start} {}", listed(values, "or")))
}

/// A clause about the days since something.
fn days_ago(start: &str, range: Option<DayRange>) -> Option<String> {
    let DayRange { min, max } = range?;
    let days = between(min, max, |days| count(days, "day", "days"));
    Some(format!("{start} {days} ago"))
}

/// A range in words. A rule has at least one end.
fn between<T: PartialEq>(min: Option<T>, max: Option<T>, show: impl Fn(T) -> String) -> String {
    match (min, max) {
        (Some(min), Some(max)) if min == max => show(min),
        (Some(min), Some(max)) => format!("{} to {}", show(min), show(max)),
        (Some(min), None) => format!("at least {}", show(min)),
        (None, Some(max)) => format!("at most {}", show(max)),
        (None, None) => "any".to_owned(),
    }
}

fn days_of(range: DateRange) -> String {
    match (range.from.map(day), range.until.map(day)) {
        (Some(from), Some(until)) if from == until => format!("on {from}"),
        (Some(from), Some(until)) => format!("from {from} to {until}"),
        (Some(from), None) => format!("on {from} or later"),
        (None, Some(until)) => format!("on {until} or earlier"),
        (None, None) => "on any day".to_owned(),
    }
}

fn day(day: NaiveDate) -> String {
    day.format("%-d %B %Y").to_string()
}

/// The labels of reasons. A reason that the merchant no longer has is shown by its code.
fn reasons_of(codes: &[String], settings: &Settings) -> String {
    let known = settings.returns.with_withdrawal().reasons;
    let name = |code: &String| match known.iter().find(|reason| reason.code == *code) {
        Some(reason) => format!("“{}”", reason.label),
        None => code.clone(),
    };
    listed(&codes.iter().map(name).collect::<Vec<_>>(), "or")
}

fn results(outcomes: &[Outcome]) -> String {
    let name = |outcome: &Outcome| match outcome {
        Outcome::Refund => "a refund",
        Outcome::Exchange => "an exchange",
        Outcome::GiftCard => "a gift card",
    };
    listed(&outcomes.iter().map(name).collect::<Vec<_>>(), "or")
}

fn returns_in_words(range: ReturnCount) -> String {
    let ReturnCount { days, min, max } = range;
    let returns = between(min, max, |returns| count(returns, "return", "returns"));
    format!("the shopper started {returns} in the last {}", count(days, "day", "days"))
}

fn time_of(window: &Window) -> String {
    let start = match window.from.unwrap_or(WindowStart::Shipping) {
        WindowStart::Order => "the order",
        WindowStart::Shipping => "shipping",
        WindowStart::Delivery => "delivery",
    };
    let days = window.days.map(|days| format!("for {} from {start}", count(days, "day", "days")));
    match (window.until.map(day), days) {
        (Some(until), Some(days)) => format!("until {until}, and at least {days}"),
        (Some(until), None) => format!("until {until}"),
        (None, days) => days.unwrap_or_else(|| "at no time".to_owned()),
    }
}

fn cost_in_words(cost: &Cost, merchant_currency: &str) -> String {
    let Cost { method, currency, shipping_cost_cents } = cost;
    let by = method.map(|method| format!(" by {method}")).unwrap_or_default();
    match (shipping_cost_cents, currency) {
        (0, None) => format!("return shipping{by} is free"),
        (0, Some(currency)) => format!("return shipping{by} is free for orders in {currency}"),
        (cents, currency) => {
            let currency = currency.as_deref().unwrap_or(merchant_currency);
            format!("return shipping{by} costs {}", money(*cents, currency))
        }
    }
}

fn keep_in_words(keep: &Keep, merchant_currency: &str) -> String {
    let currency = keep.currency.as_deref().unwrap_or(merchant_currency);
    match keep.up_to_cents {
        0 => "the shopper can keep only units that cost nothing".to_owned(),
        cents => {
            let amount = money(cents, currency);
            format!("the shopper can keep units that cost at most {amount} together")
        }
    }
}

#[cfg(test)]
mod tests;
