//! The set-based statements of a batch of commits, in the order in which they run.

use super::sheet::Bulk;

/// New workflows.
pub(crate) static NEW_WORKFLOWS: Bulk = Bulk {
    name: "new workflows",
    head: "INSERT INTO workflows (wid, tenant, id, revision, phase, owner, offered_to, offered_at, blocked_since, \
           completed_at, updated_at, last_activity, assets, state) VALUES ",
    row: "(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    tail: "",
};

/// What every commit changes in a head.
pub(crate) static STATES: Bulk = Bulk {
    name: "states",
    head: "UPDATE workflows SET revision = v.column2, updated_at = v.column3, last_activity = v.column4, \
           state = v.column5 FROM (VALUES ",
    row: "(?,?,?,?,?)",
    tail: ") AS v WHERE workflows.wid = v.column1",
};

/// What seldom changes in a head: the columns for lists.
pub(crate) static PLACEMENTS: Bulk = Bulk {
    name: "placements",
    head: "UPDATE workflows SET phase = v.column2, owner = v.column3, offered_to = v.column4, \
           offered_at = v.column5, blocked_since = v.column6, completed_at = v.column7, assets = v.column8, swept = 0 \
           FROM (VALUES ",
    row: "(?,?,?,?,?,?,?,?)",
    tail: ") AS v WHERE workflows.wid = v.column1",
};

/// Assets of workflows whose list of assets, or end, changed.
pub(crate) static ASSETS_GONE: Bulk = Bulk {
    name: "assets gone",
    head: "DELETE FROM workflow_assets WHERE wid IN (VALUES ",
    row: "(?)",
    tail: ")",
};

/// The same, as they are now.
pub(crate) static ASSETS: Bulk = Bulk {
    name: "assets",
    head: "INSERT INTO workflow_assets (wid, asset_id, tenant, workflow_id, completed_at) VALUES ",
    row: "(?,?,?,?,?)",
    tail: "",
};

/// Events.
pub(crate) static EVENTS: Bulk = Bulk {
    name: "events",
    head: "INSERT INTO events (wid, seq, body) VALUES ",
    row: "(?,?,?)",
    tail: "",
};

/// Sensitive values beside events.
pub(crate) static SENSITIVE_VALUES: Bulk = Bulk {
    name: "sensitive values",
    head: "INSERT INTO sensitive_values (wid, seq, body) VALUES ",
    row: "(?,?,?)",
    tail: "",
};

/// Expired ledger rows that are replaced.
pub(crate) static LEDGER_GONE: Bulk = Bulk {
    name: "ledger rows gone",
    head: "DELETE FROM ledger WHERE lid IN (VALUES ",
    row: "(?)",
    tail: ")",
};

/// Ledger rows.
pub(crate) static LEDGER: Bulk = Bulk {
    name: "ledger rows",
    head: "INSERT INTO ledger (tenant, actor, key, wid, seq, operation, fingerprint, result_version, created_at, \
           expires_at, mark, fields, result) VALUES ",
    row: "(?,?,?,?,?,?,?,?,?,?,?,?,?)",
    tail: "",
};

/// Lock rows.
pub(crate) static LOCKS: Bulk = Bulk {
    name: "locks",
    head: "INSERT INTO locks (tenant, asset_id, fence, floor, holder, owner, owner_name, acquired_at) VALUES ",
    row: "(?,?,?,?,?,?,?,?)",
    tail: " ON CONFLICT (tenant, asset_id) DO UPDATE SET fence = excluded.fence, floor = excluded.floor, \
           holder = excluded.holder, owner = excluded.owner, owner_name = excluded.owner_name, \
           acquired_at = excluded.acquired_at",
};

/// People by their newest name.
pub(crate) static PEOPLE: Bulk = Bulk {
    name: "people",
    head: "INSERT INTO people (tenant, actor, name, seen_at) VALUES ",
    row: "(?,?,?,?)",
    tail: " ON CONFLICT (tenant, actor) DO UPDATE SET name = excluded.name, seen_at = excluded.seen_at",
};

/// Streams of new messages.
pub(crate) static STREAMS: Bulk = Bulk {
    name: "streams",
    head: "INSERT INTO streams (tenant, workflow_id, recipient) VALUES ",
    row: "(?,?,?)",
    tail: " ON CONFLICT (workflow_id, recipient, tenant) DO NOTHING",
};

/// New messages.
pub(crate) static OUTBOX: Bulk = Bulk {
    name: "outbox",
    head: "INSERT INTO outbox (sid, seq, id, state, attempts, next_attempt_at, message) \
           SELECT s.sid, v.column4, v.column5, 'pending', 0, v.column6, v.column7 FROM (VALUES ",
    row: "(?,?,?,?,?,?,?)",
    tail: ") AS v CROSS JOIN streams AS s \
           ON s.workflow_id = v.column2 AND s.recipient = v.column3 AND s.tenant = v.column1",
};

/// When streams with new messages are due: their first pending message says so.
pub(crate) static STREAMS_DUE: Bulk = Bulk {
    name: "streams due",
    head: "UPDATE streams SET due_at = (SELECT o.next_attempt_at FROM outbox AS o \
           WHERE o.sid = streams.sid AND o.state = 'pending' ORDER BY o.seq, o.id LIMIT 1) FROM (VALUES ",
    row: "(?,?,?)",
    tail: ") AS v WHERE streams.workflow_id = v.column2 AND streams.recipient = v.column3 \
           AND streams.tenant = v.column1",
};

/// Deadlines that are gone.
pub(crate) static DEADLINES_GONE: Bulk = Bulk {
    name: "deadlines gone",
    head: "DELETE FROM deadlines WHERE (wid, id) IN (VALUES ",
    row: "(?,?)",
    tail: ")",
};

/// Deadlines that are set. Setting one again frees its lease.
pub(crate) static DEADLINES: Bulk = Bulk {
    name: "deadlines",
    head: "INSERT INTO deadlines (wid, id, fire_at) VALUES ",
    row: "(?,?,?)",
    tail: " ON CONFLICT (wid, id) DO UPDATE SET fire_at = excluded.fire_at, lease_token = NULL, lease_until = NULL",
};

/// Every statement above, for the test that looks at their plans.
#[cfg(test)]
pub(crate) static ALL: &[&Bulk] = &[
    &NEW_WORKFLOWS,
    &STATES,
    &PLACEMENTS,
    &ASSETS_GONE,
    &ASSETS,
    &EVENTS,
    &SENSITIVE_VALUES,
    &LEDGER_GONE,
    &LEDGER,
    &LOCKS,
    &PEOPLE,
    &STREAMS,
    &OUTBOX,
    &STREAMS_DUE,
    &DEADLINES_GONE,
    &DEADLINES,
];
