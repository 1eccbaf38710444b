//! What an audit finds: which invariant does not hold, where, and what is wrong there.

use std::fmt;

macro_rules! invariants {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What an audit looks at: I1 to I13 are the invariants of the domain; the others are said of a whole history.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Invariant {
            $($(#[$doc])* $name,)*
        }

        impl Invariant {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name in reports.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }
        }
    };
}

invariants! {
    /// An acknowledged mutation is never lost.
    I1,
    /// No mutation is applied twice, and none that nobody asked for.
    I2,
    /// At most one open workflow holds an asset.
    I3,
    /// `seq` is gapless and the hash chain verifies.
    I4,
    /// All parts of a commit are there together or not at all.
    I5,
    /// COMPLETED never changes.
    I6,
    /// A replay returns the first result's bytes with `duplicate: true`; another payload is refused.
    I7,
    /// There are four states, and only lawful moves between them.
    I8,
    /// A stale fence never writes.
    I9,
    /// A message is sent only of what is committed, each time the same, and in order.
    I10,
    /// Nothing of one tenant is visible to another.
    I11,
    /// A workflow runs by the definition that it started with.
    I12,
    /// The fold of the events is the stored state.
    I13,
    /// A refused call leaves no trace.
    Refused,
    /// A refusal has a code of the closed list and says truly whether to call again.
    Codes,
    /// What a caller sees of a workflow never goes back.
    Monotonic,
    /// There is one order of all calls that explains every answer and agrees with real time.
    Linearizable,
    /// The records can be read.
    Readable,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Which invariant does not hold.
    pub invariant: Invariant,
    /// Where: a workflow, an asset, a key, a call.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

impl Violation {
    /// A violation.
    pub fn new(invariant: Invariant, place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { invariant, place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.invariant, self.place, self.message)
    }
}
