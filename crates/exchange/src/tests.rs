mod claiming;
mod contract;
mod placing;
mod reading;
mod stage;
mod stock;
mod variants;
