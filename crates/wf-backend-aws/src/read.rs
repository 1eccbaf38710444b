//! The reads of the port: what a decision needs (`load`), histories (`events`), lists (`lists`).

pub(crate) mod events;
pub(crate) mod lists;
pub(crate) mod load;
