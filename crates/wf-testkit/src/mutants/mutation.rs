//! Each way to be broken, and the clauses that must be red for it.

/// One way in which a store breaks the law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// Every question about its identity is answered with another one.
    IdentityChanges,
    /// Every store has the same identity.
    IdentityFixed,
    /// No definition is ever found.
    DefinitionForgotten,
    /// A definition that is known is refused.
    DefinitionOnce,
    /// A version may change its digest.
    DefinitionOverwritten,
    /// The sweep lets ledger rows of open workflows expire.
    SweepExpiresOpen,
    /// The sweep deletes ledger rows before their expiry.
    SweepDeletesEarly,
    /// The sweep deletes messages that were given up.
    SweepDeletesDead,
    /// The sweep knows no limit.
    SweepUnlimited,
    /// Messages of a commit are lost.
    OutboxForgotten,
    /// Deadlines of a commit are lost.
    DeadlinesForgotten,
    /// The ledger row of a commit is lost.
    LedgerForgotten,
    /// Locks of a commit are neither checked nor written.
    LocksForgotten,
    /// A commit's events take the place of the earlier ones.
    EventsOverwritten,
    /// Messages are written before the conditions are looked at.
    OutboxBeforeConditions,
    /// The expected revision is not looked at.
    RevisionIgnored,
    /// A ledger row that exists is overwritten.
    LedgerIgnored,
    /// A key is the tenant's, whoever uses it.
    KeyOfTenant,
    /// Keys differ only when their lower case does.
    KeysCaseless,
    /// A commit that names a row to replace replaces any.
    ReplacesUnchecked,
    /// A commit that names a row to replace needs it to be there.
    ReplacesMustExist,
    /// The revision is reported before ledger and locks.
    RevisionFirst,
    /// Locks are written whatever their rows say.
    LocksUnchecked,
    /// A workflow may acquire what it holds.
    OwnAssetIsFree,
    /// Assets are acquired one by one up to the first that is held.
    LocksOneByOne,
    /// Any fence will do to acquire a free asset.
    FenceUnchecked,
    /// A release deletes the row, and the fence with it.
    ReleaseDeletesRow,
    /// A release frees the asset whoever holds it.
    ReleaseUnchecked,
    /// An assertion writes the time into the row.
    AssertWrites,
    /// Assertions are not looked at.
    AssertIgnored,
    /// What a workflow holds already cannot be taken.
    TakeNeedsFree,
    /// Assets that change hands keep their rows.
    TakeForgotten,
    /// An asset is taken whoever holds it.
    TakeFromAnybody,
    /// People that commits name are forgotten.
    PeopleForgotten,
    /// People come named first first.
    PeopleOldestFirst,
    /// People of all tenants are found.
    PeopleLeakTenants,
    /// The ledger row is written first and the rest somewhat later.
    HalfAtATime,
    /// Events are written somewhat later than the rest.
    EventsLate,
    /// A dropped commit leaves the store locked.
    DropPoisons,
    /// Loads do not see the newest commit.
    ReadsLag,
    /// Open workflows are counted although nobody asked.
    CountUnasked,
    /// A load brings only rows of assets that were named.
    OwnLocksForgotten,
    /// A load stops at any row of the ledger, also at that of another call.
    AnsweredByAnyRow,
    /// Open workflows come oldest activity first.
    OpenOfOldestFirst,
    /// Completed workflows count as open.
    CountIncludesCompleted,
    /// Offers to anybody are shown to nobody.
    OffersToAnybodyHidden,
    /// Offers come newest first.
    OffersNewestFirst,
    /// Blocked workflows come newest first.
    BlockedNewestFirst,
    /// The last completed is the one that started last.
    LastByStart,
    /// A load finds workflows of any tenant.
    LoadLeaksTenants,
    /// Lists show the workflows of all tenants.
    ListsLeakTenants,
    /// A settlement finds its stream in any tenant.
    SettleIgnoresTenant,
    /// A sweep takes what ended in one tenant for ended in all.
    SweepIgnoresTenant,
    /// Every page but the first lacks its first row.
    PageSkipsRow,
    /// A list of one phase shows all phases.
    PhaseFilterIgnored,
    /// Pages are cut by counting rows.
    OffsetPages,
    /// A text that is no place of a list is taken for an outage.
    BadCursorUnavailable,
    /// The empty text begins a list.
    EmptyCursorBegins,
    /// An unknown outcome is called unavailable.
    UnavailableAlthoughApplied,
    /// A claim brings what is not due.
    ClaimIgnoresDue,
    /// A message is due at the time that its history has.
    DueByItsHistory,
    /// A claimed stream has its rows backwards.
    RowsReversed,
    /// A row that waits does not hide those behind it.
    WaitingRowsSkipped,
    /// A workflow has one lease for all its streams.
    LeasePerWorkflow,
    /// A claim knows no limit.
    ClaimUnlimited,
    /// A delivery is not written down.
    DeliveredStaysPending,
    /// A settlement delivers the whole stream.
    UnnamedDelivered,
    /// A retry is due at once.
    RetryAtOnce,
    /// A message that was given up is deleted.
    DeadDeleted,
    /// A purge deletes what is not old enough.
    PurgeIgnoresAge,
    /// A purge deletes what is still to be delivered.
    PurgeTakesPending,
    /// A purge knows no limit.
    PurgeUnlimited,
    /// A purge that only counts deletes.
    PurgeCountDeletes,
    /// What is erased stays.
    ErasureForgotten,
    /// An erasure does not look at what it replaces.
    ErasureUnchecked,
    /// An erasure empties every event of the workflow.
    ErasureOfAll,
    /// A purge leaves the events.
    PurgedHistoryStays,
    /// A purge leaves no tombstone.
    PurgedWithoutTrace,
    /// A purge leaves the ledger rows.
    PurgedRowsStay,
    /// A purge takes what is open or was changed.
    PurgeOfOpen,
    /// A purge takes rows that count.
    PurgeOfKeys,
    /// A purge takes what was not delivered, unasked.
    PurgeOfUndelivered,
    /// A purge that only asks deletes.
    PurgeAlthoughAsked,
    /// What is delivered counts as pending.
    BacklogCountsDelivered,
    /// The backlog is counted to its end.
    BacklogUnlimited,
    /// Any message can be made pending again.
    ReviveAnything,
    /// A live lease hides nothing.
    LeaseIgnored,
    /// A lease never ends.
    LeaseForever,
    /// A lease of a clock that is a little ahead counts for nothing.
    LeaseAheadIgnored,
    /// A lease of a clock that was far ahead counts.
    FutureLeaseHonoured,
    /// Anybody may settle.
    TokenIgnored,
    /// A settlement keeps the lease.
    SettleKeepsLease,
    /// Deadlines come latest first.
    DeadlinesLatestFirst,
    /// A deadline under lease does not hold back later ones of its workflow.
    DeadlinesOvertake,
    /// The next deadline is told as if there were no leases.
    NextIgnoresLeases,
    /// The next deadline is told only when it is due.
    NextOnlyWhenDue,
    /// A deadline that was settled stays.
    DeadlineSettleKeeps,
    /// A deadline that was cleared stays.
    ClearIgnored,
    /// Events after a place begin with that place.
    EventsInclusive,
    /// Sensitive values beside events are lost.
    SensitiveForgotten,
    /// A refused commit leaves its events in place of the true ones.
    EventsRewritten,
    /// Records of any size are taken.
    SizesUnchecked,
    /// Records are refused that the core allows.
    SizesTooSmall,
    /// A store of any schema is opened.
    SchemaUnchecked,
}

/// Each mutation with clauses that must be red for it. Others may be red too.
pub const MUTATIONS: &[(Mutation, &[&str])] = &[
    (Mutation::IdentityChanges, &["port_identity_is_stable"]),
    (Mutation::IdentityFixed, &["port_identity_is_random"]),
    (Mutation::DefinitionForgotten, &["port_definition_is_found_by_digest"]),
    (Mutation::DefinitionOnce, &["port_definition_may_be_stored_again"]),
    (Mutation::DefinitionOverwritten, &["port_changed_definition_is_refused"]),
    (Mutation::SweepExpiresOpen, &["port_sweep_sets_expiry_after_completion"]),
    (Mutation::SweepDeletesEarly, &["port_sweep_deletes_expired_rows"]),
    (Mutation::SweepDeletesDead, &["port_sweep_deletes_old_deliveries"]),
    (Mutation::SweepUnlimited, &["port_sweep_keeps_its_limit"]),
    (Mutation::PurgeIgnoresAge, &["port_purge_deletes_what_is_old"]),
    (Mutation::PurgeTakesPending, &["port_purge_never_takes_a_pending_message"]),
    (
        Mutation::PurgeUnlimited,
        &["port_purge_deletes_what_is_old", "port_purge_never_takes_a_pending_message"],
    ),
    (Mutation::PurgeCountDeletes, &["port_purge_deletes_what_is_old"]),
    (Mutation::ErasureForgotten, &["s15_erasure_replaces_what_stands_beside"]),
    (Mutation::ErasureUnchecked, &["s15_erasure_of_something_else_is_refused"]),
    (Mutation::ErasureOfAll, &["s15_erasure_replaces_what_stands_beside"]),
    (Mutation::PurgedHistoryStays, &["s16_purge_takes_all_of_a_workflow"]),
    (Mutation::PurgedWithoutTrace, &["s16_purge_takes_all_of_a_workflow"]),
    (Mutation::PurgedRowsStay, &["s16_purge_takes_all_of_a_workflow"]),
    (Mutation::PurgeOfOpen, &["s16_purge_spares_what_counts"]),
    (Mutation::PurgeOfKeys, &["s16_purge_spares_what_counts"]),
    (Mutation::PurgeOfUndelivered, &["s16_purge_spares_what_counts"]),
    (Mutation::PurgeAlthoughAsked, &["s16_purge_takes_all_of_a_workflow"]),
    (Mutation::BacklogCountsDelivered, &["port_backlog_is_counted_up_to_its_limit"]),
    (Mutation::BacklogUnlimited, &["port_backlog_is_counted_up_to_its_limit"]),
    (Mutation::OutboxForgotten, &["s01_commit_writes_every_part"]),
    (Mutation::DeadlinesForgotten, &["s01_commit_writes_every_part"]),
    (Mutation::LedgerForgotten, &["s01_commit_writes_every_part", "s09_resend_meets_its_row"]),
    (
        Mutation::LocksForgotten,
        &["s01_commit_writes_every_part", "s04_held_asset_conflicts_with_row"],
    ),
    (Mutation::EventsOverwritten, &["s01_next_commit_adds_to_the_first", "s11_events_are_gapless"]),
    (Mutation::OutboxBeforeConditions, &["s01_refused_commit_writes_no_part"]),
    (
        Mutation::RevisionIgnored,
        &[
            "s02_stale_revision_conflicts",
            "s02_future_revision_conflicts",
            "s02_existing_workflow_cannot_start_again",
            "s02_absent_workflow_has_revision_zero",
            "s02_one_of_many_writers_wins",
        ],
    ),
    (
        Mutation::LedgerIgnored,
        &[
            "s03_ledger_key_conflicts_with_row",
            "s03_same_key_at_once_commits_once",
            "s09_resend_meets_its_row",
        ],
    ),
    (Mutation::KeyOfTenant, &["s03_key_belongs_to_tenant_and_actor"]),
    (Mutation::KeysCaseless, &["s03_keys_are_compared_byte_for_byte"]),
    (Mutation::ReplacesUnchecked, &["s03_expired_row_is_replaced_only_when_equal"]),
    (Mutation::ReplacesMustExist, &["s03_purged_row_needs_no_replacing"]),
    (
        Mutation::RevisionFirst,
        &[
            "s03_ledger_is_reported_before_lock_and_revision",
            "s04_lock_is_reported_before_revision",
        ],
    ),
    (
        Mutation::LocksUnchecked,
        &["s04_held_asset_conflicts_with_row", "s04_one_of_many_starts_wins"],
    ),
    (Mutation::OwnAssetIsFree, &["s04_own_asset_is_not_free"]),
    (Mutation::LocksOneByOne, &["s04_assets_all_or_none"]),
    (Mutation::FenceUnchecked, &["s04_fence_must_follow"]),
    (Mutation::ReleaseDeletesRow, &["s04_release_keeps_row_and_fence"]),
    (Mutation::ReleaseUnchecked, &["s04_release_of_lost_asset_is_ignored"]),
    (Mutation::AssertWrites, &["s04_assert_holds_and_writes_nothing"]),
    (
        Mutation::AssertIgnored,
        &["s04_assert_fails_when_not_held", "s04_lock_is_reported_before_revision"],
    ),
    (
        Mutation::HalfAtATime,
        &["s05_reader_sees_whole_commits", "s13_dropped_commit_is_all_or_none"],
    ),
    (Mutation::EventsLate, &["s05_lists_and_events_are_whole"]),
    (Mutation::DropPoisons, &["s13_store_works_after_drops"]),
    (Mutation::ReadsLag, &["s06_commit_is_read_by_every_handle"]),
    (Mutation::CountUnasked, &["s06_load_of_nothing_is_empty"]),
    (Mutation::OwnLocksForgotten, &["s06_load_brings_the_lock_rows"]),
    (Mutation::AnsweredByAnyRow, &["s06_load_stops_at_its_own_answer_only"]),
    (Mutation::OpenOfOldestFirst, &["s06_open_of_follows_ownership"]),
    (Mutation::CountIncludesCompleted, &["s06_open_count_follows_ownership"]),
    (Mutation::OffersToAnybodyHidden, &["s06_offered_to_follows_offers"]),
    (Mutation::OffersNewestFirst, &["s06_offered_to_follows_offers"]),
    (Mutation::BlockedNewestFirst, &["s06_blocked_are_longest_first"]),
    (Mutation::LastByStart, &["s06_last_completed_is_the_newest"]),
    (Mutation::LoadLeaksTenants, &["s07_same_names_do_not_meet", "s07_nothing_is_found_elsewhere"]),
    (Mutation::ListsLeakTenants, &["s07_lists_show_their_own"]),
    (Mutation::SettleIgnoresTenant, &["s07_lease_is_of_one_tenant"]),
    (Mutation::SweepIgnoresTenant, &["s07_ends_stay_in_their_tenant"]),
    (Mutation::PageSkipsRow, &["s08_pages_cover_everything_once"]),
    (Mutation::PhaseFilterIgnored, &["s08_phase_filter_keeps_its_phase"]),
    (
        Mutation::OffsetPages,
        &[
            "s08_pages_stable_while_writing",
            "s08_lock_pages_stable_while_writing",
            "s08_outbox_pages_stable_while_writing",
        ],
    ),
    (Mutation::BadCursorUnavailable, &["s08_what_is_no_place_is_refused"]),
    (Mutation::EmptyCursorBegins, &["s08_what_is_no_place_is_refused"]),
    (Mutation::UnavailableAlthoughApplied, &["s09_answers_are_true_when_disturbed"]),
    (Mutation::ClaimIgnoresDue, &["s10_claim_brings_due_streams", "s10_retry_waits_and_counts"]),
    (Mutation::DueByItsHistory, &["s10_message_of_a_history_ahead_is_due"]),
    (Mutation::RowsReversed, &["s10_rows_come_in_order"]),
    (Mutation::WaitingRowsSkipped, &["s10_waiting_row_hides_those_behind"]),
    (Mutation::LeasePerWorkflow, &["s10_streams_do_not_wait_for_each_other"]),
    (Mutation::ClaimUnlimited, &["s10_claim_keeps_its_limit", "s10_deadlines_come_earliest_first"]),
    (Mutation::DeliveredStaysPending, &["s10_delivered_row_is_not_brought_again"]),
    (Mutation::UnnamedDelivered, &["s10_unnamed_messages_stay"]),
    (Mutation::RetryAtOnce, &["s10_retry_waits_and_counts", "s10_waiting_row_hides_those_behind"]),
    (Mutation::DeadDeleted, &["s10_dead_row_is_passed_over"]),
    (Mutation::ReviveAnything, &["s10_dead_row_can_be_revived"]),
    (
        Mutation::LeaseIgnored,
        &[
            "s10_live_lease_hides_its_stream",
            "s10_one_of_many_claimers_gets_a_stream",
            "s10_deadline_reappears_after_lease",
        ],
    ),
    (
        Mutation::LeaseForever,
        &["s10_stream_reappears_after_lease", "s10_deadline_reappears_after_lease"],
    ),
    (
        Mutation::LeaseAheadIgnored,
        &["s10_lease_of_a_clock_ahead_is_live", "s10_deadline_lease_from_the_future_is_over"],
    ),
    (
        Mutation::FutureLeaseHonoured,
        &["s10_lease_from_the_future_is_over", "s10_deadline_lease_from_the_future_is_over"],
    ),
    (
        Mutation::TokenIgnored,
        &[
            "s10_late_settle_is_refused",
            "s10_unclaimed_stream_cannot_be_settled",
            "s10_late_deadline_settle_is_refused",
        ],
    ),
    (Mutation::SettleKeepsLease, &["s10_settle_gives_the_lease_back"]),
    (Mutation::DeadlinesLatestFirst, &["s10_deadlines_come_earliest_first"]),
    (Mutation::DeadlinesOvertake, &["s10_deadlines_of_a_workflow_keep_their_order"]),
    (Mutation::NextIgnoresLeases, &["s10_next_deadline_is_told"]),
    (Mutation::NextOnlyWhenDue, &["s10_next_deadline_is_told"]),
    (Mutation::DeadlineSettleKeeps, &["s10_settled_deadline_is_gone"]),
    (Mutation::ClearIgnored, &["s10_cleared_deadline_is_gone"]),
    (Mutation::EventsInclusive, &["s11_events_are_gapless"]),
    (Mutation::SensitiveForgotten, &["s11_events_come_back_as_written"]),
    (Mutation::EventsRewritten, &["s11_events_are_immutable"]),
    (
        Mutation::SizesUnchecked,
        &[
            "s12_too_large_state",
            "s12_too_large_event",
            "s12_too_large_result",
            "s12_too_large_message",
        ],
    ),
    (
        Mutation::PeopleForgotten,
        &["s06_people_have_their_newest_name", "s01_commit_writes_every_part"],
    ),
    (Mutation::PeopleOldestFirst, &["s06_people_have_their_newest_name"]),
    (Mutation::PeopleLeakTenants, &["s07_people_stay_in_their_tenant"]),
    (Mutation::TakeNeedsFree, &["s04_take_moves_what_is_held"]),
    (
        Mutation::TakeForgotten,
        &["s04_take_moves_what_is_held", "s04_take_brings_back_what_is_free"],
    ),
    (Mutation::TakeFromAnybody, &["s04_take_of_anothers_conflicts"]),
    (Mutation::SizesTooSmall, &["s12_largest_allowed_is_taken"]),
    (Mutation::SchemaUnchecked, &["s14_newer_schema_is_refused"]),
];
