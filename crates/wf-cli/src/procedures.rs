//! The procedures of this process: a folder of files, or the built-in ones.

use std::path::Path;
use std::sync::Arc;

use wf_core::policy::DomainPolicyPort;
use wf_procedure::Procedure;

use crate::exit::Failure;

/// Procedures and where they came from.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// The procedures.
    pub(crate) procedures: Vec<Arc<Procedure>>,
    /// `built in`, or the folder.
    pub(crate) origin: String,
}

impl Loaded {
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
}

/// Reads the folder, or the built-in procedures when there is none.
///
/// # Errors
/// Every problem of every file, with its place.
pub(crate) fn load(dir: Option<&Path>) -> Result<Loaded, Failure> {
    let Some(dir) = dir else {
        return Ok(Loaded {
            procedures: wf_procedure::builtin().into_iter().map(Arc::new).collect(),
            origin: "built in".to_owned(),
        });
    };
    let procedures = wf_procedure::load_dir(dir).map_err(|problems| {
        Failure::failed(format!(
            "the procedures in {} cannot be used",
            dir.display()
        ))
        .details(problems.iter().map(ToString::to_string).collect())
        .help("mend the files; `wf-cli procedure check FILE…` checks them without a server")
    })?;
    Ok(Loaded {
        procedures: procedures.into_iter().map(Arc::new).collect(),
        origin: dir.display().to_string(),
    })
}
