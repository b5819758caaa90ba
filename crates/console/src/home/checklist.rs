//! The steps of the onboarding: which are done, and what to do next.

use api::delivery::EndpointView;
use chrono::{DateTime, TimeDelta, Utc};

use super::{
    facts::Facts,
    step::{Step, StepState},
    steps::{endpoint_step, history_step, message_step, order_step, return_step, token_step},
};
use crate::{Page, parts::Loaded};

/// Orders older than this show that the history was imported.
const HISTORY: TimeDelta = TimeDelta::days(30);

pub(super) struct Checklist {
    pub(super) steps: Vec<Step>,
}

impl Checklist {
    pub(super) fn new(
        page: &Page,
        merchant: &str,
        facts: &Facts,
        endpoints: &Loaded<EndpointView>,
    ) -> Self {
        let ago = |at: DateTime<Utc>| page.moment(at).to_string();
        let is_old = |at: DateTime<Utc>| page.age(at) > HISTORY;
        let own = |tab: &str| format!("/merchants/{merchant}/{tab}");
        let steps = vec![
            token_step(facts, own("clients"), ago),
            order_step(facts, ago),
            endpoint_step(facts, own("endpoints")),
            message_step(endpoints, own("endpoints"), ago),
            history_step(facts, is_old, ago),
            return_step(facts),
        ];
        Self::of(steps)
    }

    pub(super) fn of(mut steps: Vec<Step>) -> Self {
        if let Some(first) = steps.iter_mut().find(|step| step.state == StepState::Open) {
            first.state = StepState::Next;
        }
        Self { steps }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.steps.iter().all(Step::is_done)
    }

    pub(super) fn progress(&self) -> String {
        let done = self.steps.iter().filter(|step| step.is_done()).count();
        format!("{done} of {} steps are done", self.steps.len())
    }
}

#[cfg(test)]
mod tests {
    use pages::api::Service;

    use super::*;

    #[test]
    fn the_first_open_step_is_the_next_one() {
        let unknown = StepState::Unknown(Service::RmaEngine);
        let states = [StepState::Done, unknown, StepState::Open, StepState::Open];
        let step = |state| Step { title: "t", state, text: String::new(), link: None };
        let checklist = Checklist::of(states.map(step).into());
        let states: Vec<_> = checklist.steps.iter().map(|step| step.state).collect();
        assert_eq!(states, [StepState::Done, unknown, StepState::Next, StepState::Open]);
        assert_eq!(checklist.progress(), "1 of 4 steps are done");
        assert!(!checklist.is_complete());
    }
}
