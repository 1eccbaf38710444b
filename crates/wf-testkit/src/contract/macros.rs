//! Binds the clauses as tests of a backend.

/// Binds every clause of the contract as a `#[test]` of its own, and `every_clause_is_bound` beside them.
///
/// ```ignore
/// // tests/it/contract.rs of a backend
/// wf_testkit::storage_contract!(MyFixture::new());
/// ```
///
/// The expression makes a [`ContractFixture`](crate::contract::ContractFixture); it is evaluated once per clause, in an
/// async block on a tokio runtime, so it may `.await`. An attribute before it goes to each clause, for a backend that needs
/// a service: `storage_contract!(#[ignore = "needs WF_AWS_ENDPOINT"] MyFixture::new().await)`.
#[macro_export]
macro_rules! storage_contract {
    (#[$attribute:meta] $fixture:expr $(,)?) => {
        $crate::storage_contract!(@ { #[$attribute] } { $fixture });
    };
    (@ $attributes:tt $fixture:tt) => {
        $crate::bind_clauses! {
            $attributes $fixture
            s01_commit_writes_every_part
            s01_next_commit_adds_to_the_first
            s01_refused_commit_writes_no_part
            s02_stale_revision_conflicts
            s02_future_revision_conflicts
            s02_existing_workflow_cannot_start_again
            s02_absent_workflow_has_revision_zero
            s02_one_of_many_writers_wins
            s03_ledger_key_conflicts_with_row
            s03_key_belongs_to_tenant_and_actor
            s03_keys_are_compared_byte_for_byte
            s03_expired_row_is_replaced_only_when_equal
            s03_purged_row_needs_no_replacing
            s03_ledger_is_reported_before_lock_and_revision
            s03_same_key_at_once_commits_once
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
            s04_one_of_many_starts_wins
            s05_reader_sees_whole_commits
            s05_lists_and_events_are_whole
            s06_commit_is_read_by_every_handle
            s06_load_of_nothing_is_empty
            s06_load_brings_the_lock_rows
            s06_load_stops_at_its_own_answer_only
            s06_open_of_follows_ownership
            s06_open_count_follows_ownership
            s06_offered_to_follows_offers
            s06_blocked_are_longest_first
            s06_people_have_their_newest_name
            s06_last_completed_is_the_newest
            s07_same_names_do_not_meet
            s07_nothing_is_found_elsewhere
            s07_people_stay_in_their_tenant
            s07_lists_show_their_own
            s07_lease_is_of_one_tenant
            s07_ends_stay_in_their_tenant
            s08_pages_cover_everything_once
            s08_phase_filter_keeps_its_phase
            s08_pages_stable_while_writing
            s08_lock_pages_stable_while_writing
            s08_outbox_pages_stable_while_writing
            s08_what_is_no_place_is_refused
            s09_resend_meets_its_row
            s09_answers_are_true_when_disturbed
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
            s10_deadline_lease_from_the_future_is_over
            s11_events_are_gapless
            s11_events_come_back_as_written
            s11_events_are_immutable
            s12_too_large_state
            s12_too_large_event
            s12_too_large_result
            s12_too_large_message
            s12_largest_allowed_is_taken
            s13_dropped_commit_is_all_or_none
            s13_store_works_after_drops
            s14_newer_schema_is_refused
            s15_erasure_replaces_what_stands_beside
            s15_erasure_of_something_else_is_refused
            s16_purge_takes_all_of_a_workflow
            s16_purge_spares_what_counts
            port_identity_is_stable
            port_identity_is_random
            port_definition_is_found_by_digest
            port_definition_may_be_stored_again
            port_changed_definition_is_refused
            port_sweep_sets_expiry_after_completion
            port_sweep_deletes_expired_rows
            port_sweep_deletes_old_deliveries
            port_sweep_keeps_its_limit
            port_purge_deletes_what_is_old
            port_purge_never_takes_a_pending_message
            port_backlog_is_counted_up_to_its_limit
        }
    };
    ($fixture:expr $(,)?) => {
        $crate::storage_contract!(@ {} { $fixture });
    };
}

/// Makes the tests that [`storage_contract!`](crate::storage_contract) lists.
#[doc(hidden)]
#[macro_export]
macro_rules! bind_clauses {
    ($attributes:tt $fixture:tt $($name:ident)+) => {
        $($crate::bind_clause!($attributes $fixture $name);)+

        #[test]
        fn every_clause_is_bound() {
            assert_eq!([$(stringify!($name)),+].as_slice(), $crate::contract::CLAUSES);
        }
    };
}

/// Makes one test of a clause.
#[doc(hidden)]
#[macro_export]
macro_rules! bind_clause {
    ({ $($attribute:tt)* } { $fixture:expr } $name:ident) => {
        #[test]
        $($attribute)*
        fn $name() -> ::core::result::Result<(), $crate::contract::Violation> {
            $crate::contract::run(stringify!($name), async || $fixture)
        }
    };
}
