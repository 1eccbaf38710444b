//! The law of `StorageBackendPort` as tests: one `pub async fn` per clause over a [`ContractFixture`].
//!
//! A clause is named after its law: `s02_stale_revision_conflicts` proves a part of S2; `port_…` proves what the
//! method's own documentation says. A clause returns [`Violation`] instead of panicking, so that it can also be run
//! against a store that is broken on purpose (module `mutants`). [`storage_contract!`](crate::storage_contract) binds
//! every clause as a test of a backend.
//!
//! # How the law is read
//!
//! Where the port's text leaves room, the clauses, the reference model and so every backend read it like this:
//!
//! - A commit is looked at in this order: sizes (S12), ledger, locks in the order of the commit, revision. The first
//!   condition that fails is reported. A commit never names an asset twice.
//! - `replaces` names a row that is gone (swept meanwhile): no row exists, so the new one is inserted.
//! - `acquired_at` of a holder is `next.updated_at`, its owner is `next.owner`.
//! - `Acquire` fails also where the workflow itself holds the asset: it is not free.
//! - A new outbox row is pending, with no attempts, due at the time of its message. A retry and giving up count as a
//!   failed attempt, a delivery does not. The time of one that was given up is when that was. A revived row is due at the time it was revived, with no attempts.
//! - Only pending rows have a place in a stream; dead ones are passed over. A settlement changes pending rows only.
//! - A lease is live until its expiry has come. A settlement is judged by its token alone: until somebody else claimed,
//!   a late holder may still settle; after that, or after the lease was settled, it is `LeaseLost`.
//! - "Longest blocked" goes by the oldest open block.
//! - Too large is measured in bytes of JSON: the state over `STATE_BYTES_MAX`, an event or a message over
//!   `EVENT_BYTES_MAX`, a ledger result over `STATE_BYTES_MAX`.

mod cast;
mod fixture;
pub(crate) mod look;
mod macros;
mod violation;

mod port;
mod purge;
mod s01;
mod s02;
mod s03;
mod s04;
mod s05;
mod s06;
mod s07;
mod s08;
mod s09;
mod s10;
mod s11;
mod s12;
mod s13;
mod s14;
mod s15;
mod s16;
mod sweep;

pub use fixture::ContractFixture;
pub use violation::Violation;

pub(crate) use violation::{check, check_eq};

use std::future::Future;
use std::pin::Pin;

/// What a clause answers.
pub type Verdict = Result<(), Violation>;

/// A clause at work.
pub type Running<'a> = Pin<Box<dyn Future<Output = Verdict> + 'a>>;

/// A clause that can be run by its name.
#[derive(Debug, Clone, Copy)]
pub struct Clause {
    /// Its name.
    pub name: &'static str,
    /// Runs it.
    pub run: for<'a> fn(&'a dyn ContractFixture) -> Running<'a>,
}

macro_rules! clauses {
    ($($module:ident: $($name:ident)+;)+) => {
        $(pub use $module::{$($name),+};)+

        /// The name of every clause.
        pub const CLAUSES: &[&str] = &[$($(stringify!($name)),+),+];

        /// Every clause, in the order of [`CLAUSES`].
        pub const ALL: &[Clause] = &[$($(Clause {
            name: stringify!($name),
            run: |fixture| Box::pin($name(fixture)),
        }),+),+];
    };
}

clauses! {
    s01:
        s01_commit_writes_every_part
        s01_next_commit_adds_to_the_first
        s01_refused_commit_writes_no_part;

    s02:
        s02_stale_revision_conflicts
        s02_future_revision_conflicts
        s02_existing_workflow_cannot_start_again
        s02_absent_workflow_has_revision_zero
        s02_one_of_many_writers_wins;

    s03:
        s03_ledger_key_conflicts_with_row
        s03_key_belongs_to_tenant_and_actor
        s03_keys_are_compared_byte_for_byte
        s03_expired_row_is_replaced_only_when_equal
        s03_purged_row_needs_no_replacing
        s03_ledger_is_reported_before_lock_and_revision
        s03_same_key_at_once_commits_once;

    s04:
        s04_held_asset_conflicts_with_row
        s04_own_asset_is_not_free
        s04_assets_all_or_none
        s04_fence_must_follow
        s04_release_keeps_row_and_fence
        s04_release_of_lost_asset_is_ignored
        s04_assert_holds_and_writes_nothing
        s04_assert_fails_when_not_held
        s04_take_moves_what_is_held
        s04_take_brings_back_what_is_free
        s04_take_of_anothers_conflicts
        s04_lock_is_reported_before_revision
        s04_one_of_many_starts_wins;

    s05:
        s05_reader_sees_whole_commits
        s05_lists_and_events_are_whole;

    s06:
        s06_commit_is_read_by_every_handle
        s06_load_of_nothing_is_empty
        s06_load_brings_the_lock_rows
        s06_load_stops_at_its_own_answer_only
        s06_open_of_follows_ownership
        s06_open_count_follows_ownership
        s06_offered_to_follows_offers
        s06_blocked_are_longest_first
        s06_people_have_their_newest_name
        s06_last_completed_is_the_newest;

    s07:
        s07_same_names_do_not_meet
        s07_nothing_is_found_elsewhere
        s07_people_stay_in_their_tenant
        s07_lists_show_their_own
        s07_lease_is_of_one_tenant
        s07_ends_stay_in_their_tenant;

    s08:
        s08_pages_cover_everything_once
        s08_phase_filter_keeps_its_phase
        s08_pages_stable_while_writing
        s08_lock_pages_stable_while_writing
        s08_outbox_pages_stable_while_writing
        s08_what_is_no_place_is_refused;

    s09:
        s09_resend_meets_its_row
        s09_answers_are_true_when_disturbed;

    s10:
        s10_claim_brings_due_streams
        s10_message_of_a_history_ahead_is_due
        s10_rows_come_in_order
        s10_waiting_row_hides_those_behind
        s10_streams_do_not_wait_for_each_other
        s10_claim_keeps_its_limit
        s10_delivered_row_is_not_brought_again
        s10_unnamed_messages_stay
        s10_retry_waits_and_counts
        s10_dead_row_is_passed_over
        s10_dead_row_can_be_revived
        s10_live_lease_hides_its_stream
        s10_stream_reappears_after_lease
        s10_late_settle_is_refused
        s10_settle_gives_the_lease_back
        s10_unclaimed_stream_cannot_be_settled
        s10_lease_of_a_clock_ahead_is_live
        s10_lease_from_the_future_is_over
        s10_one_of_many_claimers_gets_a_stream
        s10_deadlines_come_earliest_first
        s10_deadlines_of_a_workflow_keep_their_order
        s10_next_deadline_is_told
        s10_deadline_reappears_after_lease
        s10_late_deadline_settle_is_refused
        s10_settled_deadline_is_gone
        s10_cleared_deadline_is_gone
        s10_deadline_lease_from_the_future_is_over;

    s11:
        s11_events_are_gapless
        s11_events_come_back_as_written
        s11_events_are_immutable;

    s12:
        s12_too_large_state
        s12_too_large_event
        s12_too_large_result
        s12_too_large_message
        s12_largest_allowed_is_taken;

    s13:
        s13_dropped_commit_is_all_or_none
        s13_store_works_after_drops;

    s14:
        s14_newer_schema_is_refused;

    s15:
        s15_erasure_replaces_what_stands_beside
        s15_erasure_of_something_else_is_refused;

    s16:
        s16_purge_takes_all_of_a_workflow
        s16_purge_spares_what_counts;

    port:
        port_identity_is_stable
        port_identity_is_random
        port_definition_is_found_by_digest
        port_definition_may_be_stored_again
        port_changed_definition_is_refused;

    sweep:
        port_sweep_sets_expiry_after_completion
        port_sweep_deletes_expired_rows
        port_sweep_deletes_old_deliveries
        port_sweep_keeps_its_limit;

    purge:
        port_purge_deletes_what_is_old
        port_purge_never_takes_a_pending_message
        port_backlog_is_counted_up_to_its_limit;
}

/// Runs one clause against the fixture that `fixture` makes, on a runtime of its own with two threads.
///
/// # Errors
/// [`Violation`] when the store breaks the law, when there is no clause `name`, or when there is no runtime.
pub fn run<F, M>(name: &str, fixture: M) -> Verdict
where
    F: ContractFixture,
    M: AsyncFnOnce() -> F,
{
    let clause = ALL
        .iter()
        .find(|clause| clause.name == name)
        .ok_or_else(|| Violation::new(format!("there is no clause {name}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Violation::new(format!("no runtime: {error}")))?;
    runtime.block_on(async move {
        let fixture = fixture().await;
        (clause.run)(&fixture).await
    })
}
