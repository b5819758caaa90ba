mod app;
mod check;
mod claiming;
mod contract;
mod erasing;
mod limits;
mod placing;
mod reading;
mod search_plans;
mod settling;
mod shoppers;
mod stale_plans;
mod turns;
mod undeliverable;
mod variants;

pub(crate) use app::confirmed;
