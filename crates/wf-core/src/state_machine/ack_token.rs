//! Acknowledgement tokens: what the link in an escalation carries. Who has one was told of the block.
//!
//! `at1.<claims, base64url>.<HMAC-SHA256, base64url>`; the claims are a JSON array of texts. Keys are the store's, so any
//! replica and any restart accepts a token; nothing is stored. The nonce is the ledger key of the acknowledgement, so that
//! a link acts once however often it is used. Sibling: `token`, for read-backs.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::limits::{ACK_TOKEN_BYTES_MAX, ACK_TOKEN_MS};
use crate::models::{BlockId, TenantId, Timestamp, WorkflowId};

use super::command::Secret;

/// What a token says. Every part counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckClaims {
    /// The tenant.
    pub tenant: TenantId,
    /// The workflow.
    pub workflow_id: WorkflowId,
    /// The block.
    pub block_id: BlockId,
    /// Who was told.
    pub recipient: String,
    /// Until when the token counts.
    pub expires_at: Timestamp,
    /// Unique among the messages of the store: `ack/<workflow id>/<seq of the event that tells>`.
    pub nonce: String,
}

impl AckClaims {
    /// What a message tells that event `seq` sends at `now`.
    #[must_use]
    pub fn new(
        (tenant, workflow_id): (&TenantId, &WorkflowId),
        block_id: &BlockId,
        recipient: &str,
        (seq, at): (u64, Timestamp),
    ) -> Self {
        Self {
            tenant: tenant.clone(),
            workflow_id: workflow_id.clone(),
            block_id: block_id.clone(),
            recipient: recipient.to_owned(),
            expires_at: at.plus_ms(ACK_TOKEN_MS),
            nonce: format!("ack/{workflow_id}/{seq}"),
        }
    }

    /// When the event happened that tells of the block.
    #[must_use]
    pub fn told_at(&self) -> Timestamp {
        self.expires_at.plus_ms(-ACK_TOKEN_MS)
    }

    /// The token under the newest key; `None` without a key.
    #[must_use]
    pub fn sign(&self, secrets: &[Secret]) -> Option<String> {
        let claims = [
            self.tenant.as_str(),
            self.workflow_id.as_str(),
            self.block_id.as_str(),
            &self.recipient,
            &self.expires_at.as_ms().to_string(),
            &self.nonce,
        ];
        let claims = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims).ok()?);
        let code = mac(secrets.first()?, &claims)?.finalize().into_bytes();
        Some(format!("at1.{claims}.{}", URL_SAFE_NO_PAD.encode(code)))
    }

    /// What `token` says, when it was signed under a current key and has not expired.
    #[must_use]
    pub fn verify(secrets: &[Secret], token: &str, now: Timestamp) -> Option<Self> {
        if token.len() > ACK_TOKEN_BYTES_MAX {
            return None;
        }
        let (claims, code) = token.strip_prefix("at1.")?.split_once('.')?;
        let code = URL_SAFE_NO_PAD.decode(code).ok()?;
        let signed = |secret| mac(secret, claims).is_some_and(|m| m.verify_slice(&code).is_ok());
        if !secrets.iter().any(signed) {
            return None;
        }
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        let [tenant, workflow, block, recipient, expiry, nonce]: [String; 6] =
            serde_json::from_slice(&claims).ok()?;
        let expires_at = Timestamp::from_ms(expiry.parse().ok()?);
        (expires_at > now).then_some(Self {
            tenant: TenantId::parse(&tenant).ok()?,
            workflow_id: WorkflowId::parse(&workflow).ok()?,
            block_id: BlockId::parse(&block).ok()?,
            recipient,
            expires_at,
            nonce,
        })
    }
}

fn mac(secret: &Secret, claims: &str) -> Option<Hmac<Sha256>> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.expose()).ok()?;
    // No code over a read-back can be one over an acknowledgement: that one begins with a length, eight bytes.
    mac.update(b"checkpoint/ack/v1\0");
    mac.update(claims.as_bytes());
    Some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> AckClaims {
        let tenant = TenantId::parse("t").expect("a tenant");
        let workflow = WorkflowId::parse("w").expect("a workflow");
        AckClaims::new((&tenant, &workflow), &BlockId::of_seq(4), "duty", (4, at(0)))
    }

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_ms(1_000_000 + ms)
    }

    #[test]
    fn a_token_says_what_was_signed_until_it_expires() {
        let keys = [Secret::new(vec![1; 32])];
        let token = claims().sign(&keys).expect("a key");
        assert_eq!(AckClaims::verify(&keys, &token, at(0)), Some(claims()));
        assert_eq!(AckClaims::verify(&keys, &token, at(ACK_TOKEN_MS - 1)), Some(claims()));
        assert_eq!(AckClaims::verify(&keys, &token, at(ACK_TOKEN_MS)), None, "expired");
        assert_eq!(claims().told_at(), at(0));
        let old = [Secret::new(vec![2; 32]), Secret::new(vec![1; 32])];
        assert_eq!(AckClaims::verify(&old, &token, at(0)), Some(claims()), "the key before");
        assert_eq!(AckClaims::verify(&old[..1], &token, at(0)), None, "a foreign key");
    }

    #[test]
    fn nothing_of_a_token_can_be_changed() {
        let keys = [Secret::new(vec![1; 32])];
        let token = claims().sign(&keys).expect("a key");
        for at_byte in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at_byte] = if bytes[at_byte] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).expect("ascii");
            assert_eq!(AckClaims::verify(&keys, &changed, at(0)), None, "byte {at_byte}");
        }
        for junk in ["", "at1", "at1.", "at1..", "ct1.e30.AA", &"x".repeat(100_000)] {
            assert_eq!(AckClaims::verify(&keys, junk, at(0)), None);
        }
    }
}
