-- Schema 2: people of a tenant by the name they were last named with, to find whom work is offered to.

CREATE TABLE people (
    tenant TEXT NOT NULL,
    actor TEXT NOT NULL,
    name TEXT,
    -- When a commit named them last.
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, actor)
) STRICT, WITHOUT ROWID;

CREATE INDEX people_seen ON people (tenant, seen_at, actor);
