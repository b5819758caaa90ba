mod claiming;
mod contract;
mod limits;
mod placing;
mod reading;
mod stage;
mod stock;
mod turns;
mod variants;

pub(crate) use stage::confirmed;
