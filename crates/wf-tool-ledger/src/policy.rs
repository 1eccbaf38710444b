//! What the author of a tool decides, and what the tool is told of the call it is in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What becomes of a call that was begun and never recorded: its process died, or the tool was in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// At most once: it is never run again. Whoever asks again is told that the outcome is unknown, and has to look. For
    /// effects that are worse twice than not at all.
    Refuse,
    /// At least once: whoever asks again makes it run again, with the same effect key. For effects that may happen twice,
    /// or that the far side does once for each key.
    Repeat,
}

/// One run of a guarded tool. In the extensions of the tool's request context.
///
/// Laws for a tool: an answer that is no error says that the effect happened, and is stored. An error, of the tool or of
/// the protocol, says that **nothing** happened, so the same key may be used again, with other arguments too. A tool that
/// cannot say either calls [`in_doubt`](Self::in_doubt) before it returns.
#[derive(Debug, Clone)]
pub struct Attempt {
    effect_key: Arc<str>,
    number: u32,
    doubt: Arc<AtomicBool>,
}

impl Attempt {
    pub(crate) fn new(effect_key: &str, number: u32) -> Self {
        Self { effect_key: effect_key.into(), number, doubt: Arc::default() }
    }

    /// 32 hexadecimal digits, the same in every run of one call and in no other call. Hand it to the far side: as its
    /// idempotency key, a message id, a file name.
    #[must_use]
    pub fn effect_key(&self) -> &str {
        &self.effect_key
    }

    /// Counts the runs of this call from 1. Above 1, an earlier one may have had its effect.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Says that the tool does not know whether the effect happened, whatever it answers: a connection broke after the
    /// request was sent, for example. The caller is told so, and [`Unfinished`] decides about the next call.
    pub fn in_doubt(&self) {
        self.doubt.store(true, Ordering::Release);
    }

    pub(crate) fn is_in_doubt(&self) -> bool {
        self.doubt.load(Ordering::Acquire)
    }
}
