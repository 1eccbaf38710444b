//! What the engine needs from the world. All ports are object-safe and have no default methods.

pub mod ambient;
pub mod copy;
pub mod executions;
pub mod leases;
pub mod life;
pub mod notification;
pub mod orchestrator;
pub mod records;
pub mod storage;

pub use ambient::{ClockPort, IdPort};
pub use copy::{CopyError, CopySourcePort, CopyTargetPort};
pub use executions::{
    Answered, Attention, BindingPort, BoundRows, Epoch, Execution, ExecutionPort, Told,
    UnclearCall, Written,
};
pub use leases::{
    Backlog, Claim, ClaimedDeadline, ClaimedStream, DamagedMessage, Deadline, DeadlineChange,
    Finished, LeaseToken, NextDeadline, OutboxPage, OutboxPurge, OutboxQuery, OutboxRow,
    OutboxState, OutboxStatus, Settled, Settlement, latest_live_expiry,
};
pub use life::{Erasure, Purge, Purged, Tombstone};
pub use notification::{DeliveryError, Message, NotificationPort};
pub use orchestrator::OrchestratorPort;
pub use records::{
    Commit, CommitError, Conflict, Cursor, DefinitionError, LedgerKey, LedgerRow, ListQuery,
    LoadQuery, OpenError, Page, ReadError, Recent, SettleError, Snapshot, StoreIdentity, Swept,
};
pub use storage::StorageBackendPort;

/// A boxed cause of an error.
pub type Source = Box<dyn std::error::Error + Send + Sync>;
