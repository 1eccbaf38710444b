//! Copies of stores between backends: which one is read and which one is made.

use wf_core::engine::copy::{CopyReport, Pace, Stage};
use wf_core::ports::copy::{CopyError, CopySourcePort, CopyTargetPort};

use super::{aws, local};
use crate::config::backend::BackendConfig;
use crate::exit::{Exit, Failure};

/// Makes a store at `to` of the one at `from`, or goes on with that; `page` is how many records go at once.
///
/// # Errors
/// As the stores say; a source in use and a target with something in it are among it.
pub(crate) async fn copy(
    from: &BackendConfig,
    to: &BackendConfig,
    page: u32,
    progress: &mut (dyn FnMut(Stage, u64) + Send),
) -> Result<CopyReport, Failure> {
    let source = source(from).await?;
    let target = target(to).await?;
    let pace = Pace { page };
    wf_core::engine::copy::copy(source.as_ref(), target.as_ref(), pace, progress)
        .await
        .map_err(cannot_copy)
}

async fn source(backend: &BackendConfig) -> Result<Box<dyn CopySourcePort>, Failure> {
    Ok(match backend {
        BackendConfig::Local { path } => local::copy_source(path).await?,
        BackendConfig::Aws(table) => aws::copy_source(table).await?,
    })
}

async fn target(backend: &BackendConfig) -> Result<Box<dyn CopyTargetPort>, Failure> {
    Ok(match backend {
        BackendConfig::Local { path } => local::copy_target(path).await?,
        BackendConfig::Aws(table) => aws::copy_target(table).await?,
    })
}

fn cannot_copy(error: CopyError) -> Failure {
    match error {
        CopyError::Refused { message } => Failure::failed(message),
        CopyError::Unavailable { side, source } => {
            Failure::unavailable(format!("the {side} of the copy did not answer"))
                .because(source)
                .help("run the same command again: it goes on where it stopped")
        }
        CopyError::Corrupt { .. } => Failure::new(Exit::Damage, error.to_string())
            .help("`wf-cli workflow verify` on the source says more; nothing in it was changed"),
    }
}
