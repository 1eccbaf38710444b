//! Acknowledging a block with the token of a link: what the link is about, and the acknowledgement.
//!
//! Whoever has the token was told; nobody else is asked who they are. The transport shows the page.

use serde_json::{Map, Value};
use wf_idempotency::IdempotencyKey;

use crate::errors::Retry;
use crate::models::{Actor, Principal, Timestamp, Workflow};
use crate::policy::BlockSource;
use crate::state_machine::ack_token::AckClaims;

use super::Engine;
use super::call::{Call, CallMeta, Request};

/// The operation's name in the ledger.
const OPERATION: &str = "acknowledge_block";

/// What a link is about, in the words of the server's language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckNotice {
    /// What the work is called.
    pub label: String,
    /// What is asked of who decides on the block; absent when the definition is not known here.
    pub question: Option<String>,
    /// The words of who reported the problem.
    pub summary: Option<String>,
    /// Who was told with this link.
    pub recipient: String,
    /// Since when work is stopped, for example `14:05`.
    pub since: String,
    /// Where the block stands.
    pub stand: AckStand,
}

/// Where the block of a link stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AckStand {
    /// Nobody has acknowledged it.
    Waiting,
    /// Somebody has.
    Acknowledged {
        /// Who.
        by: String,
        /// When, for example `14:05`.
        at: String,
    },
    /// It is over.
    Over,
}

/// Why a link shows nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AckRefusal {
    /// It is none of ours, or has expired, or what it is about is gone.
    #[error("the link does not count")]
    Unknown,
    /// The store did not answer.
    #[error("the store did not answer")]
    Unavailable,
}

impl Engine {
    /// What the link with this token is about. Changes nothing.
    ///
    /// # Errors
    /// [`AckRefusal`]; one answer for every token that does not count.
    pub async fn ack_notice(&self, token: &str) -> Result<AckNotice, AckRefusal> {
        let (claims, workflow) = self.claimed(token).await?;
        self.notice(&claims, &workflow).await
    }

    /// Acknowledges the block of the link with this token, once however often it is called; answers how it stands then.
    ///
    /// # Errors
    /// [`AckRefusal`]; after [`AckRefusal::Unavailable`] the same again is right.
    pub async fn acknowledge(&self, token: &str) -> Result<AckNotice, AckRefusal> {
        let (claims, _) = self.claimed(token).await?;
        let key = IdempotencyKey::parse(&claims.nonce).map_err(|_| AckRefusal::Unknown)?;
        let principal = Principal {
            name: Some(claims.recipient.clone()),
            ..Principal::part(claims.tenant.clone(), Actor::acknowledgements())
        };
        let reply = self.execute(&principal, &call(&claims, key)).await;
        // A block that is over in the meantime is shown as it stands; what can be tried again is said to be so.
        if reply.error.is_some_and(|code| code.retry() == Retry::SameCall) {
            return Err(AckRefusal::Unavailable);
        }
        self.ack_notice(token).await
    }

    async fn claimed(&self, token: &str) -> Result<(AckClaims, Workflow), AckRefusal> {
        let now = self.parts.clock.now();
        let claims = AckClaims::verify(&self.signing.keys(), token, now);
        let claims = claims.ok_or(AckRefusal::Unknown)?;
        let by = Principal::part(claims.tenant.clone(), Actor::acknowledgements());
        let read = self.workflow(&by, &claims.workflow_id).await;
        let workflow = read.map_err(|_| AckRefusal::Unavailable)?.ok_or(AckRefusal::Unknown)?;
        // The id of a block is a place in a history. After a restore another block may have the one of a block of the lost
        // time; the link to that one is older than the block.
        if workflow.block(&claims.block_id).is_some_and(|block| claims.told_at() < block.at) {
            return Err(AckRefusal::Unknown);
        }
        Ok((claims, workflow))
    }

    async fn notice(&self, claims: &AckClaims, w: &Workflow) -> Result<AckNotice, AckRefusal> {
        let policy = self.pinned(w).await.map_err(|_| AckRefusal::Unavailable)?;
        let meta = CallMeta::default();
        let frame = self.frame(policy.as_deref(), &meta);
        let time = |at: Timestamp| frame.words.time(at);
        let block = w.block(&claims.block_id);
        let question = block.zip(policy.as_ref()).map(|(block, policy)| {
            let source = BlockSource { step_id: block.step_id.as_ref(), reported: block.reported };
            frame.words.text(&policy.block_rule(source).question).to_owned()
        });
        let stand = match block {
            None => AckStand::Over,
            Some(block) => match &block.acknowledged_by {
                None => AckStand::Waiting,
                Some(by) => AckStand::Acknowledged {
                    by: by.spoken().to_owned(),
                    at: time(block.acknowledged_at.unwrap_or(w.updated_at)),
                },
            },
        };
        Ok(AckNotice {
            label: frame.words.text(&w.label).to_owned(),
            question,
            summary: block.and_then(|block| block.summary.clone()),
            recipient: claims.recipient.clone(),
            since: time(block.map_or(w.updated_at, |block| block.at)),
            stand,
        })
    }
}

fn call(claims: &AckClaims, key: IdempotencyKey) -> Call {
    let (workflow_id, block_id) = (claims.workflow_id.clone(), claims.block_id.clone());
    let arguments = Map::from_iter([
        ("workflow_id".to_owned(), Value::from(workflow_id.as_str())),
        ("block_id".to_owned(), Value::from(block_id.as_str())),
    ]);
    Call {
        operation: OPERATION,
        arguments,
        key: Some(key),
        request: Request::AcknowledgeBlock { workflow_id, block_id },
        meta: CallMeta::default(),
    }
}
