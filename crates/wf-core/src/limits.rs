//! Every bound, with its unit, checked against each other at compile time.

/// Longest idempotency key, in visible ASCII characters.
pub const KEY_CHARS_MAX: usize = 128;
/// Open workflows one principal may own.
pub const OPEN_WORKFLOWS_MAX: u32 = 100;
/// Longest submitted value, in characters.
pub const VALUE_CHARS_MAX: usize = 200;
/// Longest note, summary, comment or reason text, in characters.
pub const FREE_TEXT_CHARS_MAX: usize = 1_000;
/// Longest query, in characters.
pub const QUERY_CHARS_MAX: usize = 200;
/// Largest inputs of a start, in bytes of their canonical form.
pub const INPUTS_BYTES_MAX: usize = 16 * 1024;
/// Steps of one procedure.
pub const STEPS_MAX: usize = 200;
/// Assets of one workflow.
pub const ASSETS_MAX: usize = 16;
/// Open deadlines of one workflow.
pub const DEADLINES_MAX: usize = 8;
/// Outbox rows of one commit.
pub const OUTBOX_ROWS_MAX: usize = 16;
/// Events of one commit.
pub const EVENTS_MAX: usize = 48;
/// Steps that may use the value of one step: a correction flags all of them for re-check in one commit, beside itself,
/// a block and the end of a block. A policy must not have more; more would not be flagged.
pub const DEPENDANTS_MAX: usize = EVENTS_MAX - 3;
/// Open blocks of one workflow.
pub const BLOCKS_MAX: usize = 16;
/// Closed blocks kept in the state to recognise repeats.
pub const CLOSED_BLOCKS_MAX: usize = 8;
/// Largest request body, in bytes.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Deepest JSON.
pub const JSON_DEPTH_MAX: usize = 32;
/// Events shown in a result.
pub const HISTORY_SHOWN_MAX: usize = 50;
/// Candidates shown in a result.
pub const CANDIDATES_SHOWN_MAX: usize = 5;
/// Longest speech, in characters.
pub const SPEECH_CHARS_MAX: usize = 240;
/// Longest prompt or other spoken text of a policy, in characters.
pub const SPOKEN_TEXT_CHARS_MAX: usize = 160;
/// Largest stored state of one workflow, in bytes (a DynamoDB item holds 400 KB).
pub const STATE_BYTES_MAX: usize = 350_000;
/// What of it is kept free while a workflow is open, in bytes, so that its end always fits.
pub const STATE_RESERVE_BYTES: usize = 4_096;
/// Largest stored event, in bytes.
pub const EVENT_BYTES_MAX: usize = 64_000;
/// How often a command is decided again after a conflict.
pub const DECIDE_ATTEMPTS_MAX: u32 = 8;
/// How often the same commit is sent again after an unknown outcome.
pub const RESEND_ATTEMPTS_MAX: u32 = 2;
/// How long a confirm token counts, in milliseconds.
pub const CONFIRM_TOKEN_MS: i64 = 5 * 60 * 1_000;
/// How far back "finished just now" looks, in milliseconds.
pub const RECENT_MS: i64 = 24 * 60 * 60 * 1_000;
/// Length of an outbox or deadline lease, in milliseconds.
pub const LEASE_MS: i64 = 30_000;

/// Actions of one DynamoDB transaction (TransactWriteItems, API reference).
const DYNAMODB_ACTIONS_MAX: usize = 100;
// head, ledger, owner index, offer index, blocked index, attention row
const FIXED_ACTIONS: usize = 6;

const _: () = assert!(
    FIXED_ACTIONS + EVENTS_MAX + ASSETS_MAX + DEADLINES_MAX + OUTBOX_ROWS_MAX
        <= DYNAMODB_ACTIONS_MAX
);
const _: () = assert!(STATE_BYTES_MAX + 4_096 < 400_000);
const _: () = assert!(HISTORY_SHOWN_MAX >= EVENTS_MAX);
