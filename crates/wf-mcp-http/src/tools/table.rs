//! The table of tools, in the order in which they are listed. What a parameter may be is said here once.

use wf_core::limits::{FREE_TEXT_CHARS_MAX, KEY_CHARS_MAX, QUERY_CHARS_MAX, VALUE_CHARS_MAX};

use crate::wire::arguments::{self, Build};

/// One tool.
#[derive(Debug)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    /// Writes nothing.
    pub(crate) reads_only: bool,
    /// Ends or overrides something that cannot be brought back.
    pub(crate) destroys: bool,
    pub(crate) needs: Needs,
    pub(crate) params: &'static [Param],
    /// Makes the typed call of read arguments.
    pub(crate) build: Build,
}

/// What a caller must be allowed for a tool to be of use. Each is a scope of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// To see workflows: `workflow:read`.
    Read,
    /// To drive one's own: `workflow:write`.
    Write,
    /// To decide on those of others: `workflow:supervise`.
    Supervise,
}

/// One parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    pub(crate) kind: Kind,
    pub(crate) description: &'static str,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Text of at most so many characters.
    Text { max: usize },
    /// One of these words.
    Word(&'static [&'static str]),
    /// An object of names to texts.
    Names,
    /// Any object.
    Object,
}

/// Longest identifier, in characters.
const ID: usize = 128;
/// Longest confirm token, in characters.
const TOKEN: usize = 1_000;

const fn text(name: &'static str, max: usize, description: &'static str) -> Param {
    Param { name, required: false, kind: Kind::Text { max }, description }
}

const fn required(param: Param) -> Param {
    Param { required: true, ..param }
}

const fn word(
    name: &'static str,
    words: &'static [&'static str],
    description: &'static str,
) -> Param {
    Param { name, required: false, kind: Kind::Word(words), description }
}

const WORKFLOW: Param = text("workflow_id", ID, "workflow.id of an earlier result.");
const STEP: Param = text("step_id", ID, "step.id of an earlier result.");
const VALUE: Param = text(
    "value",
    VALUE_CHARS_MAX,
    "Reading, answer or choice id as the person gave it, as a string with all digits. Never invented, rounded or converted.",
);
const UNIT: Param = text("unit", VALUE_CHARS_MAX, "Unit as said; omit if none was said.");
const NOTE: Param = text("note", FREE_TEXT_CHARS_MAX, "Remark of the person to keep.");
const REASON: Param =
    text("reason_code", ID, "Why: a code of workflow.reasons that fits what the person said.");
const TOKEN_PARAM: Param = text(
    "confirm_token",
    TOKEN,
    "confirm.token, only after the person said yes to confirm.read_back.",
);
const KEY: Param = text(
    "idempotency_key",
    KEY_CHARS_MAX,
    "next_idempotency_key of the last result. To repeat a call, send its old key.",
);

/// All tools, in the order in which they are listed.
pub(crate) const TOOLS: &[Spec] = &[
    Spec {
        name: "find_work",
        title: "Find work",
        description: "Begin here. Finds what the person has open (mine), what is blocked, and what may be started (available) \
            with what each start needs. Use it for \"what is there to do\", \"continue my job\", or to look something up \
            by words or asset. Answers a list of candidates, best first, or none.",
        reads_only: true,
        destroys: false,
        needs: Needs::Read,
        params: &[
            text(
                "query",
                QUERY_CHARS_MAX,
                "Words of a title, label or asset; omit to see everything.",
            ),
            text(
                "asset_id",
                VALUE_CHARS_MAX,
                "Asset (machine, device, object) as said; adds its last completed workflow.",
            ),
            word(
                "scope",
                &["mine", "available", "blocked"],
                "mine: open or in progress; available: can be started; blocked: waits for a decision.",
            ),
        ],
        build: arguments::find_work,
    },
    Spec {
        name: "get_status",
        title: "Get status",
        description: "Tells where a workflow stands: the step to ask next, progress, open blocks, what was recorded last. Use \
            it to resume (\"where was I\"), after an interruption, and before a decision. Without ids it takes the \
            person's open workflow, or asks which one.",
        reads_only: true,
        destroys: false,
        needs: Needs::Read,
        params: &[
            WORKFLOW,
            text("asset_id", VALUE_CHARS_MAX, "Asset as said, instead of a workflow."),
            word(
                "detail",
                &["brief", "full"],
                "full adds the history; brief (default) is enough to go on.",
            ),
        ],
        build: arguments::get_status,
    },
    Spec {
        name: "start_workflow",
        title: "Start a workflow",
        description: "Starts (begins, opens) a procedure on its assets and answers with the first step. The person's own open \
            workflow of the same start is joined instead. If something is missing it starts nothing and answers \
            needs_input with one question.",
        reads_only: false,
        destroys: false,
        needs: Needs::Write,
        params: &[
            required(text("procedure_id", ID, "candidates[].procedure_id of find_work.")),
            Param {
                name: "assets",
                required: false,
                kind: Kind::Names,
                description: "Asset as said by role, for the roles of needs.assets: {\"<role>\": \"<asset>\"}.",
            },
            Param {
                name: "inputs",
                required: false,
                kind: Kind::Object,
                description: "Values by name, for the names of needs.inputs.",
            },
            KEY,
        ],
        build: arguments::start_workflow,
    },
    Spec {
        name: "submit_step",
        title: "Submit a step",
        description: "Records (enters, answers, measures, confirms) what the person said for the open step and answers with \
            the next one. needs_confirmation means nothing is recorded yet: read back, then send the same call with \
            confirm_token. A value outside the limits may block the workflow.",
        reads_only: false,
        destroys: false,
        needs: Needs::Write,
        params: &[required(WORKFLOW), required(STEP), VALUE, UNIT, NOTE, TOKEN_PARAM, KEY],
        build: arguments::submit_step,
    },
    Spec {
        name: "check_value",
        title: "Check a value",
        description: "Tells what recording a value would lead to (fine, out of range, blocks, wrong unit) and records nothing. \
            Use it when the person asks whether a value is all right.",
        reads_only: true,
        destroys: false,
        needs: Needs::Read,
        params: &[required(WORKFLOW), required(STEP), required(VALUE), UNIT],
        build: arguments::check_value,
    },
    Spec {
        name: "correct_step",
        title: "Correct a step",
        description: "Replaces (changes, fixes) a value that was recorded before, when the person says it was wrong. The old \
            one stays in the history, and later steps that used it open again. Judged like submit_step, read-back included.",
        reads_only: false,
        destroys: false,
        needs: Needs::Write,
        params: &[
            required(WORKFLOW),
            required(text("step_id", ID, "The recorded step, for example last_recorded.step_id.")),
            required(VALUE),
            required(REASON),
            UNIT,
            NOTE,
            TOKEN_PARAM,
            KEY,
        ],
        build: arguments::correct_step,
    },
    Spec {
        name: "skip_step",
        title: "Skip a step",
        description: "Leaves out (skips, passes over) the open step because the person asks to. step.skip says whether that is \
            allowed and needs a reason.",
        reads_only: false,
        destroys: false,
        needs: Needs::Write,
        params: &[required(WORKFLOW), required(STEP), REASON, NOTE, KEY],
        build: arguments::skip_step,
    },
    Spec {
        name: "report_problem",
        title: "Report a problem",
        description: "Reports (raises, escalates) that something is wrong. low and high block the workflow until somebody \
            decides; note only writes it down. Anybody may report on any workflow they see.",
        reads_only: false,
        destroys: false,
        needs: Needs::Write,
        params: &[
            required(WORKFLOW),
            required(text("summary", FREE_TEXT_CHARS_MAX, "What is wrong, in the person's words.")),
            word(
                "severity",
                &["note", "low", "high"],
                "note: remark, no block; low: block (default); high: urgent block.",
            ),
            text("step_id", ID, "The step it is about, if any."),
            KEY,
        ],
        build: arguments::report_problem,
    },
    Spec {
        name: "transfer_workflow",
        title: "Transfer a workflow",
        description: "Hands work over: its owner offers (offer, withdraw), the other takes or declines (accept, decline). \
            take_over relieves a holder who is silent too long, or gets a lost asset back.",
        reads_only: false,
        destroys: true,
        needs: Needs::Write,
        params: &[
            required(WORKFLOW),
            required(word(
                "action",
                &["offer", "withdraw", "decline", "accept", "take_over"],
                "What the person asks for.",
            )),
            text(
                "to",
                VALUE_CHARS_MAX,
                "offer: name as said, or candidates[].to; omit for anybody.",
            ),
            REASON,
            KEY,
        ],
        build: arguments::transfer_workflow,
    },
    Spec {
        name: "finish_workflow",
        title: "Finish a workflow",
        description: "Ends (completes, closes, abandons) a workflow for good and frees its assets. Only when the person says so \
            and no required step is open; abandoned gives up at any time and is confirmed once.",
        reads_only: false,
        destroys: true,
        needs: Needs::Write,
        params: &[
            required(WORKFLOW),
            required(text("result", ID, "An id of workflow.results.")),
            NOTE,
            TOKEN_PARAM,
            KEY,
        ],
        build: arguments::finish_workflow,
    },
    Spec {
        name: "resolve_block",
        title: "Resolve a block",
        description: "For supervisors: decides (approves, releases, rejects) on an open block. By the decision the workflow goes \
            on, asks the step again, or is abandoned.",
        reads_only: false,
        destroys: true,
        needs: Needs::Supervise,
        params: &[
            required(WORKFLOW),
            required(text("block_id", ID, "blocks[].id of an earlier result.")),
            required(text("decision", ID, "An id of blocks[].decisions.")),
            required(text("comment", FREE_TEXT_CHARS_MAX, "Why, in the decider's words.")),
            KEY,
        ],
        build: arguments::resolve_block,
    },
];
