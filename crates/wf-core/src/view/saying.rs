//! What there is to say, apart from the language it is said in.

use crate::models::{Phase, Text, Timestamp};

use super::stand::Stand;

/// Something to say. The catalogue of the answer's language has the words (`view/words.rs`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saying {
    /// Words of the policy, as they are.
    Policy(Text),
    /// What is wrong with a call, or with us.
    Fault(Fault),
    /// Which rule says no.
    Rule(Rule),
    /// What is asked of the person.
    Ask(Ask),
    /// What was done, or would be.
    Done(Done),
    /// How things stand.
    Stand(Stand),
}

macro_rules! said {
    ($($kind:ident),+) => {$(
        impl From<$kind> for Saying {
            fn from(saying: $kind) -> Self {
                Self::$kind(saying)
            }
        }
    )+};
}

said!(Fault, Rule, Ask, Done, Stand);

/// What is wrong with a call, or with us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An argument is wrong: which, by the name it has in the tool.
    InvalidArgument {
        /// The argument.
        field: String,
    },
    /// There is no such workflow for this caller.
    WorkflowNotFound,
    /// There is no such procedure.
    ProcedureNotFound {
        /// What may be started.
        available: Vec<Text>,
    },
    /// The definition that the workflow pinned is not known here.
    DefinitionUnknown,
    /// The reason is none of the list.
    UnknownReason {
        /// Some reasons.
        reasons: Vec<Text>,
    },
    /// The block is not open.
    UnknownBlock,
    /// Nobody is known by this name.
    UnknownPerson,
    /// A bound was exceeded.
    LimitExceeded,
    /// A start without assets needs a key.
    KeyNeeded,
    /// The key was used for something else.
    KeyConflict,
    /// The workflow changed in between.
    VersionConflict,
    /// A deadline has not passed: whoever says so has another clock.
    NotDue {
        /// When it passes.
        at: Timestamp,
    },
    /// Another deadline of the work was due before and has not passed.
    NotNext {
        /// When that one was due.
        at: Timestamp,
    },
    /// The outcome is unknown, or nothing was done.
    Unavailable,
    /// A bug.
    Internal,
}

/// Which rule says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// The caller may not do this.
    NotAllowed,
    /// Only a supervisor may do this.
    SupervisorNeeded,
    /// Somebody else drives the workflow.
    NotOwner {
        /// Their name, when one is known. An id is never spoken.
        owner: Option<String>,
    },
    /// The step is for somebody with this role.
    RoleNeeded {
        /// The role, as the procedure and the token name it.
        role: String,
    },
    /// The step must be done.
    CannotSkip,
    /// Somebody else holds the asset.
    AssetInUse {
        /// The asset.
        asset: Text,
        /// Their name, if the caller may know.
        holder: Option<String>,
        /// Since when.
        since: Option<Timestamp>,
    },
    /// The caller's own other workflow holds the asset.
    AssetInOwnUse {
        /// The asset.
        asset: Text,
        /// The other workflow.
        label: Text,
    },
    /// The workflow no longer holds its asset.
    LockLost {
        /// The asset.
        asset: Text,
        /// Another workflow has it.
        taken: bool,
        /// The name of who has it, if the caller may know.
        holder: Option<String>,
    },
    /// Whoever worked on this may not do the step.
    SecondPersonNeeded,
    /// A wait is not over.
    TooEarly {
        /// When it is.
        until: Timestamp,
    },
    /// There is no offer.
    NoOffer,
    /// The offer is for somebody else.
    OfferedToOther {
        /// Their name, when one is known.
        to: Option<String>,
    },
    /// The offer is for anybody, so nobody declines it.
    OfferedToAll,
    /// The caller drives the workflow already.
    YoursAlready,
    /// Whom it is offered to drives the workflow already.
    TheirsAlready {
        /// Their name, when one is known.
        name: Option<String>,
    },
    /// The holder was active too lately to be relieved.
    NotSilent {
        /// Their name, when one is known.
        owner: Option<String>,
        /// When they may be relieved, if they stay silent.
        from: Timestamp,
    },
    /// The command does not apply now.
    WrongState {
        /// Where the workflow stands.
        phase: Phase,
    },
    /// Another step is asked now.
    StepNotOpen {
        /// Its prompt.
        prompt: Option<Text>,
    },
    /// The step has a value already.
    StepAlreadyRecorded {
        /// The value in words; absent when withheld.
        value: Option<String>,
    },
    /// There is nothing recorded to correct.
    NothingToCorrect,
    /// A reason must be given.
    ReasonRequired {
        /// Some reasons.
        reasons: Vec<Text>,
    },
    /// The decision is none of the block's.
    DecisionNotAllowed {
        /// The decisions.
        decisions: Vec<Text>,
    },
    /// The result is none that is possible now.
    ResultNotAvailable {
        /// The results that are.
        results: Vec<Text>,
    },
    /// Something is still to be done.
    StepsUnsettled {
        /// The prompt of the next step.
        prompt: Option<Text>,
    },
}

/// What is asked of the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Name an asset.
    Asset {
        /// The part it plays.
        role: Text,
        /// An id that would be accepted.
        example: Option<String>,
    },
    /// Give an input.
    Input {
        /// How it is called.
        input: Text,
    },
    /// Abandon this, really?
    ConfirmAbandon {
        /// What.
        label: Text,
    },
    /// Nothing was recorded because the caller said no.
    Declined,
    /// Nothing was recorded because a read-back was not confirmed.
    NotConfirmed,
    /// Nothing was done because none of several was chosen.
    NotChosen,
    /// What is asked next.
    Next {
        /// The prompt.
        prompt: Text,
    },
    /// The value before, for a step that is asked again.
    Recheck {
        /// The prompt.
        prompt: Text,
        /// The value in words.
        value: Option<String>,
    },
    /// Nothing is left to do but to finish.
    ReadyToFinish {
        /// Results that are possible.
        results: Vec<Text>,
    },
    /// The value before, for a step that is asked again, in one sentence.
    CheckAgain {
        /// The prompt.
        prompt: Text,
        /// The value in words.
        value: Option<String>,
    },
    /// Nothing is left to do but to finish, in one sentence.
    Finish {
        /// Results that are possible, at least one.
        results: Vec<Text>,
    },
    /// A decision is needed of whoever is asked.
    Choose {
        /// What is asked.
        question: Text,
        /// Some decisions.
        decisions: Vec<Text>,
    },
    /// A decision is needed.
    Decide {
        /// What is asked.
        question: Text,
        /// Some decisions.
        decisions: Vec<Text>,
    },
    /// Several people are called so.
    WhichPerson {
        /// Their names.
        names: Vec<String>,
    },
    /// Several match.
    Which {
        /// Some of them.
        labels: Vec<Text>,
        /// How many there are.
        total: usize,
    },
}

/// What was done, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// Started.
    Started {
        /// What.
        label: Text,
    },
    /// It is already open and the caller's own.
    Joined {
        /// What.
        label: Text,
    },
    /// A value was recorded; in words, absent when withheld.
    Recorded {
        /// The value.
        value: Option<String>,
    },
    /// A value was recorded that is outside what is accepted.
    RecordedOutside {
        /// The value.
        value: Option<String>,
    },
    /// A value was corrected.
    Corrected {
        /// The value.
        value: Option<String>,
    },
    /// A step was skipped.
    Skipped,
    /// A problem was noted.
    Noted,
    /// Work stopped.
    Blocked {
        /// Who is told.
        told: Option<String>,
    },
    /// A block is over.
    Resolved,
    /// Work is over.
    Finished {
        /// What.
        label: Text,
        /// How it ended; absent when abandoned.
        result: Option<Text>,
    },
    /// Values were recorded for steps that are no longer to be done.
    NotNeeded {
        /// How the steps are called.
        steps: Vec<Text>,
    },
    /// Work is offered.
    Offered {
        /// What.
        label: Text,
        /// To whom.
        to: Offeree,
    },
    /// An offer was taken back.
    Withdrawn {
        /// What.
        label: Text,
    },
    /// An offer was declined.
    OfferDeclined {
        /// What.
        label: Text,
        /// Who keeps it, when a name is known.
        owner: Option<String>,
    },
    /// Work is the caller's now.
    TakenOver {
        /// What.
        label: Text,
    },
    /// An operator freed an asset.
    Released,
    /// A value would be recorded.
    WouldRecord {
        /// The value in words.
        value: Option<String>,
    },
    /// A value would be recorded as out of range.
    WouldBeOutside {
        /// The value in words.
        value: Option<String>,
        /// It would stop the work.
        blocks: bool,
    },
}

/// To whom work is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offeree {
    /// To anybody.
    Anybody,
    /// To somebody; their name, when one is known. An id is never spoken.
    One(Option<String>),
}
