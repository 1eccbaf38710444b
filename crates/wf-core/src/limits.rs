//! Every bound, with its unit, checked against each other at compile time.

/// Longest idempotency key, in visible ASCII characters.
pub const KEY_CHARS_MAX: usize = 128;
/// Open workflows one principal may own.
pub const OPEN_WORKFLOWS_MAX: u32 = 100;
/// Rows of one page of a console, and workflows that are looked at for a page of those that fit some words.
pub const WATCHED_ROWS_MAX: u32 = 500;
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
/// Deadlines that a start may set: the others are for answers to blocks.
pub const START_DEADLINES_MAX: usize = 4;
/// People who are told of one block, one after another. Where no deadline is left they are told at once.
pub const ESCALATION_MAX: usize = 4;
/// Outbox rows of one commit.
pub const OUTBOX_ROWS_MAX: usize = 16;
/// People who may work on one workflow: all are remembered, so that a second person is one.
pub const PERFORMERS_MAX: usize = 50;
/// People of a tenant among whom a name is looked for, those seen last.
pub const PEOPLE_MAX: u32 = 1_000;
/// Events of one commit.
pub const EVENTS_MAX: usize = 48;
/// Waits that begin in one commit; more begin with the next.
pub const WAITS_BEGIN_MAX: usize = 4;
/// Steps of one procedure that sign. A correction asks for all of them again in one commit.
pub const SIGNATURES_MAX: usize = 4;
/// Steps that use the value of one step, themselves or by way of others: a correction flags all of them in one commit,
/// beside itself, a block, the end of a block, signatures and waits. A policy must not have more; more would not be
/// flagged.
pub const DEPENDANTS_MAX: usize = EVENTS_MAX - 3 - SIGNATURES_MAX - WAITS_BEGIN_MAX;
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
/// Events of one page of a whole history.
pub const HISTORY_PAGE_EVENTS: u32 = 100;
/// Events in one document of evidence.
pub const EVIDENCE_EVENTS_MAX: u64 = 20_000;
/// Largest document of evidence that is made, in bytes, but for what few bytes its frame takes.
pub const EVIDENCE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Largest document of evidence that is looked through, in bytes: one that was made, indented.
pub const EVIDENCE_FILE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Deepest JSON of a document of evidence.
pub const EVIDENCE_DEPTH_MAX: usize = 40;
/// Assets of a tenant that are looked at to complete the beginning of an id.
pub const CANDIDATE_ASSETS_MAX: u32 = 1_000;
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
/// Workflows that an engine remembers as it committed them, to decide the next call on them without a read.
pub const RECENT_WORKFLOWS_MAX: usize = 128;
/// How often a command is decided again after a conflict.
pub const DECIDE_ATTEMPTS_MAX: u32 = 8;
/// How often the same commit is sent again after an unknown outcome.
pub const RESEND_ATTEMPTS_MAX: u32 = 2;
/// How long a confirm token counts, in milliseconds.
pub const CONFIRM_TOKEN_MS: i64 = 5 * 60 * 1_000;
/// How long an answer to a question asked back counts, in milliseconds.
pub const REQUEST_STATE_MS: i64 = 5 * 60 * 1_000;
/// Longest request state that is looked at, in bytes.
pub const REQUEST_STATE_BYTES_MAX: usize = 4_096;
/// Request states that a process remembers as used, of those that wrote nothing.
pub const SPENT_STATES_MAX: usize = 10_000;
/// How long the link in an escalation acknowledges, in milliseconds.
pub const ACK_TOKEN_MS: i64 = 7 * 24 * 60 * 60 * 1_000;
/// Longest acknowledgement token that is looked at, in bytes.
pub const ACK_TOKEN_BYTES_MAX: usize = 2_048;
/// How far back "finished just now" looks, in milliseconds.
pub const RECENT_MS: i64 = 24 * 60 * 60 * 1_000;
/// Length of an outbox or deadline lease, in milliseconds.
pub const LEASE_MS: i64 = 30_000;
/// How long one delivery of a message may take, in milliseconds. A sink that takes longer has failed.
pub const DELIVERY_MS: i64 = 15_000;
/// How long the claim of messages may take before the lease is given back unused, in milliseconds.
pub const DELIVERY_CLAIM_MS: i64 = 5_000;
/// What of the lease is kept free to write down what became of a message, in milliseconds.
pub const DELIVERY_SETTLE_MS: i64 = 2_000;
/// Failed attempts after which a message is given up: about a day of a receiver that is down.
pub const DELIVERY_ATTEMPTS_MAX: u32 = 100;
/// Longest wait between attempts that no receiver asked for, in milliseconds.
pub const DELIVERY_BACKOFF_MAX_MS: i64 = 15 * 60 * 1_000;
/// Longest wait between attempts that a receiver can ask for, in milliseconds.
pub const RETRY_AFTER_MAX_MS: i64 = 24 * 60 * 60 * 1_000;
/// Registrations of a token after which an execution gets a successor, long before its history of 25,000 events is full
/// ([quotas](https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html)).
pub const REGISTRATIONS_MAX: u32 = 2_000;
/// Age at which an execution gets a successor, in milliseconds: eleven months of the year that it may run (same page).
pub const EXECUTION_AGE_MAX_MS: i64 = 335 * 24 * 60 * 60 * 1_000;
/// How long an execution may take to register its token before it is looked at, in milliseconds.
pub const REGISTRATION_MS: i64 = 60 * 1_000;
/// How long an execution that was just started may be invisible, in milliseconds: DescribeExecution is eventually consistent.
pub const START_VISIBLE_MS: i64 = 60 * 1_000;
/// How long the execution of a completed workflow may take to end by itself, in milliseconds.
pub const RETIREMENT_MS: i64 = 10 * 60 * 1_000;
/// Wait before the first successor of an execution, in milliseconds; doubled for each further one.
pub const SUCCESSOR_BACKOFF_MS: i64 = 1_000;
/// Longest wait before a successor, in milliseconds.
pub const SUCCESSOR_BACKOFF_MAX_MS: i64 = 15 * 60 * 1_000;
/// How long successors of one workflow are counted together, in milliseconds.
pub const SUCCESSOR_WINDOW_MS: i64 = 24 * 60 * 60 * 1_000;
/// Successors within that time of which an operator is told.
pub const SUCCESSORS_ALERT: u32 = 5;
/// Longest time after which an execution wakes up by itself, in seconds.
pub const WAKE_MAX_S: u32 = 86_400;

/// Actions of one DynamoDB transaction (TransactWriteItems, API reference).
const DYNAMODB_ACTIONS_MAX: usize = 100;
// head, ledger, owner index, offer index, blocked index, attention row
const FIXED_ACTIONS: usize = 6;

const _: () = assert!(
    FIXED_ACTIONS + EVENTS_MAX + ASSETS_MAX + DEADLINES_MAX + OUTBOX_ROWS_MAX
        <= DYNAMODB_ACTIONS_MAX
);
// A delivery that begins when it still may is over, and written down, before its lease is.
const _: () = assert!(DELIVERY_CLAIM_MS + DELIVERY_MS + DELIVERY_SETTLE_MS < LEASE_MS);
// What is worn is replaced before it is full.
const _: () = assert!(EXECUTION_AGE_MAX_MS < 365 * 24 * 60 * 60 * 1_000);
const _: () = assert!(START_DEADLINES_MAX < DEADLINES_MAX);
// Its events hold what requests brought.
const _: () = assert!(EVIDENCE_DEPTH_MAX >= JSON_DEPTH_MAX + 8);
const _: () = assert!(STATE_BYTES_MAX + 4_096 < 400_000);
const _: () = assert!(HISTORY_SHOWN_MAX >= EVENTS_MAX);
// A state that still counts has a token in it that does.
const _: () = assert!(REQUEST_STATE_MS <= CONFIRM_TOKEN_MS);
