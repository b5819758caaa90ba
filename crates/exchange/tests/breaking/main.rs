//! Tests with processes that are killed or have little memory. They are one program, because linking takes seconds.

mod crashes;
mod memory;
