//! How things stand: what there is to say of work that nothing was done to.

use crate::models::{Phase, Text, Timestamp};

/// Who said that they know of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acknowledger {
    /// One who was told, by the name that the configuration routes.
    Told(String),
    /// A person with a name.
    Named(String),
    /// An operator.
    Operator,
}

/// A step that was recorded last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastStep {
    /// How it is called.
    pub say: Text,
    /// The value in words; absent when withheld.
    pub value: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// How things stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stand {
    /// Where a workflow stands.
    Stands {
        /// What.
        label: Text,
        /// Where.
        phase: Phase,
        /// How it ended, when completed.
        result: Option<Text>,
    },
    /// Where somebody was: what was recorded last.
    Resumed {
        /// What; absent where the next sentence says it.
        label: Option<Text>,
        /// What was recorded last; absent before anything was.
        last: Option<LastStep>,
    },
    /// Work is stopped, and somebody was told.
    Stopped {
        /// What.
        label: Text,
        /// Who was told last, by the name that the configuration routes.
        told: String,
        /// When.
        at: Timestamp,
        /// Until when they have to respond, while nobody has.
        until: Option<Timestamp>,
        /// Until when they had to respond, when nobody did and nobody else is told.
        unanswered: Option<Timestamp>,
        /// Who said that they know, and when.
        acknowledged: Option<(Acknowledger, Timestamp)>,
    },
    /// Nothing is open.
    NothingOpen,
    /// Nothing matches.
    NothingFound,
    /// What was finished last.
    LastFinished {
        /// What.
        label: Text,
        /// How it ended; absent when abandoned.
        result: Option<String>,
        /// When.
        at: Timestamp,
    },
    /// What there is, open.
    OpenWork {
        /// Some of them.
        labels: Vec<Text>,
        /// How many there are.
        total: usize,
    },
    /// What is offered to the caller.
    OnOffer {
        /// Some of them.
        labels: Vec<Text>,
        /// How many there are.
        total: usize,
    },
    /// What may be started.
    MayStart {
        /// Some of them.
        titles: Vec<Text>,
        /// How many there are.
        total: usize,
    },
    /// The asset is free.
    AssetFree,
    /// The asset is not free, and the caller may know no more.
    AssetInUse,
}
