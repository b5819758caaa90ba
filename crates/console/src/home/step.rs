//! A step of the onboarding.

use pages::api::Service;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepState {
    Done,
    /// The first step that is not done.
    Next,
    Open,
    /// The service that knows does not respond.
    Unknown(Service),
}

/// A step of the onboarding.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) title: &'static str,
    pub(super) state: StepState,
    /// The evidence of a step that is done, otherwise the instructions.
    pub(super) text: String,
    /// URL and name of the page on which to do it.
    pub(super) link: Option<(String, &'static str)>,
}

impl Step {
    pub(super) fn tone(&self) -> &'static str {
        match self.state {
            StepState::Done => "good",
            StepState::Next => "warn",
            StepState::Open | StepState::Unknown(_) => "",
        }
    }

    pub(super) fn word(&self) -> &'static str {
        match self.state {
            StepState::Done => "done",
            StepState::Next => "next step",
            StepState::Open => "open",
            StepState::Unknown(_) => "not known",
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.state == StepState::Done
    }
}
