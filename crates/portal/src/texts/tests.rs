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

/// All texts of a folder's files.
fn contents(folder: &Path, found: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents(&path, found);
        } else {
            found.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_text_that_pages_name_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut used, english) = (String::new(), messages(Language::En));
    contents(&root.join("templates"), &mut used);
    contents(&root.join("src"), &mut used);
    let mut count = 0;
    for call in [".t(\"", ".t1(\"", ".t2(\"", ".t3(\""] {
        for rest in used.split(call).skip(1) {
            let id = rest.split('"').next().unwrap();
            assert!(english.contains_key(id), "{id} is not in en.ftl");
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
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
