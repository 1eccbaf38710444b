//! `wf-cli migrate`, `backup`, `restore` and `restored`: the life of the database file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::compose;
use crate::config::ConfigArgs;
use crate::exit::Failure;
use crate::output::Output;

/// Bring the database to the schema of this build
#[derive(Debug, Args)]
#[command(after_help = "`serve` does so too. Run it by itself to see it happen before servers start.
A database that is newer than this build is refused and stays as it is.")]
pub(crate) struct MigrateArgs {}

/// Write a consistent copy of the database, while servers run
#[derive(Debug, Args)]
#[command(after_help = "Example:
  wf-cli backup /backup/checkpoint-$(date +%F).db")]
pub(crate) struct BackupArgs {
    /// Where to write it; must not exist yet
    file: PathBuf,
}

/// Replace the database with a backup
#[derive(Debug, Args)]
#[command(after_help = "Refused while a server has the database. The store gets a new id and every fence grows by 1,000,000, so that
nothing handed out after the backup was taken counts any more.

Example:
  wf-cli restore /backup/checkpoint-2026-11-29.db --config checkpoint.toml")]
pub(crate) struct RestoreArgs {
    /// The backup
    file: PathBuf,
    /// Replace a database that is there
    #[arg(long)]
    force: bool,
}

/// Mark a database that was recovered by other means as restored
#[derive(Debug, Args)]
#[command(after_help = "Run it once after a point-in-time recovery of the disk or the file, before a server starts: it does to the
recovered database what `restore` does to a backup.")]
pub(crate) struct RestoredArgs {}

/// Runs `migrate`.
pub(crate) async fn migrate(config: &ConfigArgs, output: Output) -> Result<(), Failure> {
    let bar = output.progress("migrating");
    let done = compose::migrate(&config.load()?).await;
    bar.finish_and_clear();
    let (path, migrated) = done?;
    if output.is_json() {
        return output.document(&json!({
            "database": path.to_string_lossy(),
            "from": migrated.from,
            "to": migrated.to,
        }));
    }
    if migrated.from == migrated.to {
        output.line(&format!(
            "{} has schema version {} already",
            path.display(),
            migrated.to
        ))
    } else {
        output.line(&format!(
            "{} went from schema version {} to {}",
            path.display(),
            migrated.from,
            migrated.to
        ))
    }
}

/// Runs `backup`.
pub(crate) async fn backup(
    args: &BackupArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let file = absolute(&args.file)?;
    if file.exists() {
        return Err(Failure::failed(format!("{} is there already", file.display()))
            .help("name a new file, or remove this one"));
    }
    let backend = compose::open_existing(&config.load()?).await?;
    let bar = output.progress("copying");
    let done = backend.backup(&file).await;
    bar.finish_and_clear();
    let source = backend.path().to_owned();
    backend.close().await;
    done?;
    let bytes = std::fs::metadata(&file).map_or(0, |found| found.len());
    if output.is_json() {
        return output.document(&json!({
            "database": source.to_string_lossy(),
            "backup": file.to_string_lossy(),
            "bytes": bytes,
        }));
    }
    output.line(&format!(
        "{} is a copy of {} ({bytes} bytes)",
        file.display(),
        source.display()
    ))
}

/// Runs `restore`.
pub(crate) async fn restore(
    args: &RestoreArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let config = config.load()?;
    let from = absolute(&args.file)?;
    let to = absolute(&config.database)?;
    if from == to {
        return Err(Failure::usage("the backup is the database itself")
            .help("`wf-cli restored` marks a recovered database as restored"));
    }
    if to.exists() && !args.force {
        return Err(Failure::failed(format!("{} is there already", to.display()))
            .help("move it away, or say --force to replace it with the backup"));
    }
    let bar = output.progress("restoring");
    let done = compose::restore(&from, &config).await;
    bar.finish_and_clear();
    done?;
    if output.is_json() {
        return output.document(&json!({
            "database": to.to_string_lossy(),
            "backup": from.to_string_lossy(),
        }));
    }
    output.line(&format!(
        "{} holds what {} held, under a new store id and with new fences",
        to.display(),
        from.display()
    ))?;
    output.line("Check it with `wf-cli workflow verify`, then start the server.")
}

/// Runs `restored`.
pub(crate) async fn restored(config: &ConfigArgs, output: Output) -> Result<(), Failure> {
    let config = config.load()?;
    let path = absolute(&config.database)?;
    compose::restamp(&config).await?;
    if output.is_json() {
        return output.document(&json!({ "database": path.to_string_lossy() }));
    }
    output.line(&format!(
        "{} has a new store id and new fences",
        path.display()
    ))
}

fn absolute(path: &std::path::Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("{} is no path", path.display())).because(error))
}
