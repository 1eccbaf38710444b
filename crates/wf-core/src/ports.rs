//! What the engine needs from the world. All ports are object-safe and have no default methods.

pub mod ambient;
pub mod notification;
pub mod orchestrator;
pub mod records;
pub mod storage;

pub use ambient::{ClockPort, IdPort};
pub use notification::{DeliveryError, Message, NotificationPort};
pub use orchestrator::OrchestratorPort;
pub use records::{
    Claim, ClaimedDeadline, ClaimedStream, Commit, CommitError, Conflict, Cursor, Deadline,
    DeadlineChange, DefinitionError, LeaseToken, LedgerKey, LedgerRow, ListQuery, LoadQuery,
    OpenError, OutboxQuery, OutboxRow, OutboxState, OutboxStatus, Page, ReadError, Recent,
    SettleError, Settled, Settlement, Snapshot, StoreIdentity, Swept,
};
pub use storage::StorageBackendPort;

/// A boxed cause of an error.
pub type Source = Box<dyn std::error::Error + Send + Sync>;
