//! What emulators of Step Functions do otherwise than Step Functions, as far as we rely on it. The only list of it: each
//! entry is a rule of [`crate::law`] that an emulator breaks, and words from what it answers instead. An entry that no
//! longer holds turns the test red, and so does a difference that is not listed.
//!
//! | what is shown | where |
//! |---|---|
//! | every rule, in virtual time | the double ([`wf_testkit::step_functions`]) |
//! | the state machine, starts, tokens, stops, writes to the table | ministack, but for what is listed here |
//! | a task that times out marks the deadline | moto; nothing else is asked of it, since its tables lose updates |

/// Rules that ministack 1.5 breaks, and what is seen instead.
pub(crate) const MINISTACK: [(&str, &str); 7] = [
    ("a_start_that_comes_again_is_the_same", "ExecutionAlreadyExists"),
    ("a_text_that_is_no_token_is_invalid", "TaskDoesNotExist"),
    ("the_token_of_a_stopped_execution_is_dead", "nothing"),
    ("a_time_out_marks_what_is_due", "not in time"),
    ("names_are_checked", "nothing"),
    ("inputs_are_checked", "nothing"),
    ("a_deleted_state_machine_starts_nothing", "StateMachineDoesNotExist"),
];

/// Rules that ministack breaks now and then, by chance of its threads: not asked of it.
pub(crate) const MINISTACK_BY_CHANCE: [(&str, &str); 2] = [
    ("of_those_who_answer_a_token_one_succeeds", "two of eight at once"),
    ("a_settled_token_has_timed_out", "TaskDoesNotExist, or a success a moment after the first"),
];

/// Rules that are asked of moto 5.2.
pub(crate) const MOTO: [&str; 1] = ["a_time_out_marks_what_is_due"];
