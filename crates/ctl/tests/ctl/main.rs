//! The `backhaul` program against running services.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot be set up should panic"
)]

mod app;
mod appearance;
mod backlog;
mod commands;
mod deliveries;
mod delivering_service;
mod events;
mod exchange;
mod listen;
mod mails;
mod merchant_file;
mod merchants_engineer;
mod operator;
mod orders;
mod people;
mod policy;
mod portal;
mod shoppers;
mod warehouse;
