//! How a path misbehaves: steps taken one request at a time, then it is well again.
//!
//! A rule for exactly the path wins over one that ends in `*`, and among those the longest.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::interface::Interface;

/// What a path does instead of answering as it should.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// `/rmas`, or `/blue/*` for everything below.
    pub path: String,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(rename = "do")]
    pub act: Act,
    /// How many requests take this step; afterwards comes the next.
    #[serde(default)]
    pub times: Times,
    /// Waits before doing anything.
    #[serde(default)]
    pub delay_ms: u64,
    /// For `answer` and `redirect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// For `answer`: the body instead of the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// For `answer`: seconds or an HTTP date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<String>,
    /// For `redirect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// For `huge` and `drip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// For `drip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Answers with `status`, `body` and `retry_after`.
    Answer,
    /// Takes the request and says nothing.
    Hang,
    /// Answers 200 and lets the body trickle, `bytes` of them, one `every_ms`.
    Drip,
    /// Resets the connection without an answer.
    Reset,
    /// Answers 200 with a body of `bytes`.
    Huge,
    /// Answers with `status` and `location`.
    Redirect,
    /// Answers 401 to every token issued before this rule was set, and to none at all.
    ExpireToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Times {
    Count(u32),
    Word(Always),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Always {
    Always,
}

impl Default for Times {
    fn default() -> Self {
        Self::Count(1)
    }
}

/// A step to take now.
#[derive(Clone, Debug)]
pub struct Due {
    pub step: Step,
    /// How many tokens had been issued when the rule was set.
    pub tokens_before: u64,
}

/// The rules in force.
#[derive(Debug, Default)]
pub struct Behaviours {
    any: AtomicBool,
    rules: Mutex<Vec<Standing>>,
}

#[derive(Debug)]
struct Standing {
    rule: Rule,
    tokens_before: u64,
    at: usize,
    taken: u32,
}

impl Behaviours {
    /// Puts a rule in force, in place of an earlier one for the same path.
    pub fn set(&self, rule: Rule, tokens_before: u64) {
        let mut rules = self.lock();
        rules.retain(|standing| standing.rule.path != rule.path);
        rules.push(Standing { rule, tokens_before, at: 0, taken: 0 });
        self.any.store(true, Ordering::Release);
    }

    /// Lifts the rule for a path, or all of them.
    pub fn lift(&self, path: Option<&str>) {
        let mut rules = self.lock();
        rules.retain(|standing| path.is_some_and(|path| standing.rule.path != path));
        self.any.store(!rules.is_empty(), Ordering::Release);
    }

    pub fn list(&self) -> Vec<Rule> {
        self.lock().iter().map(|standing| standing.rule.clone()).collect()
    }

    /// The step that this request takes, if its path does not simply behave.
    pub fn next(&self, path: &str) -> Option<Due> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let mut rules = self.lock();
        let standing = rules
            .iter_mut()
            .filter(|standing| standing.rule.covers(path))
            .max_by_key(|standing| (standing.rule.path == path, standing.rule.path.len()))?;
        standing.next()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Standing>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Standing {
    fn next(&mut self) -> Option<Due> {
        loop {
            let step = self.rule.steps.get(self.at)?;
            if let Times::Count(times) = step.times {
                if self.taken >= times {
                    self.at += 1;
                    self.taken = 0;
                    continue;
                }
                self.taken += 1;
            }
            return Some(Due { step: step.clone(), tokens_before: self.tokens_before });
        }
    }
}

impl Step {
    fn check(&self) -> Result<(), String> {
        let own: &[&str] = match self.act {
            Act::Answer => &["status", "body", "retry_after"],
            Act::Redirect => &["status", "location"],
            Act::Huge => &["bytes"],
            Act::Drip => &["bytes", "every_ms"],
            Act::Hang | Act::Reset | Act::ExpireToken => &[],
        };
        let given = [
            ("status", self.status.is_some()),
            ("body", self.body.is_some()),
            ("retry_after", self.retry_after.is_some()),
            ("location", self.location.is_some()),
            ("bytes", self.bytes.is_some()),
            ("every_ms", self.every_ms.is_some()),
        ];
        if let Some((name, _)) = given.iter().find(|(name, is)| *is && !own.contains(name)) {
            return Err(format!("`{name}` means nothing to this step; see GET /"));
        }
        match self.status {
            Some(status) if !(200..=999).contains(&status) => {
                Err(format!("`status` {status} cannot be answered"))
            }
            Some(status @ (204 | 304)) if self.body.is_some() => {
                Err(format!("`status` {status} has no `body`"))
            }
            _ => Ok(()),
        }
    }
}

impl Rule {
    /// Says what is wrong with a rule that could not be obeyed.
    pub fn check(&self) -> Result<(), String> {
        if !self.path.starts_with('/') {
            return Err("`path` must begin with a slash".to_owned());
        }
        if !self.path.ends_with('*') && Interface::of(&self.path).is_none() {
            return Err(format!("a merchant has no endpoint at `path`; {}", Interface::known()));
        }
        if self.steps.is_empty() {
            return Err("`steps` is empty; DELETE /behaviour lifts a rule".to_owned());
        }
        self.steps.iter().try_for_each(Step::check)
    }

    fn covers(&self, path: &str) -> bool {
        match self.path.strip_suffix('*') {
            Some(prefix) => path.starts_with(prefix),
            None => self.path == path,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Behaviours, Rule};

    fn behaviours(rules: serde_json::Value) -> Behaviours {
        let behaviours = Behaviours::default();
        for rule in serde_json::from_value::<Vec<Rule>>(rules).unwrap() {
            rule.check().unwrap();
            behaviours.set(rule, 0);
        }
        behaviours
    }

    #[track_caller]
    fn check(behaviours: &Behaviours, path: &str, want: &[Option<u16>]) {
        let statuses: Vec<_> = want
            .iter()
            .map(|_| behaviours.next(path).map(|due| due.step.status.unwrap()))
            .collect();
        assert_eq!(statuses, want, "{path}");
    }

    #[test]
    fn steps_are_taken_in_turn_and_then_the_path_is_well() {
        let behaviours = behaviours(json!([{"path": "/rmas", "steps": [
            {"do": "answer", "status": 500, "times": 2},
            {"do": "answer", "status": 503},
        ]}]));
        check(&behaviours, "/other", &[None]);
        check(&behaviours, "/rmas", &[Some(500), Some(500), Some(503), None, None]);
    }

    #[test]
    fn always_is_until_the_rule_is_lifted_or_replaced() {
        let rules = behaviours(json!([
            {"path": "/rmas", "steps": [{"do": "answer", "status": 500, "times": "always"}]},
            {"path": "/b/rmas", "steps": [{"do": "answer", "status": 400, "times": "always"}]},
        ]));
        check(&rules, "/rmas", &[Some(500); 9]);
        rules.lift(Some("/rmas"));
        check(&rules, "/rmas", &[None]);
        check(&rules, "/b/rmas", &[Some(400)]);
        rules.lift(None);
        check(&rules, "/b/rmas", &[None]);
    }

    #[test]
    fn the_closest_rule_wins() {
        let always = |status| json!([{"do": "answer", "status": status, "times": "always"}]);
        let behaviours = behaviours(json!([
            {"path": "/blue/rmas", "steps": always(501)},
            {"path": "/*", "steps": always(502)},
            {"path": "/blue/*", "steps": always(503)},
        ]));
        check(&behaviours, "/blue/rmas", &[Some(501)]);
        check(&behaviours, "/blue/outbound_asn", &[Some(503)]);
        check(&behaviours, "/red/rmas", &[Some(502)]);
    }

    #[test]
    fn a_rule_that_cannot_be_obeyed_is_refused() {
        for rule in [
            json!({"path": "rmas", "steps": [{"do": "hang"}]}),
            json!({"path": "/rmas", "steps": []}),
            json!({"path": "/rmas", "steps": [{"do": "answer", "status": 99}]}),
            json!({"path": "/rma", "steps": [{"do": "hang"}]}),
            json!({"path": "/rmas", "steps": [{"do": "hang", "status": 500}]}),
            json!({"path": "/rmas", "steps": [{"do": "huge", "status": 500}]}),
            json!({"path": "/rmas", "steps": [{"do": "drip", "body": "x"}]}),
            json!({"path": "/rmas", "steps": [{"do": "answer", "location": "/x"}]}),
            json!({"path": "/rmas", "steps": [{"do": "answer", "bytes": 7}]}),
            json!({"path": "/rmas", "steps": [{"do": "redirect", "retry_after": "7"}]}),
            json!({"path": "/rmas", "steps": [{"do": "huge", "every_ms": 7}]}),
            json!({"path": "/rmas", "steps": [{"do": "answer", "status": 204, "body": "x"}]}),
        ] {
            assert!(
                serde_json::from_value::<Rule>(rule.clone()).unwrap().check().is_err(),
                "{rule}"
            );
        }
        for rule in [
            json!({"path": "/rmas", "steps": [{"do": "explode"}]}),
            json!({"path": "/rmas", "steps": [{"do": "hang", "tmies": 3}]}),
            json!({"path": "/rmas", "steps": [{"do": "hang", "times": "often"}]}),
            json!({"path": "/rmas"}),
        ] {
            assert!(serde_json::from_value::<Rule>(rule.clone()).is_err(), "{rule}");
        }
    }
}
