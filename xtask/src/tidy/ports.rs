//! Ports are all required methods: a default would hide a backend that forgot one.

use crate::Workspace;
use crate::report::Violation;
use crate::rust::{Kind, Source};

/// Modules of wf-core that hold ports.
const PORT_MODULES: [&str; 2] = ["crates/wf-core/src/ports", "crates/wf-core/src/policy"];

pub(super) fn port_defaults(workspace: &Workspace) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut traits = 0_usize;
    for (path, source) in PORT_MODULES.iter().flat_map(|prefix| workspace.tree.sources(prefix)) {
        for (index, token) in source.product() {
            if token.kind != Kind::Ident || token.text != "trait" {
                continue;
            }
            let Some(open) = (index..source.tokens().len()).find(|at| source.at(*at) == "{") else {
                continue;
            };
            // A trait whose name ends in Ext is the caller's convenience over the port, not the port.
            let name = source.at(index + 1);
            if name.ends_with("Ext") {
                continue;
            }
            traits += 1;
            for (line, method) in methods_with_body(source, open) {
                let fix = format!(
                    "make it required, or move it to a `{name}Ext` with a blanket implementation"
                );
                found.push(Violation::new(
                    path,
                    line,
                    format!("{name}::{method} has a default"),
                    fix,
                ));
            }
        }
    }
    if traits == 0 {
        let fix = "name the modules of the ports in xtask/src/tidy/ports.rs as they are called now";
        found.push(Violation::new(
            "crates/wf-core/src/ports",
            0,
            "no port found, so nothing was checked",
            fix,
        ));
    }
    found
}

/// Lines and names of the functions with a body directly inside the trait whose `{` is at `open`.
fn methods_with_body(source: &Source, open: usize) -> Vec<(usize, &str)> {
    source
        .functions()
        .into_iter()
        .filter(|function| open < function.body.start && function.body.end <= source.mate(open))
        .map(|function| (function.line, function.name))
        .collect()
}
