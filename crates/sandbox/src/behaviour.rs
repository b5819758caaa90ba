//! Behaviour rules: each request to a path takes the next step of its rule, until all are taken.
//!
//! A rule for the exact path has priority over a rule that ends in `*`; of those the longest applies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::interface::Interface;

/// Steps that a path takes instead of its default response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A path such as `/rmas`, or a prefix such as `/blue/*`.
    pub path: String,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(rename = "do")]
    pub action: Action,
    /// Number of requests that take this step.
    #[serde(default)]
    pub times: Times,
    /// Delay before the action.
    #[serde(default)]
    pub delay_ms: u64,
    /// For `respond` and `redirect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// For `respond`: the response body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// For `respond`: seconds or an HTTP date.
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
pub enum Action {
    /// Responds with `status`, `body` and `retry_after`.
    Respond,
    /// Accepts the request and sends no response.
    Hang,
    /// Responds with 200 and a slow body of `bytes`, one byte each `every_ms`.
    Drip,
    /// Resets the connection without a response.
    Reset,
    /// Responds with 200 and a body of `bytes`.
    Huge,
    /// Responds with `status` and `location`.
    Redirect,
    /// Responds with 401 unless the token was issued after the rule was set.
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

/// The step for a request.
#[derive(Clone, Debug)]
pub struct DueStep {
    pub step: Step,
    /// Number of tokens issued before the rule was set.
    pub tokens_before: u64,
}

#[derive(Debug, Default)]
pub struct Behaviours {
    has_rules: AtomicBool,
    rules: Mutex<Vec<ActiveRule>>,
}

#[derive(Debug)]
struct ActiveRule {
    rule: Rule,
    tokens_before: u64,
    /// Index of the current step.
    step: usize,
    /// Number of requests that took the current step.
    taken: u32,
}

impl Behaviours {
    /// Adds a rule, or replaces the rule for the same path.
    pub fn set(&self, rule: Rule, tokens_before: u64) {
        let mut rules = self.lock();
        rules.retain(|active| active.rule.path != rule.path);
        rules.push(ActiveRule { rule, tokens_before, step: 0, taken: 0 });
        self.has_rules.store(true, Ordering::Release);
    }

    /// Removes the rule for a path, or all rules.
    pub fn remove(&self, path: Option<&str>) {
        let mut rules = self.lock();
        rules.retain(|active| path.is_some_and(|path| active.rule.path != path));
        self.has_rules.store(!rules.is_empty(), Ordering::Release);
    }

    pub fn list(&self) -> Vec<Rule> {
        self.lock().iter().map(|active| active.rule.clone()).collect()
    }

    /// The step for a request to this path.
    pub fn next(&self, path: &str) -> Option<DueStep> {
        if !self.has_rules.load(Ordering::Acquire) {
            return None;
        }
        let mut rules = self.lock();
        let active = rules
            .iter_mut()
            .filter(|active| active.rule.matches(path))
            .max_by_key(|active| (active.rule.path == path, active.rule.path.len()))?;
        active.next()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ActiveRule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveRule {
    fn next(&mut self) -> Option<DueStep> {
        loop {
            let step = self.rule.steps.get(self.step)?;
            if let Times::Count(times) = step.times {
                if self.taken >= times {
                    self.step += 1;
                    self.taken = 0;
                    continue;
                }
                self.taken += 1;
            }
            return Some(DueStep { step: step.clone(), tokens_before: self.tokens_before });
        }
    }
}

impl Step {
    fn check(&self) -> Result<(), String> {
        let allowed: &[&str] = match self.action {
            Action::Respond => &["status", "body", "retry_after"],
            Action::Redirect => &["status", "location"],
            Action::Huge => &["bytes"],
            Action::Drip => &["bytes", "every_ms"],
            Action::Hang | Action::Reset | Action::ExpireToken => &[],
        };
        let given = [
            ("status", self.status.is_some()),
            ("body", self.body.is_some()),
            ("retry_after", self.retry_after.is_some()),
            ("location", self.location.is_some()),
            ("bytes", self.bytes.is_some()),
            ("every_ms", self.every_ms.is_some()),
        ];
        if let Some((name, _)) =
            given.iter().find(|(name, is_given)| *is_given && !allowed.contains(name))
        {
            return Err(format!("`{name}` does not apply to this step: see GET /"));
        }
        match self.status {
            Some(status) if !(200..=999).contains(&status) => {
                Err(format!("`status` {status} is not a valid response"))
            }
            Some(status @ (204 | 304)) if self.body.is_some() => {
                Err(format!("`status` {status} cannot have a `body`"))
            }
            _ => Ok(()),
        }
    }
}

impl Rule {
    /// Checks that a rule is valid.
    pub fn check(&self) -> Result<(), String> {
        if !self.path.starts_with('/') {
            return Err("`path` must begin with a slash".to_owned());
        }
        if !self.path.ends_with('*') && Interface::for_path(&self.path).is_none() {
            return Err(format!("there is no endpoint at `path`: {}", Interface::list()));
        }
        if self.steps.is_empty() {
            return Err("`steps` is empty: DELETE /behaviour removes a rule".to_owned());
        }
        self.steps.iter().try_for_each(Step::check)
    }

    fn matches(&self, path: &str) -> bool {
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
    fn check(behaviours: &Behaviours, path: &str, expected: &[Option<u16>]) {
        let statuses: Vec<_> = expected
            .iter()
            .map(|_| behaviours.next(path).map(|due| due.step.status.unwrap()))
            .collect();
        assert_eq!(statuses, expected, "{path}");
    }

    #[test]
    fn steps_are_taken_in_order_and_then_the_rule_has_no_effect() {
        let behaviours = behaviours(json!([{"path": "/rmas", "steps": [
            {"do": "respond", "status": 500, "times": 2},
            {"do": "respond", "status": 503},
        ]}]));
        check(&behaviours, "/other", &[None]);
        check(&behaviours, "/rmas", &[Some(500), Some(500), Some(503), None, None]);
    }

    #[test]
    fn a_step_with_always_lasts_until_the_rule_is_removed() {
        let rules = behaviours(json!([
            {"path": "/rmas", "steps": [{"do": "respond", "status": 500, "times": "always"}]},
            {"path": "/b/rmas", "steps": [{"do": "respond", "status": 400, "times": "always"}]},
        ]));
        check(&rules, "/rmas", &[Some(500); 9]);
        rules.remove(Some("/rmas"));
        check(&rules, "/rmas", &[None]);
        check(&rules, "/b/rmas", &[Some(400)]);
        rules.remove(None);
        check(&rules, "/b/rmas", &[None]);
    }

    #[test]
    fn the_most_specific_rule_applies() {
        let always = |status| json!([{"do": "respond", "status": status, "times": "always"}]);
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
    fn an_invalid_rule_is_rejected() {
        for rule in [
            json!({"path": "rmas", "steps": [{"do": "hang"}]}),
            json!({"path": "/rmas", "steps": []}),
            json!({"path": "/rmas", "steps": [{"do": "respond", "status": 99}]}),
            json!({"path": "/rma", "steps": [{"do": "hang"}]}),
            json!({"path": "/rmas", "steps": [{"do": "hang", "status": 500}]}),
            json!({"path": "/rmas", "steps": [{"do": "huge", "status": 500}]}),
            json!({"path": "/rmas", "steps": [{"do": "drip", "body": "x"}]}),
            json!({"path": "/rmas", "steps": [{"do": "respond", "location": "/x"}]}),
            json!({"path": "/rmas", "steps": [{"do": "respond", "bytes": 7}]}),
            json!({"path": "/rmas", "steps": [{"do": "redirect", "retry_after": "7"}]}),
            json!({"path": "/rmas", "steps": [{"do": "huge", "every_ms": 7}]}),
            json!({"path": "/rmas", "steps": [{"do": "respond", "status": 204, "body": "x"}]}),
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
