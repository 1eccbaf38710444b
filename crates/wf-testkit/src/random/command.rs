//! The commands and how they are drawn. Numbers are choices: each is taken modulo what there is to choose from.

use proptest::prelude::*;

/// The fence of an acquisition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fence {
    /// The one that follows.
    Right,
    /// Another one.
    Wrong,
}

/// The idempotency key of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// One that was never used.
    Fresh,
    /// One of an earlier commit.
    Used(u8),
    /// One of an earlier commit, naming its row as the one to replace.
    Replacing(u8),
    /// One of an earlier commit, naming a row that is almost that one.
    ReplacingOther(u8),
}

/// Which state of its workflow a commit was decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The current one.
    Current,
    /// An earlier one, if there is one.
    Earlier(u8),
}

/// What a commit changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A value for a step.
    Record(u8),
    /// A note only.
    Note,
    /// A block.
    Block,
    /// The oldest block, if any.
    Resolve,
    /// An offer to an actor, or to anybody.
    Offer(Option<u8>),
    /// No offer any more.
    Withdraw,
    /// Another owner.
    Transfer(u8),
    /// The end.
    Complete,
}

/// What a commit does to locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locks {
    /// Nothing.
    Leave,
    /// Asserts the workflow's assets.
    AssertOwn,
    /// Frees the workflow's assets.
    ReleaseOwn,
    /// Acquires an asset.
    Acquire(u8, Fence),
    /// Takes the workflow's assets anew.
    TakeOwn,
    /// Takes any asset.
    Take(u8, Fence),
    /// Asserts any asset with the fence it has now.
    Assert(u8),
    /// Releases any asset with the fence it has now.
    Release(u8),
}

/// What else is in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extras {
    /// Messages, to as many recipients, at most two.
    pub messages: u8,
    /// Deadlines, at most two.
    pub deadlines: u8,
    /// A deadline of the workflow is cleared.
    pub clear: bool,
    /// The ledger row expires soon.
    pub expires: bool,
}

/// What becomes of a claimed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Not named.
    Unnamed,
    /// Delivered.
    Delivered,
    /// To be tried again.
    Retry,
    /// Given up.
    Dead,
}

/// One call of the port, or a few reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A workflow starts, perhaps again.
    Start {
        /// Where.
        tenant: u8,
        /// Who.
        actor: u8,
        /// Which workflow.
        workflow: u8,
        /// With which assets.
        assets: Vec<(u8, Fence)>,
        /// Under which key.
        key: Key,
        /// With what else.
        extras: Extras,
    },
    /// A workflow that exists changes.
    Next {
        /// Which, of those that exist.
        workflow: u8,
        /// Who does it: the owner, or somebody.
        by: Option<u8>,
        /// What changes.
        change: Change,
        /// Decided on which state.
        base: Base,
        /// Under which key.
        key: Key,
        /// What happens to locks.
        locks: Locks,
        /// With what else.
        extras: Extras,
    },
    /// A commit is sent again.
    Again(u8),
    /// A definition is stored.
    PutDefinition {
        /// Of which procedure.
        id: u8,
        /// In which version.
        version: u8,
        /// Saying what.
        says: u8,
    },
    /// Streams are claimed, perhaps by a clock that is far ahead.
    ClaimOutbox {
        /// The clock is far ahead.
        ahead: bool,
    },
    /// A claim is settled, perhaps late or twice.
    SettleOutbox {
        /// Which.
        claim: u8,
        /// What became of its rows.
        outcomes: Vec<Outcome>,
    },
    /// A message is made pending again, if it is dead.
    Revive(u8),
    /// Deadlines are claimed, perhaps by a clock that is far ahead.
    ClaimDeadlines {
        /// The clock is far ahead.
        ahead: bool,
        /// At most this many, at least one.
        limit: u8,
    },
    /// A claimed deadline is settled, perhaps late.
    SettleDeadline(u8),
    /// Sweeps until there is nothing left to sweep.
    Sweep {
        /// With a retention that keeps everything, rather than nothing.
        keep: bool,
    },
    /// Time passes, in seconds.
    Pass(u8),
    /// Every read is done for one tenant.
    Look {
        /// Which.
        tenant: u8,
        /// Rows of a page.
        limit: u8,
    },
}

/// Lists of up to `length` commands.
pub fn commands(length: usize) -> impl Strategy<Value = Vec<Command>> {
    proptest::collection::vec(command(), 1..=length.max(1))
}

fn command() -> impl Strategy<Value = Command> {
    let claim = rarely().prop_map(|ahead| Command::ClaimOutbox { ahead });
    let settle = (any::<u8>(), proptest::collection::vec(outcome(), 0..5))
        .prop_map(|(claim, outcomes)| Command::SettleOutbox { claim, outcomes });
    let due =
        (rarely(), 1..4_u8).prop_map(|(ahead, limit)| Command::ClaimDeadlines { ahead, limit });
    let define = (0..2_u8, 0..2_u8, 0..3_u8)
        .prop_map(|(id, version, says)| Command::PutDefinition { id, version, says });
    let look = (any::<u8>(), 1..5_u8).prop_map(|(tenant, limit)| Command::Look { tenant, limit });
    prop_oneof![
        6 => start(),
        12 => next(),
        2 => any::<u8>().prop_map(Command::Again),
        1 => define,
        4 => claim,
        5 => settle,
        1 => any::<u8>().prop_map(Command::Revive),
        3 => due,
        2 => any::<u8>().prop_map(Command::SettleDeadline),
        1 => any::<bool>().prop_map(|keep| Command::Sweep { keep }),
        1 => (1..30_u8).prop_map(Command::Pass),
        2 => look,
    ]
}

fn rarely() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.15)
}

fn start() -> impl Strategy<Value = Command> {
    let assets = proptest::collection::vec((any::<u8>(), fence()), 0..3);
    (any::<u8>(), any::<u8>(), any::<u8>(), assets, key(), extras()).prop_map(
        |(tenant, actor, workflow, assets, key, extras)| Command::Start {
            tenant,
            actor,
            workflow,
            assets,
            key,
            extras,
        },
    )
}

fn next() -> impl Strategy<Value = Command> {
    let by = prop_oneof![4 => Just(None), 1 => any::<u8>().prop_map(Some)];
    let base = prop_oneof![6 => Just(Base::Current), 1 => any::<u8>().prop_map(Base::Earlier)];
    (any::<u8>(), by, change(), base, key(), locks(), extras()).prop_map(
        |(workflow, by, change, base, key, locks, extras)| Command::Next {
            workflow,
            by,
            change,
            base,
            key,
            locks,
            extras,
        },
    )
}

fn fence() -> impl Strategy<Value = Fence> {
    prop_oneof![8 => Just(Fence::Right), 1 => Just(Fence::Wrong)]
}

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        8 => Just(Key::Fresh),
        1 => any::<u8>().prop_map(Key::Used),
        1 => any::<u8>().prop_map(Key::Replacing),
        1 => any::<u8>().prop_map(Key::ReplacingOther),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => any::<u8>().prop_map(Change::Record),
        1 => Just(Change::Note),
        2 => Just(Change::Block),
        1 => Just(Change::Resolve),
        5 => prop::option::of(any::<u8>()).prop_map(Change::Offer),
        1 => Just(Change::Withdraw),
        1 => any::<u8>().prop_map(Change::Transfer),
        2 => Just(Change::Complete),
    ]
}

fn locks() -> impl Strategy<Value = Locks> {
    prop_oneof![
        3 => Just(Locks::Leave),
        3 => Just(Locks::AssertOwn),
        2 => Just(Locks::ReleaseOwn),
        1 => (any::<u8>(), fence()).prop_map(|(asset, fence)| Locks::Acquire(asset, fence)),
        2 => Just(Locks::TakeOwn),
        1 => (any::<u8>(), fence()).prop_map(|(asset, fence)| Locks::Take(asset, fence)),
        1 => any::<u8>().prop_map(Locks::Assert),
        1 => any::<u8>().prop_map(Locks::Release),
    ]
}

fn extras() -> impl Strategy<Value = Extras> {
    (0..3_u8, 0..3_u8, rarely(), rarely()).prop_map(|(messages, deadlines, clear, expires)| {
        Extras { messages, deadlines, clear, expires }
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        2 => Just(Outcome::Unnamed),
        2 => Just(Outcome::Delivered),
        2 => Just(Outcome::Retry),
        1 => Just(Outcome::Dead),
    ]
}
