//! Every query of this service. Rows are private; domain types go in and come out.

pub(crate) mod audit;
pub(crate) mod clients;
pub(crate) mod invitations;
pub(crate) mod merchants;
pub(crate) mod people;
pub(crate) mod policy_versions;
pub(crate) mod recovery_codes;
pub(crate) mod revocations;
pub(crate) mod sessions;
pub(crate) mod signing_keys;
#[cfg(test)]
mod tests;
