//! When things must have happened. `front` reads the body by its deadline (408), `handler` answers a call by its
//! deadline (BACKEND_UNAVAILABLE). This layer sets both and is the net below them.

use std::time::Duration;

use tokio::time::timeout_at;

use super::{Around, Inner, proceed};
use crate::exchange::{Deadlines, Request, Response};
use crate::fault::Fault;

/// How much later than `handler` the net catches.
const SLACK: Duration = Duration::from_secs(2);

/// Deadlines of everything inside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetDeadlines {
    pub(crate) body: Duration,
    pub(crate) answer: Duration,
}

impl Around for SetDeadlines {
    async fn around<S: Inner>(self, mut request: Request, next: S) -> Response {
        // A body that may take longer than the whole would be told of as a timeout of the answer.
        let deadlines = Deadlines::from_now(self.body.min(self.answer), self.answer);
        request.extensions_mut().insert(deadlines);
        let answer = timeout_at(deadlines.answer_by + SLACK, proceed(next, request));
        answer.await.unwrap_or_else(|_| Fault::Timeout.into_response())
    }
}
