//! Who acts: actors as the ledger and the history name them, principals as a request carries them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::TenantId;

/// Who caused something; written `user:<subject>`, `system:<name>` or `cli:<os user>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Actor {
    /// A person (or a client of their own) known to the authorization server by this subject.
    User(String),
    /// A part of this product, for example its clock or its orchestrator.
    System(String),
    /// An operator at the command line, by operating-system user.
    Cli(String),
}

/// A text that names no actor.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("an actor is user:, system: or cli: followed by 1 to 255 bytes")]
pub struct ActorError;

impl Actor {
    /// Longest subject, in bytes.
    pub const SUBJECT_BYTES_MAX: usize = 255;

    /// Reads the written form.
    ///
    /// # Errors
    /// [`ActorError`] when the prefix is unknown or the rest is empty or too long.
    pub fn parse(text: &str) -> Result<Self, ActorError> {
        let (kind, name) = text.split_once(':').ok_or(ActorError)?;
        if name.is_empty() || name.len() > Self::SUBJECT_BYTES_MAX {
            return Err(ActorError);
        }
        match kind {
            "user" => Ok(Self::User(name.to_owned())),
            "system" => Ok(Self::System(name.to_owned())),
            "cli" => Ok(Self::Cli(name.to_owned())),
            _ => Err(ActorError),
        }
    }

    /// The orchestrator that acknowledges starts.
    #[must_use]
    pub fn orchestrator() -> Self {
        Self::System("orchestrator".to_owned())
    }

    /// The clock, which says that deadlines are due.
    #[must_use]
    pub fn clock() -> Self {
        Self::System("clock".to_owned())
    }

    /// The page at which somebody who was told of a block acknowledges it.
    #[must_use]
    pub fn acknowledgements() -> Self {
        Self::System("ack".to_owned())
    }

    /// The subject, name or user without its prefix.
    #[must_use]
    pub fn subject(&self) -> &str {
        match self {
            Self::User(s) | Self::System(s) | Self::Cli(s) => s,
        }
    }

    /// True for a person, at an assistant or at the command line.
    #[must_use]
    pub fn is_person(&self) -> bool {
        match self {
            Self::User(_) | Self::Cli(_) => true,
            Self::System(_) => false,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::User(_) => "user",
            Self::System(_) => "system",
            Self::Cli(_) => "cli",
        };
        write!(f, "{kind}:{}", self.subject())
    }
}

impl FromStr for Actor {
    type Err = ActorError;
    fn from_str(text: &str) -> Result<Self, ActorError> {
        Self::parse(text)
    }
}

impl Serialize for Actor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Actor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        wf_idempotency::from_text(deserializer)
    }
}

impl TryFrom<String> for Actor {
    type Error = ActorError;
    fn try_from(text: String) -> Result<Self, ActorError> {
        Self::parse(&text)
    }
}

impl From<Actor> for String {
    fn from(a: Actor) -> Self {
        a.to_string()
    }
}

/// A person as results and history show them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// The actor behind the name.
    pub id: Actor,
    /// The name to speak, when one is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
}

impl Person {
    /// The name to speak: the display name, or the subject.
    #[must_use]
    pub fn spoken(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.id.subject())
    }
}

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes {
    /// See workflows.
    pub read: bool,
    /// Drive one's own workflows.
    pub write: bool,
    /// Read and write all workflows of the tenant, resolve blocks.
    pub supervise: bool,
}

impl Scopes {
    /// Every scope.
    pub const ALL: Self = Self { read: true, write: true, supervise: true };

    /// Supervision implies reading.
    #[must_use]
    pub fn may_read(self) -> bool {
        self.read || self.supervise
    }

    /// Supervision implies writing.
    #[must_use]
    pub fn may_write(self) -> bool {
        self.write || self.supervise
    }
}

/// Who asks: one authenticated caller of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The tenant that everything is scoped to.
    pub tenant: TenantId,
    /// Who acts.
    pub actor: Actor,
    /// The name to speak, when one is known.
    pub name: Option<String>,
    /// The OAuth client, when there is one.
    pub client_id: Option<String>,
    /// What the caller may do.
    pub scopes: Scopes,
    /// Roles that steps may ask for.
    pub roles: BTreeSet<String>,
}

impl Principal {
    /// The role that the scope to supervise stands for.
    pub const SUPERVISOR: &'static str = "supervisor";

    /// The principal of a server without authentication: `local`, with all scopes.
    #[must_use]
    pub fn local() -> Self {
        Self {
            tenant: TenantId::default_tenant(),
            actor: Actor::User("local".to_owned()),
            name: None,
            client_id: None,
            scopes: Scopes::ALL,
            roles: BTreeSet::new(),
        }
    }

    /// A part of this product, without scopes: what it may do follows from what it is.
    #[must_use]
    pub fn part(tenant: TenantId, actor: Actor) -> Self {
        let scopes = Scopes::default();
        Self { tenant, actor, name: None, client_id: None, scopes, roles: BTreeSet::new() }
    }

    /// An operator at the command line, with all scopes.
    #[must_use]
    pub fn operator(tenant: TenantId, os_user: &str) -> Self {
        Self { tenant, actor: Actor::Cli(os_user.to_owned()), ..Self::local() }
    }

    /// The caller has a role that a step asks for. Whoever may supervise is a supervisor, whatever the token calls it.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.contains(role) || (role == Self::SUPERVISOR && self.scopes.supervise)
    }

    /// The caller as history shows them.
    #[must_use]
    pub fn person(&self) -> Person {
        Person { id: self.actor.clone(), name: self.name.clone() }
    }
}
