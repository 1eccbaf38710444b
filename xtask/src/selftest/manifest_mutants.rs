//! Mutants of the tidy checks over manifests, and over the files that belong to a crate as a whole.

use super::memory::{Mutant, replace};
use super::shape_mutants::{edited, removed};

/// All of them.
pub(super) fn mutants() -> Vec<Mutant> {
    let mut all = member_mutants();
    all.extend(publishing_mutants());
    all
}

fn member_mutants() -> Vec<Mutant> {
    const CLI: &str = "crates/wf-cli/Cargo.toml";
    const UNSAFE: &str = "crates/wf-diskfault/Cargo.toml";
    let mut all = vec![
        edited(
            "manifests",
            "a member without the workspace lints",
            CLI,
            "[lints]\nworkspace = true",
            "[lints]\nworkspace = false",
        ),
        edited("manifests", "a member without a description", CLI, "description = ", "homepage = "),
        removed("manifests", "a member without a README", "crates/wf-idempotency/README.md"),
        edited(
            "manifests",
            "a second member with lints of its own",
            CLI,
            "[lints]\nworkspace = true",
            "[lints.rust]\nunsafe_code = \"allow\"",
        ),
        edited(
            "manifests",
            "a lint that the exception does not repeat",
            UNSAFE,
            "unwrap_used = \"deny\"\n",
            "",
        ),
        edited(
            "manifests",
            "unsafe blocks that nobody explains",
            UNSAFE,
            "undocumented_unsafe_blocks = \"deny\"",
            "undocumented_unsafe_blocks = \"allow\"",
        ),
    ];
    for member in crate::layering::PURE {
        for ban in
            ["time::SystemTime::now", "env::var", "fs::File", "net::TcpStream", "process::Command"]
        {
            let path = format!("crates/{member}/clippy.toml");
            all.push(Mutant::new(
                "pure-clippy",
                format!("{path} without {ban}"),
                move |workspace| {
                    replace(workspace, &path, &format!("\"std::{ban}\""), "\"std::mem::drop\"")
                },
            ));
        }
    }
    all
}

fn publishing_mutants() -> Vec<Mutant> {
    const CHECK: &str = "publishable";
    const LOCAL: &str = "crates/wf-backend-local/Cargo.toml";
    const README: &str = "crates/wf-backend-local/README.md";
    vec![
        edited(
            CHECK,
            "an example that would be published",
            "examples/rmcp_client/Cargo.toml",
            "publish = false",
            "",
        ),
        edited(
            CHECK,
            "a version of its own",
            LOCAL,
            "version.workspace = true",
            "version = \"9.9.9\"",
        ),
        edited(
            CHECK,
            "a category that the registry does not know",
            LOCAL,
            "\"database\"",
            "\"databases\"",
        ),
        edited(CHECK, "a package without its licence", LOCAL, ", \"/LICENSE\"", ""),
        edited(
            CHECK,
            "a path without a version",
            "Cargo.toml",
            "\"crates/wf-core\", version",
            "\"crates/wf-core\", rename",
        ),
        edited(
            CHECK,
            "a dependency on a crate that is not published",
            LOCAL,
            "\nwf-core = { workspace = true }",
            "\nwf-proof = { workspace = true }",
        ),
        edited(CHECK, "an example that no test compiles", README, "```rust", "```rust,ignore"),
        edited(CHECK, "a feature that nobody reads about", README, "`failpoints`", "`elsewhere`"),
        removed(CHECK, "a crate without its licence", "crates/wf-core/LICENSE"),
    ]
}
