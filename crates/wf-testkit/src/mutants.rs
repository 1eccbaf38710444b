//! Stores that are broken on purpose: a clause that stays green on all of them proves nothing.
//!
//! A [`MutantStore`] is the reference model with one [`Mutation`], or with none. [`MUTATIONS`] says which clauses must
//! be red for which mutation; a test of this crate runs them and sees that every clause has a mutation.

mod commit;
mod fixture;
mod life;
mod mutation;
mod outbox;
mod reads;
mod red;
mod store;

pub use fixture::MutantFixture;
pub use mutation::Mutation;
pub use red::MUTATIONS;
pub use store::MutantStore;
