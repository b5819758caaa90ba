//! The browser in which a person signs in.

use std::net::IpAddr;

use domain::json::{Object, text};

/// Longer user agents are truncated.
const MAX_USER_AGENT: usize = 300;

/// The browser in which a session starts.
pub(crate) struct Browser {
    pub(crate) address: IpAddr,
    pub(crate) user_agent: Option<String>,
    /// The session that the browser has until now. It ends when the new one starts.
    pub(crate) previous_session: Option<String>,
}

impl Browser {
    /// The fields that [`Self::read`] reads.
    pub(crate) const FIELDS: [&'static str; 2] = ["user_agent", "previous_session"];

    pub(crate) fn read(body: &Object<'_>, address: IpAddr) -> Option<Self> {
        let user_agent = body.optional("user_agent", text(0..=10_000));
        let previous_session = body.optional("previous_session", text(0..=1000));
        let user_agent = user_agent?.map(|text| text.chars().take(MAX_USER_AGENT).collect());
        Some(Self { address, user_agent, previous_session: previous_session? })
    }
}
