-- Schema 3: what is left of workflows that were purged. Only what has its tombstone may be deleted.

CREATE TABLE purged (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    purged_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

DROP TRIGGER events_are_never_deleted;

CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
WHEN NOT EXISTS (SELECT 1 FROM workflows w CROSS JOIN purged p ON p.tenant = w.tenant AND p.id = w.id
                  WHERE w.wid = OLD.wid)
BEGIN
    SELECT RAISE(ABORT, 'an event is never deleted');
END;
