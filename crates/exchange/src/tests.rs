mod app;
mod claiming;
mod contract;
mod limits;
mod placing;
mod reading;
mod stock;
mod turns;
mod variants;

pub(crate) use app::confirmed;
