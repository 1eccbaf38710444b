//! The four states and the ways between them. Pure: no clock, no randomness, no `async`.
//!
//! ```text
//!            start                first progress             finish
//!   (none) ────────▶ CREATED ───────────────────▶ RUNNING ───────────▶ COMPLETED
//!                       │                          │   ▲                  ▲
//!                       │            out of range, │   │ resolve          │ abandon (from any open state), abort
//!                       │          report_problem  ▼   │                  │
//!                       └─────────────────────────▶ BLOCKED ──────────────┘
//! ```
//!
//! Reading order: [`command`] (what callers ask), [`event`] (what happened), [`beside`] (values that can be erased), [`decision`] (what a command leads to),
//! [`decide`](decide::decide) with one file per command, [`evolve`](evolve::evolve), [`chain`] (events linked by hash),
//! [`notices`] (messages of a commit), [`deadlines`] (what is due later), [`room`](room::room) (bounds of a state), [`token`] (confirm tokens),
//! [`ack_token`] (links in escalations), [`request_state`] (questions asked back), [`signature`](signature::signature) (what is signed), `walk` (a history looked
//! through).

pub mod ack_token;
pub mod beside;
pub mod chain;
pub mod command;
pub mod deadlines;
pub mod decide;
pub mod decision;
pub mod event;
pub mod evolve;
pub mod notices;
pub mod request_state;
pub mod room;
pub mod signature;
pub mod token;
pub(crate) mod walk;

pub use beside::{Erased, SensitiveValue};
pub use command::{Command, CommandKind, Facts, LockFact, Secret, Transfer};
pub use decide::decide;
pub use decision::{Confirmation, Decision, Draft, Outcome, Rejection, Unrecorded, Verdict};
pub use event::{EVENT_VERSION, Event, EventBody, Recording, Signature};
pub use evolve::evolve;
pub use room::room;
