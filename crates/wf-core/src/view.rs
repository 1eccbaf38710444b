//! The result object (mcp.md, One result shape) and the words. Transports only wrap what is built here.
//!
//! [`saying`] is what there is to say, [`words`] the catalogue that says it, [`outlook`] what a policy says of a workflow,
//! [`shape`] the parts of the object, [`next`] what is asked next.

pub mod next;
pub mod outlook;
pub mod saying;
pub mod shape;
pub mod stand;
pub mod words;

pub use outlook::Outlook;
pub use saying::{Ask, Done, Fault, Offeree, Rule, Saying};
pub use shape::Frame;
pub use stand::{Acknowledger, LastStep, Stand};
pub use words::Words;
