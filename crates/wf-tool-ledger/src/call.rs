//! One guarded call: claim, run, record. `guard` reads the request, `ledger` has the rows.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::time::{Instant, sleep};

use crate::answers::{self, Refusal};
use crate::ledger::{Ledger, LedgerError};
use crate::policy::Attempt;
use crate::sql::{Asked, Claim, Claimed};

/// How often a running call is looked at by one that waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often an answer is tried to be recorded before that is given up.
const RECORD_TRIES: u32 = 5;
/// The pause between two tries.
const RECORD_PAUSE: Duration = Duration::from_millis(200);

type Answer = Result<CallToolResponse, ErrorData>;

/// Answers a call of a guarded tool. The work goes on when this is dropped.
pub(crate) async fn once<H: ServerHandler>(
    handler: Arc<H>,
    ledger: Ledger,
    asked: Asked,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Answer {
    // All of it in a task of its own: a client that leaves ends the waiting, never the work between claim and record.
    let work = tokio::spawn(async move {
        match claim(&ledger, asked).await {
            Ok(claim) => perform(handler, ledger, claim, request, context).await,
            Err(answer) => Ok(answer.into()),
        }
    });
    work.await.unwrap_or_else(|error| {
        tracing::error!(%error, "a guarded call ended by itself");
        Ok(Refusal::Unknown.result().into())
    })
}

/// Claims the call, waiting for one that runs; or answers what is to be said instead.
async fn claim(ledger: &Ledger, asked: Asked) -> Result<Claim, CallToolResult> {
    let give_up = Instant::now() + ledger.config.patience;
    loop {
        let refusal = match ledger.claim(asked.clone()).await {
            Ok(Claimed::Mine(claim)) => return Ok(claim),
            Ok(Claimed::Running { .. }) if Instant::now() < give_up => {
                sleep(LOOK_EVERY).await;
                continue;
            }
            Ok(Claimed::Running { left_ms }) => Refusal::Running { after_ms: left_ms },
            Ok(Claimed::Unknown { since_ms }) => {
                tracing::warn!(
                    since_ms,
                    tool = asked.operation,
                    "the outcome of a call is unknown"
                );
                Refusal::Unknown
            }
            Ok(Claimed::Done(entry)) => match answers::again(&entry) {
                Some(answer) => return Err(answer),
                None => {
                    tracing::error!(tool = asked.operation, "a stored answer cannot be read");
                    Refusal::Unknown
                }
            },
            Ok(Claimed::Other { operation, created_at_ms }) => {
                tracing::info!(created_at_ms, operation, "a key was used for another call");
                Refusal::Other { operation }
            }
            Err(error) => {
                report(&error, "a call cannot be claimed");
                Refusal::Ledger
            }
        };
        return Err(refusal.result());
    }
}

async fn perform<H: ServerHandler>(
    handler: Arc<H>,
    ledger: Ledger,
    claim: Claim,
    request: CallToolRequestParams,
    mut context: RequestContext<RoleServer>,
) -> Answer {
    let attempt = Attempt::new(&claim.effect_key, claim.attempt);
    context.extensions.insert(attempt.clone());
    let mut effect = tokio::spawn(async move { handler.call_tool(request, context).await });
    let beat = ledger.config.lease / 3;
    let answer = loop {
        tokio::select! {
            answer = &mut effect => break answer,
            () = sleep(beat) => {
                if let Err(error) = ledger.renew(claim.clone()).await {
                    report(&error, "a claim cannot be renewed");
                }
            }
        }
    };
    match answer {
        Ok(_) if attempt.is_in_doubt() => in_doubt(&ledger, claim).await,
        Ok(Ok(CallToolResponse::Complete(result))) if result.is_error != Some(true) => {
            done(&ledger, claim, result).await
        }
        // Nothing was done, says the tool.
        Ok(
            answer @ (Ok(CallToolResponse::Complete(_) | CallToolResponse::InputRequired(_))
            | Err(_)),
        ) => {
            if let Err(error) = ledger.release(claim).await {
                report(&error, "a claim cannot be taken back; it ends with its lease");
            }
            answer
        }
        Ok(Ok(_)) => {
            tracing::error!("a guarded tool must answer by itself, not with a task");
            in_doubt(&ledger, claim).await
        }
        Err(error) => {
            tracing::error!(%error, "a guarded tool panicked");
            in_doubt(&ledger, claim).await
        }
    }
}

async fn in_doubt(ledger: &Ledger, claim: Claim) -> Answer {
    if let Err(error) = ledger.doubt(claim).await {
        report(&error, "a doubt cannot be recorded; the claim ends with its lease");
    }
    Ok(Refusal::Unknown.result().into())
}

/// The effect happened. Its answer is given even if it cannot be recorded: it is true, and who has it does not ask again.
async fn done(ledger: &Ledger, claim: Claim, result: CallToolResult) -> Answer {
    let text = answers::stored(&result);
    for tried in 1..=RECORD_TRIES {
        match ledger.record(claim.clone(), text.clone()).await {
            Ok(true) => break,
            Ok(false) => {
                tracing::error!("a call ran again while it still ran: its lease was over");
                break;
            }
            Err(error) if tried == RECORD_TRIES => {
                report(&error, "what a call did cannot be recorded");
            }
            Err(error) => {
                tracing::warn!(%error, "what a call did is not recorded yet");
                sleep(RECORD_PAUSE).await;
            }
        }
    }
    Ok(result.into())
}

fn report(error: &LedgerError, what: &'static str) {
    let source = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(%error, source, what, "the ledger does not work");
}
