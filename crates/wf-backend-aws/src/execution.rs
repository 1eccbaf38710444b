//! Executions of Step Functions that give open workflows a life in time, and the reconciler that keeps them so.
//!
//! `definition` is what an execution does, `states` the client that starts, asks, stops and answers executions. The rules
//! are [`wf_core::reconcile`]'s; docs/reconciler.md.

pub(crate) mod definition;
