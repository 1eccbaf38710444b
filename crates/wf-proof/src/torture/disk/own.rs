//! Cases with a shape of their own: [`others`] (other users of the file), [`process`] (the process is stopped, or out of
//! descriptors), [`calls`] (callers that go away, repeat at once, are too many), [`damage`] (the file itself is damaged).

pub(super) mod calls;
pub(super) mod damage;
pub(super) mod flood;
pub(super) mod others;
pub(super) mod process;
