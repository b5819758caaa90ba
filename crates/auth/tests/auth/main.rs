//! Tests of the whole service over HTTP, with a real database and a real broker.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot continue should panic"
)]

mod access;
mod app;
mod appearance;
mod audit;
mod authenticator;
mod clients;
mod commands;
mod endpoints;
mod guessing;
mod invitations;
mod locks;
mod logs;
mod managers;
mod merchants;
mod oidc;
mod oidc_provider;
mod passwords;
mod people;
mod person;
mod policy_versions;
mod republish;
mod revocations;
mod rights;
mod sessions;
mod sign_in;
mod signing_keys;
mod tokens;
mod versions;
mod warehouses;
