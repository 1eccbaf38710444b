//! `wf-cli locks`: who holds which asset, and the last resort to free one.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};
use wf_core::engine::{Call, CallMeta, Engine, Request};
use wf_core::locks::LockRow;
use wf_core::models::{AssetId, Principal, TenantId};
use wf_core::policy::DomainPolicyPort as _;
use wf_core::ports::{LoadQuery, StorageBackendPort};

use crate::ambient;
use crate::compose::{self, Backend};
use crate::config::{Config, ConfigArgs};
use crate::exit::Failure;
use crate::output::Output;
use crate::procedures;

/// List asset locks, and release one by hand
#[derive(Debug, Args)]
pub(crate) struct LocksArgs {
    #[command(subcommand)]
    command: LocksCommand,
}

#[derive(Debug, Subcommand)]
enum LocksCommand {
    List(ListArgs),
    Release(ReleaseArgs),
}

/// List held assets
#[derive(Debug, Args)]
struct ListArgs {
    /// Free ones too, with the fence they keep
    #[arg(long)]
    all: bool,
    /// Only of this tenant
    #[arg(long)]
    tenant: Option<TenantId>,
}

/// Release an asset that its workflow will never release itself
#[derive(Debug, Args)]
#[command(
    after_help = "The workflow that held it stays as it is; its next step is told that it lost the asset.
Its owner can take the asset over again while that is free.
The release is an event of that workflow, by cli:<your user>, with your reason. It works while a server runs.

Example:
  wf-cli locks release PUMP-204 --reason \"tablet lost, technician confirmed by phone\""
)]
struct ReleaseArgs {
    /// The asset, such as PUMP-204
    asset: String,
    /// Why
    #[arg(long)]
    reason: String,
    /// Its tenant
    #[arg(long, default_value_t = TenantId::default_tenant())]
    tenant: TenantId,
}

/// Runs the command.
pub(crate) async fn run(
    args: &LocksArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let config = config.load()?;
    let backend = compose::open_existing(&config).await?;
    let done = match &args.command {
        LocksCommand::List(args) => list(args, backend.store().as_ref(), output).await,
        LocksCommand::Release(args) => release(args, &config, &backend, output).await,
    };
    backend.close().await;
    done
}

async fn list(
    args: &ListArgs,
    store: &dyn StorageBackendPort,
    output: Output,
) -> Result<(), Failure> {
    let mut rows: Vec<LockRow> = Vec::new();
    let mut after = None;
    loop {
        let page = store.list_locks(args.tenant.as_ref(), after.as_ref(), 500).await?;
        rows.extend(page.items.into_iter().filter(|row| args.all || row.holder.is_some()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if output.is_json() {
        let locks: Vec<_> = rows.iter().map(|row| json!(row)).collect();
        return output.document(&json!({ "locks": locks }));
    }
    let dash = || "-".to_owned();
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let holder = row.holder.as_ref();
            vec![
                row.asset_id.to_string(),
                holder.map_or_else(|| "(free)".to_owned(), |h| h.owner.spoken().to_owned()),
                holder.map_or_else(dash, |h| h.workflow_id.to_string()),
                holder.map_or_else(dash, |h| h.acquired_at.to_string()),
                row.fence.to_string(),
                row.tenant.to_string(),
            ]
        })
        .collect();
    let headings = ["ASSET", "HELD BY", "WORKFLOW", "SINCE", "FENCE", "TENANT"];
    output.table(&headings, &cells)
}

async fn release(
    args: &ReleaseArgs,
    config: &Config,
    backend: &Backend,
    output: Output,
) -> Result<(), Failure> {
    let row = held(args, config, backend.store().as_ref()).await?;
    let holder =
        row.holder.ok_or_else(|| Failure::failed(format!("{} is free already", row.asset_id)))?;
    let engine: Engine = compose::operator_engine(config, backend).await?;
    let arguments: Map<String, Value> = [
        ("workflow_id", holder.workflow_id.as_str()),
        ("asset_id", row.asset_id.as_str()),
        ("reason", args.reason.as_str()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), Value::from(value)))
    .collect();
    let call = Call {
        operation: "release_lock",
        arguments,
        key: None,
        request: Request::ReleaseLock {
            workflow_id: holder.workflow_id.clone(),
            asset_id: row.asset_id.clone(),
            reason: args.reason.clone(),
        },
        meta: CallMeta::default(),
    };
    let principal = Principal::operator(args.tenant.clone(), &ambient::os_user());
    let reply = engine.execute(&principal, &call).await;
    match reply.error {
        None if output.is_json() => output.document(&reply.body),
        None => output.line(&format!(
            "{} is free. Workflow {} no longer holds it.",
            row.asset_id, holder.workflow_id
        )),
        Some(code) => Err(Failure::refused(code, &reply.body, "the release was refused")),
    }
}

/// The lock row of the asset: as written, or as one of the procedures understands it.
async fn held(
    args: &ReleaseArgs,
    config: &Config,
    store: &dyn StorageBackendPort,
) -> Result<LockRow, Failure> {
    let mut candidates: Vec<AssetId> = AssetId::parse(&args.asset).into_iter().collect();
    if let Ok(loaded) = procedures::load(config.procedures.as_deref()) {
        candidates.extend(
            loaded.procedures.iter().filter_map(|procedure| procedure.canonical_asset(&args.asset)),
        );
    }
    let query = LoadQuery {
        tenant: args.tenant.clone(),
        workflow: None,
        ledger: None,
        assets: candidates.clone(),
        answered_as: None,
        count_open_of: None,
    };
    let rows = store.load(&query).await?.locks;
    candidates
        .iter()
        .find_map(|id| rows.iter().find(|row| &row.asset_id == id))
        .cloned()
        .ok_or_else(|| {
            Failure::failed(format!("{} was never held in tenant {}", args.asset, args.tenant))
                .help("`wf-cli locks list` shows what is held")
        })
}
