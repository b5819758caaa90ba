//! A draft of a policy: JSON that a person writes, in the format of `backhaul policy apply`.

use domain::json::Document;
use serde_json::{Map, Value, json};

use super::examples::Example;

/// The members of a rule in the order in which people write them. Others follow.
const RULE_MEMBERS: &[&str] = &["id", "text", "when", "then"];
const POLICY_MEMBERS: &[&str] = &["rules", "shoppers"];

/// `rules` and, if the lists of shoppers change too, `shoppers`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draft(Map<String, Value>);

impl Draft {
    pub(super) fn of(rules: &[Value]) -> Self {
        Self(Map::from_iter([("rules".to_owned(), rules.into())]))
    }

    /// Reads the text of a person. Without `rules` the draft has the stored ones.
    pub(super) fn read(text: &str, stored: &[Value]) -> Result<Self, String> {
        let document = Document::parse(text.as_bytes());
        // A key that appears twice is an error, because a person means both.
        let document =
            document.map_err(|error| error.to_string().replace("the body", "the text"))?;
        match document.value().to_value() {
            Value::Object(mut members) => {
                members.entry("rules").or_insert_with(|| stored.into());
                Ok(Self(members))
            }
            _ => Err("must be an object, like { \"rules\": [] }".to_owned()),
        }
    }

    /// The policy in a request.
    pub(super) fn policy(&self) -> Value {
        Value::from(self.0.clone())
    }

    /// The rules. A faulty draft may have none.
    pub(super) fn rules(&self) -> &[Value] {
        self.0.get("rules").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The text that a person edits: each part of a rule in a line.
    pub(super) fn text(&self) -> String {
        let member = |(name, value): (&String, &Value)| match value {
            Value::Array(rules) if name == "rules" && !rules.is_empty() => {
                let rules: Vec<_> = rules.iter().map(rule_text).collect();
                format!("  \"rules\": [\n{}\n  ]", rules.join(",\n"))
            }
            value => format!("  {}: {}", json!(name), inline(value)),
        };
        let members: Vec<_> = ordered(&self.0, POLICY_MEMBERS).map(member).collect();
        format!("{{\n{}\n}}", members.join(",\n"))
    }

    /// Moves or removes a rule, or adds an example. `stored` are the merchant's lists of shoppers.
    pub(super) fn edit(&mut self, edit: &Edit<'_>, stored: &Map<String, Value>) {
        match *edit {
            Edit::MoveUp(id) => {
                if let Some((rules, place @ 1..)) = self.rule_mut(id) {
                    rules.swap(place, place - 1);
                }
            }
            Edit::MoveDown(id) => {
                if let Some((rules, place)) = self.rule_mut(id)
                    && place + 1 < rules.len()
                {
                    rules.swap(place, place + 1);
                }
            }
            Edit::Remove(id) => {
                if let Some((rules, place)) = self.rule_mut(id) {
                    rules.remove(place);
                }
            }
            Edit::Insert(example) => self.insert(&example.policy(), stored),
        }
    }

    /// The rules, and the place of the one with this id.
    fn rule_mut(&mut self, id: &str) -> Option<(&mut Vec<Value>, usize)> {
        let rules = self.0.get_mut("rules")?.as_array_mut()?;
        let place = rules.iter().position(|rule| id_of(rule) == Some(id))?;
        Some((rules, place))
    }

    /// Adds the rules of an example as the last ones. A list of shoppers that the merchant has stays as it is; another
    /// one is added to the merchant's lists, because `shoppers` replaces them all.
    fn insert(&mut self, example: &Map<String, Value>, stored: &Map<String, Value>) {
        for (name, list) in example.get("shoppers").and_then(Value::as_object).into_iter().flatten()
        {
            if stored.contains_key(name) && !self.0.contains_key("shoppers") {
                continue;
            }
            let lists = self.0.entry("shoppers").or_insert_with(|| Value::from(stored.clone()));
            if let Value::Object(lists) = lists {
                lists.entry(name).or_insert_with(|| list.clone());
            }
        }
        let Some(Value::Array(rules)) = self.0.get_mut("rules") else { return };
        for rule in example.get("rules").and_then(Value::as_array).into_iter().flatten() {
            let mut rule = rule.clone();
            let id = id_of(&rule).unwrap_or_default().to_owned();
            let is_free = |id: &String| rules.iter().all(|rule| id_of(rule) != Some(id));
            let others = (2..).map(|number| format!("{id}-{number}"));
            let free = std::iter::once(id.clone()).chain(others).find(is_free);
            if let (Some(free), Value::Object(parts)) = (free, &mut rule) {
                parts.insert("id".to_owned(), free.into());
            }
            rules.push(rule);
        }
    }
}

/// A change of a draft that a button makes.
pub(super) enum Edit<'a> {
    /// Moves the rule with this id before the previous one.
    MoveUp(&'a str),
    MoveDown(&'a str),
    Remove(&'a str),
    Insert(&'static Example),
}

impl<'a> Edit<'a> {
    /// Reads the value of a button, like `up final-sale`.
    pub(super) fn read(value: &'a str) -> Option<Self> {
        let (edit, name) = value.split_once(' ')?;
        match edit {
            "up" => Some(Self::MoveUp(name)),
            "down" => Some(Self::MoveDown(name)),
            "remove" => Some(Self::Remove(name)),
            "insert" => Example::find(name).map(Self::Insert),
            _ => None,
        }
    }
}

/// The id of a rule, if it has one.
pub(super) fn id_of(rule: &Value) -> Option<&str> {
    rule.get("id").and_then(Value::as_str)
}

fn rule_text(rule: &Value) -> String {
    let Value::Object(parts) = rule else { return format!("    {}", inline(rule)) };
    let part =
        |(name, value): (&String, &Value)| format!("      {}: {}", json!(name), inline(value));
    let lines: Vec<_> = ordered(parts, RULE_MEMBERS).map(part).collect();
    format!("    {{\n{}\n    }}", lines.join(",\n"))
}

/// A value in one line.
fn inline(value: &Value) -> String {
    match value {
        Value::Array(values) if !values.is_empty() => {
            let values: Vec<_> = values.iter().map(inline).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(members) if !members.is_empty() => {
            let member =
                |(name, value): (&String, &Value)| format!("{}: {}", json!(name), inline(value));
            let members: Vec<_> = members.iter().map(member).collect();
            format!("{{ {} }}", members.join(", "))
        }
        value => value.to_string(),
    }
}

/// The members of an object, some of them first.
fn ordered<'a>(
    members: &'a Map<String, Value>,
    first: &'a [&'a str],
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let known = first.iter().filter_map(move |name| members.get_key_value(*name));
    let others = members.iter().filter(move |(name, _)| !first.contains(&name.as_str()));
    known.chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(policy: Value) -> Draft {
        Draft::read(&policy.to_string(), &[]).unwrap()
    }

    fn ids(draft: &Draft) -> Vec<&str> {
        draft.rules().iter().filter_map(id_of).collect()
    }

    #[test]
    fn the_text_of_a_draft_is_read_as_the_same_draft() {
        let draft = draft(json!({
            "rules": [
                { "then": { "costs": [{ "shipping_cost_cents": 0 }] }, "id": "a", "when": {},
                  "text": { "en": "It’s \"free\"." }, "priority": 1 },
                { "id": "b", "then": { "returnable": false } }, 7,
            ],
            "shoppers": { "vip": [] },
        }));
        let text = r#"{
  "rules": [
    {
      "id": "a",
      "text": { "en": "It’s \"free\"." },
      "when": {},
      "then": { "costs": [{ "shipping_cost_cents": 0 }] },
      "priority": 1
    },
    {
      "id": "b",
      "then": { "returnable": false }
    },
    7
  ],
  "shoppers": { "vip": [] }
}"#;
        assert_eq!(draft.text(), text);
        assert_eq!(Draft::read(&draft.text(), &[]), Ok(draft));
        assert_eq!(Draft::of(&[]).text(), "{\n  \"rules\": []\n}");
    }

    #[test]
    fn a_text_that_is_no_policy_is_refused() {
        for (text, error) in [
            ("", "the text is empty"),
            ("[]", "must be an object"),
            ("{ \"rules\": [} ", "the text is not JSON"),
            ("{ \"rules\": [], \"rules\": [] }", "appears twice"),
        ] {
            let refused = Draft::read(text, &[]).unwrap_err();
            assert!(refused.contains(error), "{text}: {refused}");
        }
    }

    #[test]
    fn a_draft_of_lists_keeps_the_rules() {
        let rules = [json!({ "id": "a" })];
        let draft = Draft::read("{ \"shoppers\": {} }", &rules).unwrap();
        assert_eq!(draft.policy(), json!({ "rules": rules, "shoppers": {} }));
        // The service that reads the draft says why this is none.
        let faulty = Draft::read("{ \"rules\": 1 }", &rules).unwrap();
        assert_eq!((faulty.rules().len(), faulty.policy()), (0, json!({ "rules": 1 })));
    }

    #[test]
    fn rules_are_moved_and_removed() {
        let mut draft = draft(json!({ "rules": [{ "id": "a" }, { "id": "b" }, { "id": "c" }] }));
        for (value, expected) in [
            ("up a", ["a", "b", "c"]),
            ("up c", ["a", "c", "b"]),
            ("down a", ["c", "a", "b"]),
            ("down b", ["c", "a", "b"]),
            ("down d", ["c", "a", "b"]),
        ] {
            draft.edit(&Edit::read(value).unwrap(), &Map::new());
            assert_eq!(ids(&draft), expected, "{value}");
        }
        draft.edit(&Edit::read("remove a").unwrap(), &Map::new());
        assert_eq!(ids(&draft), ["c", "b"]);
        for value in ["", "up", "insert unknown", "sort a"] {
            assert!(Edit::read(value).is_none(), "{value}");
        }
    }

    #[test]
    fn an_example_gets_free_ids_and_its_list() {
        let insert = Edit::read("insert frequent-returners").unwrap();
        let mut one = draft(json!({ "rules": [{ "id": "trusted" }] }));
        let stored = Map::from_iter([("vip".to_owned(), json!([]))]);
        one.edit(&insert, &stored);
        one.edit(&insert, &stored);
        assert_eq!(
            ids(&one),
            ["trusted", "trusted-2", "frequent-returners", "trusted-3", "frequent-returners-2"]
        );
        let lists =
            one.policy()["shoppers"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(lists, ["trusted", "vip"]);
        // The merchant's own list of this name is not replaced.
        let mut other = draft(json!({ "rules": [] }));
        other.edit(&insert, &Map::from_iter([("trusted".to_owned(), json!([]))]));
        assert_eq!(other.policy().get("shoppers"), None);
    }
}
