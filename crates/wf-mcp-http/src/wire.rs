//! Bytes to typed calls, and replies to results of tools. Pure; `front` and `handler` await around it.

pub(crate) mod arguments;
pub(crate) mod envelope;
pub(crate) mod headers;
pub(crate) mod meta;
pub(crate) mod params;
pub(crate) mod reader;
pub(crate) mod result;
