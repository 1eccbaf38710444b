-- Schema 1. Append-only: a released migration never changes, the next one gets the next number.
-- Instants are milliseconds since the Unix epoch. Nothing but the codec looks inside state, body, message or document.

CREATE TABLE store (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL CHECK (length(id) = 32),
    -- An asset without a lock row counts as free with this fence; grows by 1,000,000 at each restore.
    fence_base INTEGER NOT NULL DEFAULT 0 CHECK (fence_base >= 0),
    -- Written to find out whether writing works.
    probe INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Keys that sign; the newest has the highest number.
CREATE TABLE secrets (
    number INTEGER PRIMARY KEY,
    secret BLOB NOT NULL CHECK (length(secret) >= 32)
) STRICT;

CREATE TABLE workflows (
    wid INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL CHECK (revision >= 1),
    phase TEXT NOT NULL CHECK (phase IN ('CREATED', 'RUNNING', 'BLOCKED', 'COMPLETED')),
    owner TEXT NOT NULL,
    -- To whom an open workflow is offered; '*' means anybody.
    offered_to TEXT,
    offered_at INTEGER,
    blocked_since INTEGER,
    completed_at INTEGER,
    updated_at INTEGER NOT NULL,
    last_activity INTEGER NOT NULL,
    -- Ids of its assets, sorted, separated by a space.
    assets TEXT NOT NULL,
    -- A sweep set the expiry of all its ledger rows.
    swept INTEGER NOT NULL DEFAULT 0 CHECK (swept IN (0, 1)),
    state TEXT NOT NULL,
    UNIQUE (tenant, id),
    CHECK ((phase = 'COMPLETED') = (completed_at IS NOT NULL)),
    CHECK ((phase = 'BLOCKED') = (blocked_since IS NOT NULL)),
    CHECK ((offered_to IS NULL) = (offered_at IS NULL))
) STRICT;

CREATE INDEX workflows_by_id ON workflows (id, tenant);
CREATE INDEX workflows_open ON workflows (phase, tenant, id) WHERE completed_at IS NULL;
CREATE INDEX workflows_open_of ON workflows (tenant, owner, last_activity, id) WHERE completed_at IS NULL;
CREATE INDEX workflows_offered ON workflows (tenant, offered_to, offered_at, id) WHERE offered_to IS NOT NULL;
CREATE INDEX workflows_blocked ON workflows (tenant, blocked_since, id) WHERE blocked_since IS NOT NULL;
CREATE INDEX workflows_completed_of ON workflows (tenant, owner, completed_at, id) WHERE completed_at IS NOT NULL;
CREATE INDEX workflows_to_sweep ON workflows (completed_at) WHERE completed_at IS NOT NULL AND swept = 0;

CREATE TABLE workflow_assets (
    wid INTEGER NOT NULL REFERENCES workflows (wid),
    asset_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    completed_at INTEGER,
    PRIMARY KEY (wid, asset_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX workflow_assets_completed ON workflow_assets (tenant, asset_id, completed_at, workflow_id)
    WHERE completed_at IS NOT NULL;

CREATE TABLE events (
    wid INTEGER NOT NULL REFERENCES workflows (wid),
    seq INTEGER NOT NULL CHECK (seq >= 1),
    body TEXT NOT NULL,
    UNIQUE (wid, seq)
) STRICT;

CREATE TRIGGER events_are_never_changed BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'an event is never changed');
END;

CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'an event is never deleted');
END;

-- Sensitive values beside the chain of events, so that they can be erased.
CREATE TABLE sensitive_values (
    wid INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (wid, seq),
    FOREIGN KEY (wid, seq) REFERENCES events (wid, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE ledger (
    lid INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    actor TEXT NOT NULL,
    key TEXT NOT NULL,
    wid INTEGER NOT NULL REFERENCES workflows (wid),
    seq INTEGER NOT NULL CHECK (seq >= 1),
    operation TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    result_version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    mark TEXT NOT NULL,
    fields TEXT NOT NULL,
    result TEXT NOT NULL,
    UNIQUE (tenant, actor, key)
) STRICT;

CREATE INDEX ledger_by_workflow ON ledger (wid, expires_at);
CREATE INDEX ledger_by_expiry ON ledger (expires_at) WHERE expires_at IS NOT NULL;

-- One row per asset that was ever held, so one holder at most. The row stays when the asset is free.
CREATE TABLE locks (
    tenant TEXT NOT NULL,
    asset_id TEXT NOT NULL,
    fence INTEGER NOT NULL CHECK (fence >= 0),
    -- After a restore: the fence that the row gets when it is freed, unless its own is higher.
    floor INTEGER NOT NULL DEFAULT 0 CHECK (floor >= 0),
    holder TEXT,
    owner TEXT,
    owner_name TEXT,
    acquired_at INTEGER,
    PRIMARY KEY (tenant, asset_id),
    CHECK ((holder IS NULL) = (owner IS NULL)),
    CHECK ((holder IS NULL) = (acquired_at IS NULL)),
    CHECK (holder IS NOT NULL OR owner_name IS NULL)
) STRICT, WITHOUT ROWID;

CREATE TABLE definitions (
    digest TEXT PRIMARY KEY CHECK (length(digest) = 64),
    procedure_id TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 0),
    title TEXT NOT NULL,
    document TEXT NOT NULL
) STRICT;

CREATE TABLE procedure_versions (
    procedure_id TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 0),
    digest TEXT NOT NULL REFERENCES definitions (digest),
    PRIMARY KEY (procedure_id, version)
) STRICT, WITHOUT ROWID;

-- The unit of order and of lease of the outbox: one workflow, one recipient.
CREATE TABLE streams (
    sid INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    recipient TEXT NOT NULL,
    -- next_attempt_at of its first pending row.
    due_at INTEGER,
    lease_token TEXT,
    lease_until INTEGER,
    UNIQUE (workflow_id, recipient, tenant),
    CHECK ((lease_token IS NULL) = (lease_until IS NULL))
) STRICT;

CREATE INDEX streams_due ON streams (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE outbox (
    oid INTEGER PRIMARY KEY,
    sid INTEGER NOT NULL REFERENCES streams (sid),
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'dead')),
    attempts INTEGER NOT NULL CHECK (attempts >= 0),
    next_attempt_at INTEGER NOT NULL,
    delivered_at INTEGER,
    last_error TEXT,
    message TEXT NOT NULL,
    UNIQUE (id, sid),
    CHECK ((state = 'delivered') = (delivered_at IS NOT NULL))
) STRICT;

CREATE INDEX outbox_by_stream ON outbox (sid, state, seq, id);
CREATE INDEX outbox_by_state ON outbox (state, id, sid);
CREATE INDEX outbox_delivered ON outbox (delivered_at) WHERE delivered_at IS NOT NULL;

CREATE TABLE deadlines (
    wid INTEGER NOT NULL REFERENCES workflows (wid),
    id TEXT NOT NULL,
    fire_at INTEGER NOT NULL,
    lease_token TEXT,
    lease_until INTEGER,
    PRIMARY KEY (wid, id),
    CHECK ((lease_token IS NULL) = (lease_until IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX deadlines_due ON deadlines (fire_at, id, wid);
