//! Each way to be broken. `red` has the clauses that must find it.

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
