use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use fluent_syntax::{ast, parser};

use super::*;

/// The messages of a language with the names of their values.
fn messages(language: Language) -> BTreeMap<String, BTreeSet<String>> {
    let parsed = parser::parse(source(language)).unwrap_or_else(|(_, errors)| panic!("{errors:?}"));
    let messages = parsed.body.iter().filter_map(|entry| match entry {
        ast::Entry::Message(message) => Some(message),
        _ => None,
    });
    let mut found = BTreeMap::new();
    for message in messages {
        let text = format!("{:?}", message.value);
        let values = text.split("VariableReference { id: Identifier { name: \"").skip(1);
        let values = values.map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
        let id = message.id.name.to_owned();
        assert!(message.value.is_some(), "{id} has no text");
        assert!(found.insert(id, values).is_none(), "{} is there twice", message.id.name);
    }
    found
}

#[test]
fn every_text_exists_in_every_language_with_the_same_values() {
    let english = messages(Language::En);
    for language in Language::TRANSLATED {
        let translated = messages(language);
        for (id, values) in &english {
            let code = language.code();
            let other = translated.get(id).unwrap_or_else(|| panic!("{id} is missing in {code}"));
            assert_eq!(values, other, "the values of {id} in {code}");
        }
        let unknown: Vec<_> = translated.keys().filter(|id| !english.contains_key(*id)).collect();
        assert!(unknown.is_empty(), "{unknown:?} only in {}", language.code());
    }
}

/// Pages and mails add these to the start of an id.
const SUFFIXES: [&str; 5] = ["-title", "-text", "-hint", "-next", "-subject"];

/// Collects the quoted words of a folder's files, without tests.
fn quoted_words(folder: &Path, found: &mut BTreeSet<String>) {
    let is_word = |part: &&str| part.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            quoted_words(&path, found);
        } else if !path.ends_with("tests.rs") {
            let text = fs::read_to_string(path).unwrap();
            let code = text.split("mod tests {").next().unwrap();
            found.extend(code.split('"').filter(is_word).map(str::to_owned));
        }
    }
}

/// The folders that name texts, below those of the crates.
const USERS: [&str; 4] = ["portal/templates", "portal/src", "rma-engine/src/mails", "texts/src"];

/// The quoted words of pages and mails that can be ids or the starts of ids.
fn named() -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    for folder in USERS {
        quoted_words(&crates.join(folder), &mut found);
    }
    found
}

#[test]
fn every_text_has_a_use() {
    let named = named();
    let is_used = |id: &String| {
        let starts = SUFFIXES.iter().filter_map(|suffix| id.strip_suffix(suffix));
        named.contains(id) || starts.into_iter().any(|start| named.contains(start))
    };
    let english = messages(Language::En);
    let unused: Vec<_> = english.keys().filter(|id| !is_used(id)).collect();
    assert!(unused.is_empty(), "no page and no mail uses {unused:?}");
}

#[test]
fn every_text_that_pages_name_exists() {
    let english = messages(Language::En);
    let named = named();
    let group = |id: &str| id.split_once('-').map(|(group, _)| group.to_owned());
    let groups: BTreeSet<_> = english.keys().filter_map(|id| group(id)).collect();
    let exists = |id: &String| {
        let has_suffix = |suffix: &&str| english.contains_key(&format!("{id}{suffix}"));
        english.contains_key(id) || SUFFIXES.iter().any(has_suffix)
    };
    let ids = named.iter().filter(|word| group(word).is_some_and(|it| groups.contains(&it)));
    let (known, missing): (Vec<_>, Vec<_>) = ids.partition(|id| exists(id));
    assert!(missing.is_empty(), "{missing:?} are not in en.ftl");
    assert!(known.len() > 200, "{}", known.len());
}

#[test]
fn amounts_look_as_in_the_language() {
    let money = |language, cents: i64, currency| Texts::of(language).money(&cents, currency);
    assert_eq!(money(Language::En, 123_456, "EUR"), "€1,234.56");
    assert_eq!(money(Language::De, 123_456, "EUR"), "1.234,56\u{a0}€");
    assert_eq!(money(Language::Fr, 4995, "GBP"), "49,95\u{a0}£GB");
    assert_eq!(money(Language::Es, -5, "USD"), "-0,05\u{a0}US$");
    assert_eq!(money(Language::En, 0, "USD"), "$0.00");
    assert_eq!(money(Language::En, 1250, "JPY"), "¥1,250");
    assert_eq!(money(Language::En, 5000, "CHF"), "CHF\u{a0}50.00");
    assert_eq!(money(Language::De, 1_234_567, "KWD"), "1.234,567\u{a0}KWD");
}

#[test]
fn dates_look_as_in_the_language() {
    let day: NaiveDate = "2026-12-02".parse().unwrap();
    let date = |language| Texts::of(language).day(&day);
    assert_eq!(date(Language::De), "2. Dezember 2026");
    assert_eq!(date(Language::Fr), "2 décembre 2026");
    assert_eq!(date(Language::Es), "2 de diciembre de 2026");
    assert_eq!(date(Language::En), "2 December 2026");
}

#[test]
fn plurals_follow_the_language() {
    let text =
        |language, count: u32| Texts::of(language).t1("error-too-many-text", "minutes", count);
    assert_ne!(text(Language::En, 1).replace('1', "2"), text(Language::En, 2));
    assert!(text(Language::De, 5).contains('5'));
    let stock = |count: i64| Texts::of(Language::Es).t1("exchange-stock", "count", count);
    assert_eq!([stock(1), stock(2)], ["1 disponible", "2 disponibles"]);
}

#[test]
fn pseudo_texts_are_marked_and_have_no_plain_letters() {
    let text = Texts::of(Language::Pseudo).t("find-title");
    assert!(text.starts_with('[') && text.ends_with(']'), "{text}");
    assert!(!text.contains(|c: char| c.is_ascii_alphabetic()), "{text}");
    let text = Texts::of(Language::PseudoRtl).t1("error-too-many-text", "minutes", 5_u32);
    assert!(text.starts_with("\u{202e}["), "{text}");
    let day: NaiveDate = "2026-12-02".parse().unwrap();
    let date = Texts::of(Language::Pseudo).day(&day);
    assert!(!date.contains(|c: char| c.is_ascii_alphabetic()), "{date}");
}

#[test]
fn a_giftee_learns_that_the_giver_can_see_the_return() {
    let portals = ["portal", "Portal", "portail"];
    for language in Language::TRANSLATED {
        for id in ["find-gift-hint", "check-email-hint"] {
            let text = Texts::of(language).t(id);
            assert!(portals.iter().any(|portal| text.contains(portal)), "{text}");
        }
    }
}
