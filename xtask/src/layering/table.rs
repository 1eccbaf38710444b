//! The edge table: one row per workspace member. A member without a row fails `cargo xtask layering`.
//!
//! Dev edges are listed apart: they are in no built product, but a test of the core that needed a store would
//! make a cycle, so they are limited too.

use crate::metadata::Kind;

/// A group of vendor crates; `x*` stands for every name that starts with `x`.
pub(crate) type Vendors = &'static [&'static str];

/// What one workspace member may import.
#[derive(Debug)]
pub(super) struct Member {
    /// Package name, or `examples/*` for every member under that folder without a row of its own.
    pub(super) name: &'static str,
    /// Members it may import, as normal or build dependency, optional or not.
    pub(super) normal: &'static [&'static str],
    /// Members its tests may import besides.
    pub(super) dev: &'static [&'static str],
    /// Vendor crates that it never names itself.
    pub(super) never_direct: &'static [Vendors],
    /// Vendor crates that are nowhere in what it is built from.
    pub(super) never_reached: &'static [Vendors],
}

const EXAMPLES: &str = "examples/*";

impl Member {
    /// Does this row stand for several members?
    pub(super) fn is_pattern(&self) -> bool {
        self.name == EXAMPLES
    }

    /// Is this the row of the member with this name and manifest?
    pub(super) fn matches(&self, name: &str, manifest_path: &str) -> bool {
        self.name == name || self.is_pattern() && manifest_path.contains("/examples/")
    }

    /// May this member have an edge of this kind to `target`?
    pub(super) fn may_import(&self, target: &str, kind: Kind) -> bool {
        match kind {
            Kind::Normal | Kind::Build => self.normal.contains(&target),
            Kind::Dev => self.normal.contains(&target) || self.dev.contains(&target),
        }
    }
}

/// Runtimes, transports, databases and clouds: whatever makes a crate more than a function of its input.
pub(crate) const IMPURE: Vendors = &[
    "tokio*",
    "async-std",
    "smol",
    "futures-executor",
    "mio",
    "socket2",
    "http",
    "tower*",
    "rustix",
    "uuid",
    "getrandom",
    "rand",
    "rand_core",
    "tracing-subscriber",
    "metrics*",
    "clap*",
];

/// Databases.
pub(crate) const STORES: Vendors = &["sqlx*", "rusqlite", "libsqlite3-sys"];

/// The AWS API. Cryptography named `aws-lc-*` is not meant, see `first_match`.
pub(crate) const CLOUD: Vendors = &["aws-*"];

/// HTTP servers and clients, the MCP wire, tokens.
pub(crate) const WEB: Vendors =
    &["hyper*", "http-body*", "h2", "axum*", "rmcp*", "reqwest", "jsonwebtoken"];

/// Small crates of the web that other vendors share, so that only naming them oneself is forbidden.
const WEB_TYPES: Vendors = &["http", "tower*"];

/// Rows from the bottom up.
pub(super) const TABLE: &[Member] = &[
    Member {
        name: "wf-idempotency",
        normal: &[],
        dev: &[],
        never_direct: &[IMPURE, STORES, CLOUD, WEB],
        never_reached: &[IMPURE, STORES, CLOUD, WEB],
    },
    Member {
        name: "wf-core",
        normal: &["wf-idempotency"],
        dev: &[],
        never_direct: &[IMPURE, STORES, CLOUD, WEB],
        never_reached: &[IMPURE, STORES, CLOUD, WEB],
    },
    Member {
        name: "wf-testkit",
        normal: &["wf-core", "wf-idempotency"],
        dev: &[],
        // Fixtures live in the tests of each backend, so the kit names neither a store nor a transport.
        never_direct: &[STORES, CLOUD, WEB, WEB_TYPES],
        never_reached: &[STORES, CLOUD, WEB],
    },
    Member {
        name: "wf-procedure",
        normal: &["wf-core"],
        dev: &[],
        never_direct: &[&["tokio*"], STORES, CLOUD, WEB, WEB_TYPES],
        never_reached: &[&["tokio*"], STORES, CLOUD, WEB],
    },
    Member {
        name: "wf-backend-local",
        normal: &["wf-core"],
        dev: &["wf-testkit"],
        never_direct: &[CLOUD, WEB, WEB_TYPES],
        never_reached: &[CLOUD, WEB],
    },
    Member {
        name: "wf-backend-aws",
        normal: &["wf-core"],
        dev: &["wf-testkit", "wf-procedure"],
        // The SDK itself reaches hyper; the backend never names it.
        never_direct: &[STORES, WEB, WEB_TYPES],
        never_reached: &[STORES, &["axum*", "rmcp*", "jsonwebtoken"]],
    },
    Member {
        name: "wf-mcp-http",
        normal: &["wf-core"],
        dev: &["wf-testkit", "wf-procedure"],
        never_direct: &[STORES, CLOUD],
        never_reached: &[STORES, CLOUD],
    },
    // Pages over the engine: it opens no socket, and `wf-mcp-http` does not know it.
    Member {
        name: "wf-console",
        normal: &["wf-core", "wf-idempotency"],
        dev: &["wf-testkit", "wf-procedure"],
        never_direct: &[STORES, CLOUD, WEB, &["tower*"]],
        never_reached: &[STORES, CLOUD, WEB],
    },
    Member {
        name: "wf-notify-webhook",
        normal: &["wf-core"],
        dev: &[],
        never_direct: &[STORES, CLOUD, &["axum*", "rmcp*", "reqwest", "jsonwebtoken"]],
        never_reached: &[STORES, CLOUD, &["axum*", "rmcp*", "reqwest", "jsonwebtoken"]],
    },
    // For other servers: it knows rmcp and SQLite, and nothing of workflows.
    Member {
        name: "wf-tool-ledger",
        normal: &["wf-idempotency"],
        dev: &[],
        never_direct: &[CLOUD, &["hyper*", "axum*", "reqwest", "jsonwebtoken"]],
        never_reached: &[CLOUD, &["axum*", "reqwest", "jsonwebtoken"]],
    },
    Member {
        name: "wf-cli",
        normal: &[
            "wf-core",
            "wf-idempotency",
            "wf-procedure",
            "wf-backend-local",
            "wf-backend-aws",
            "wf-mcp-http",
            "wf-console",
            "wf-notify-webhook",
        ],
        dev: &["wf-testkit"],
        // It chooses a backend; the vendor behind it stays the backend's business.
        never_direct: &[STORES, CLOUD, &["rmcp*"]],
        never_reached: &[],
    },
    // Loaded into a server by the linker, so nothing can import it.
    Member {
        name: "wf-diskfault",
        normal: &[],
        dev: &[],
        never_direct: &[IMPURE, STORES, CLOUD, WEB],
        never_reached: &[IMPURE, STORES, CLOUD, WEB],
    },
    Member {
        name: "wf-proof",
        // It looks at the store of a server that it broke; the server itself it starts as a process.
        normal: &["wf-core", "wf-idempotency", "wf-testkit", "wf-backend-local", "wf-procedure"],
        dev: &[],
        never_direct: &[CLOUD, &["axum*", "rmcp*"]],
        never_reached: &[CLOUD, &["axum*", "rmcp*"]],
    },
    Member {
        name: "xtask",
        normal: &[],
        dev: &[],
        never_direct: &[&["tokio*"], STORES, CLOUD, WEB],
        never_reached: &[&["tokio*"], STORES, CLOUD, WEB],
    },
    // What a user of the library would depend on.
    Member {
        name: EXAMPLES,
        normal: &[
            "wf-core",
            "wf-idempotency",
            "wf-procedure",
            "wf-backend-local",
            "wf-backend-aws",
            "wf-mcp-http",
            "wf-tool-ledger",
        ],
        dev: &[],
        never_direct: &[STORES, CLOUD],
        never_reached: &[],
    },
];
