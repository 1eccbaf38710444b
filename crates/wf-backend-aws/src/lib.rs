//! The place of the backend on DynamoDB and Step Functions.
//!
//! Empty: its arrows stand (it may import `wf-core`, only `wf-cli` may import it), its code does not yet. The local
//! backend is `wf-backend-local`; both obey the laws of [`wf_core::ports::StorageBackendPort`].
