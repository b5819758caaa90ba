//! SSRF protection when connecting: merchants' URLs may lead only to public addresses and allowed
//! networks. The rule is [`Guard`], which auth uses too.
//!
//! [`GuardedResolver`] checks the addresses of host names when the HTTP client connects, so a name
//! that resolves differently each time (DNS rebinding) is checked each time. Hosts written as an IP
//! address never reach a resolver; [`Guard::check_url`] checks those.

mod resolver;
#[cfg(test)]
mod tests;

pub use domain::merchant::guard::{Guard, GuardError, Reason};
pub use resolver::{GuardedResolver, SystemResolver};
