//! What the fuzz targets share: a whole server to send inputs to ([`Room`]), a second reader and writer of JSON to compare
//! with (`json`), and the faults that show that a target finds any (`planted`).

pub mod json;
mod planted;
mod room;

pub use planted::planted;
pub use room::{Answer, MODERN, PROCEDURES, Room};
