//! `wf-cli migrate`, `backup`, `restore` and `restored`: the life of the database file. A DynamoDB table has another life;
//! asked about one, each but `restored` says what to do instead.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::compose::{aws, local};
use crate::config::backend::BackendConfig;
use crate::config::{Config, ConfigArgs};
use crate::exit::Failure;
use crate::output::Output;

/// Bring the database to the schema of this build
#[derive(Debug, Args)]
#[command(
    after_help = "`serve` does so too; run it by itself to see it happen before servers start.
A database that is not there is made, and one that must change is copied first.
One that is newer than this build is refused and stays as it is."
)]
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
#[command(
    after_help = "Refused while a server has the database. The one that is there stays beside it, under another name.
The restored one gets a new store id, and every asset's next fence is 1,000,000 higher, so that
nothing handed out after the backup was taken counts any more.

Example:
  wf-cli restore /backup/checkpoint-2026-11-29.db --config checkpoint.toml"
)]
pub(crate) struct RestoreArgs {
    /// The backup
    file: PathBuf,
}

/// Mark a database that was recovered by other means as restored
#[derive(Debug, Args)]
#[command(
    after_help = "Run it once after a point-in-time recovery of the disk, the file or the DynamoDB table, before a server
starts: it does to what was recovered what `restore` does to a backup. Interrupted on a table, it is
run again; until then no server opens the table."
)]
pub(crate) struct RestoredArgs {}

/// Runs `migrate`.
pub(crate) async fn migrate(config: &ConfigArgs, output: Output) -> Result<(), Failure> {
    let config = config.load()?;
    let path = absolute(file(&config, "migrate", NO_MIGRATION)?)?;
    let bar = output.progress("migrating");
    let done = local::migrate(&path).await;
    bar.finish_and_clear();
    let migrated = done?;
    let kept = migrated.backup.as_ref().map(|path| path.display().to_string());
    if output.is_json() {
        return output.document(&json!({
            "database": path.to_string_lossy(),
            "from": migrated.from,
            "to": migrated.to,
            "backup": kept,
        }));
    }
    let path = path.display();
    let (from, to) = (migrated.from, migrated.to);
    if from == to {
        output.line(&format!("{path} has schema version {to} already"))
    } else if from == 0 {
        output.line(&format!("{path} was made, with schema version {to}"))
    } else {
        output.line(&format!("{path} went from schema version {from} to {to}"))?;
        match kept {
            Some(kept) => output.line(&format!("{kept} is the database as it was before")),
            None => Ok(()),
        }
    }
}

/// Runs `backup`.
pub(crate) async fn backup(
    args: &BackupArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let config = config.load()?;
    let source = absolute(file(&config, "backup", NO_BACKUP)?)?;
    let copy = absolute(&args.file)?;
    let bar = output.progress("copying");
    let done = local::backup(&source, &copy).await;
    bar.finish_and_clear();
    let bytes = done?;
    if output.is_json() {
        return output.document(&json!({
            "database": source.to_string_lossy(),
            "backup": copy.to_string_lossy(),
            "bytes": bytes,
        }));
    }
    output.line(&format!("{} is a copy of {} ({bytes} bytes)", copy.display(), source.display()))
}

/// Runs `restore`.
pub(crate) async fn restore(
    args: &RestoreArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let config = config.load()?;
    let from = absolute(&args.file)?;
    let to = absolute(file(&config, "restore", NO_RESTORE)?)?;
    if from == to {
        return Err(Failure::usage("the backup is the database itself")
            .help("`wf-cli restored` marks a recovered database as restored"));
    }
    let bar = output.progress("restoring");
    let done = local::restore(&from, &to).await;
    bar.finish_and_clear();
    let report = done?;
    let kept = report.kept.as_ref().map(|path| path.display().to_string());
    if output.is_json() {
        return output.document(&json!({
            "database": to.to_string_lossy(),
            "backup": from.to_string_lossy(),
            "store_id": report.store_id,
            "migrated_from": report.migrated_from,
            "kept": kept,
        }));
    }
    output.line(&format!(
        "{} holds what {} held, under a new store id and with new fences",
        to.display(),
        from.display()
    ))?;
    if let Some(kept) = kept {
        output.line(&format!("{kept} is the database that was there"))?;
    }
    output.line("Check it with `wf-cli workflow verify`, then start the server.")
}

/// Runs `restored`.
pub(crate) async fn restored(config: &ConfigArgs, output: Output) -> Result<(), Failure> {
    let config = config.load()?;
    let (place, store_id) = match &config.backend {
        BackendConfig::Local { path } => {
            let path = absolute(path)?;
            let store_id = local::restamp(&path).await?;
            (path.display().to_string(), store_id)
        }
        BackendConfig::Aws(table) => {
            let bar = output.progress("waiting until no server writes");
            let done = aws::restamp(table, &mut |items| {
                bar.set_message(format!("raising fences ({items} items)"));
            })
            .await;
            bar.finish_and_clear();
            (table.to_string(), done?)
        }
    };
    if output.is_json() {
        return output.document(&json!({ "database": place, "store_id": store_id }));
    }
    output.line(&format!("{place} has a new store id and new fences"))?;
    output.line("Check it with `wf-cli workflow verify`, then start the server.")
}

const NO_MIGRATION: &str =
    "a table has nothing to migrate; `wf-cli aws init` makes it and looks at its shape";
const NO_BACKUP: &str = "switch point-in-time recovery of the table on (the template of docs/dynamodb.md does), or make an \
     on-demand backup: `aws dynamodb create-backup`";
const NO_RESTORE: &str = "let DynamoDB restore the backup into a new table (`aws dynamodb restore-table-to-point-in-time`), \
     name that table in backend.aws.table, and run `wf-cli restored` once before a server starts";

/// The database file, for a command that works on one.
fn file<'c>(config: &'c Config, command: &str, instead: &str) -> Result<&'c Path, Failure> {
    match &config.backend {
        BackendConfig::Local { path } => Ok(path),
        BackendConfig::Aws(table) => Err(Failure::usage(format!(
            "`wf-cli {command}` is for a database file, and the state is in the {table}"
        ))
        .help(instead)),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("{} is no path", path.display())).because(error))
}
