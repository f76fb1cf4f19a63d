//! What calls changed, as it was before. `undo` reads and writes the rows; here is their form.
//!
//! Further words of `change` need no new step: `mode`, `tree`, and with the beginning `staged-` what a
//! command changed. Parts of paths that are not UTF-8 are written as NUL and hexadecimal digits.

/// The step of the schema that makes the table.
pub(super) const STEP: &str = "
    -- What calls changed through the broker, as it was before; see `undo`.
    CREATE TABLE changes (
        id        INTEGER PRIMARY KEY,
        call      TEXT    NOT NULL,
        at        INTEGER NOT NULL,     -- milliseconds since 1970
        workspace TEXT    NOT NULL,
        change    TEXT    NOT NULL,     -- put | grow | gone | made | linked | moved
        path      TEXT    NOT NULL,     -- below the workspace
        goal      TEXT,                 -- where it was moved to
        before    TEXT    NOT NULL,     -- JSON: what had the name
        after     TEXT    NOT NULL,     -- JSON: what may have it now
        backup    TEXT,                 -- digest of the content that it had
        size      INTEGER NOT NULL,
        undone    TEXT                  -- the call that took it back
    ) STRICT;
    CREATE INDEX changes_by_call ON changes (call, id);
    CREATE INDEX changes_by_backup ON changes (backup, size) WHERE backup IS NOT NULL;
";
