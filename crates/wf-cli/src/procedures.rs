//! The procedures of this process: the built-in ones, and a folder of files beside them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use wf_core::policy::DomainPolicyPort;
use wf_procedure::{LoadError, Procedure};

use crate::exit::Failure;

/// Procedures and where they came from.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// The procedures.
    pub(crate) procedures: Vec<Arc<Procedure>>,
    /// `built in`, or the folder beside the built-in ones.
    pub(crate) origin: String,
    /// Ids of built-in procedures that a file of the folder replaces.
    pub(crate) replaced: Vec<String>,
}

impl Loaded {
    /// No procedures: for an operator's command, which starts nothing.
    pub(crate) fn nothing() -> Self {
        Self { procedures: Vec::new(), origin: String::new(), replaced: Vec::new() }
    }

    /// The same as policies of the engine.
    pub(crate) fn policies(&self) -> Vec<Arc<dyn DomainPolicyPort>> {
        self.procedures
            .iter()
            .map(|procedure| {
                let policy: Arc<dyn DomainPolicyPort> = Arc::<Procedure>::clone(procedure);
                policy
            })
            .collect()
    }

    /// `id version n` of each, in one line.
    pub(crate) fn names(&self) -> String {
        let names: Vec<String> = self
            .procedures
            .iter()
            .map(|procedure| {
                let definition = procedure.definition();
                format!("{} version {}", definition.id, definition.version)
            })
            .collect();
        names.join(", ")
    }

    /// Says in the log which built-in procedures are hidden.
    pub(crate) fn warn(&self) {
        for id in &self.replaced {
            tracing::warn!(
                procedure = id,
                folder = self.origin,
                "a file replaces the built-in procedure"
            );
        }
    }
}

fn cannot_load(error: LoadError) -> Failure {
    match error {
        LoadError::List { path, source } => {
            Failure::failed(format!("the folder {} cannot be listed", path.display()))
                .because(source)
                .help("make the folder, or name another with procedures.dir")
        }
        LoadError::Problems(problems) => Failure::failed("the procedures cannot be used")
            .details(problems.iter().map(ToString::to_string).collect())
            .help("mend the files; `wf-cli procedure check FILE…` checks them without a server"),
    }
}

/// The built-in procedures, and those of the folder beside them. Where both have an id, the folder wins.
///
/// # Errors
/// Every problem of every file, with its place.
pub(crate) fn load(dir: Option<&Path>) -> Result<Loaded, Failure> {
    let built_in = wf_procedure::builtin().map_err(cannot_load)?.into_iter().map(Arc::new);
    let Some(dir) = dir else {
        return Ok(Loaded {
            procedures: built_in.collect(),
            origin: "built in".to_owned(),
            replaced: Vec::new(),
        });
    };
    let found = wf_procedure::load_dir(dir).map_err(cannot_load)?;
    let mut procedures: Vec<Arc<Procedure>> =
        found.into_procedures().into_iter().map(Arc::new).collect();
    let ids: BTreeSet<String> =
        procedures.iter().map(|procedure| procedure.definition().id.to_string()).collect();
    let (hidden, kept): (Vec<_>, Vec<_>) =
        built_in.partition(|procedure| ids.contains(procedure.definition().id.as_str()));
    procedures.extend(kept);
    Ok(Loaded {
        procedures,
        origin: format!("{} and built in", dir.display()),
        replaced: hidden.iter().map(|procedure| procedure.definition().id.to_string()).collect(),
    })
}
