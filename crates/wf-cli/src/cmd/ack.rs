//! `wf-cli ack`: acknowledges a block for somebody who cannot use the link in the message.

use clap::Args;
use serde_json::{Map, Value};
use wf_core::engine::{Call, CallMeta, Engine, Request};
use wf_core::models::{BlockId, Phase, Principal, TenantId, Workflow, WorkflowId};
use wf_core::ports::{LoadQuery, StorageBackendPort};

use crate::ambient;
use crate::compose::{self, Backend};
use crate::config::{Config, ConfigArgs};
use crate::exit::Failure;
use crate::output::Output;

/// Acknowledge a block, so that nobody else is told
#[derive(Debug, Args)]
#[command(
    after_help = "What the page of the link in an escalation does, by cli:<your user>. The block stays: who decides on it
resolves it. It works while a server runs; `wf-cli workflow show ID` tells the blocks.

Examples:
  wf-cli ack 0197f3a0-1111-7222-8333-444455556666
  wf-cli ack 0197f3a0-1111-7222-8333-444455556666 --block block-3"
)]
pub(crate) struct AckArgs {
    /// The workflow
    workflow: WorkflowId,
    /// The block; the only one that nobody has acknowledged when absent
    #[arg(long)]
    block: Option<BlockId>,
    /// Its tenant
    #[arg(long, default_value_t = TenantId::default_tenant())]
    tenant: TenantId,
}

/// Runs the command.
pub(crate) async fn run(
    args: &AckArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let config = config.load()?;
    let backend = compose::open_existing(&config).await?;
    let done = acknowledge(args, &config, &backend, output).await;
    backend.close().await;
    done
}

async fn acknowledge(
    args: &AckArgs,
    config: &Config,
    backend: &Backend,
    output: Output,
) -> Result<(), Failure> {
    let found = workflow(args, backend.store().as_ref()).await?;
    let block_id = match &args.block {
        Some(block) => block.clone(),
        None => only_block(&found)?,
    };
    if let Some(block) = found.block(&block_id).filter(|block| block.acknowledged_by.is_some()) {
        let by = block.acknowledged_by.as_ref().map_or("somebody", |by| by.spoken());
        return Err(Failure::failed(format!("{by} has acknowledged block {block_id} already")));
    }
    let engine: Engine = compose::operator_engine(config, backend).await?;
    let arguments: Map<String, Value> =
        [("workflow_id", args.workflow.as_str()), ("block_id", block_id.as_str())]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Value::from(value)))
            .collect();
    let call = Call {
        operation: "acknowledge_block",
        arguments,
        key: None,
        request: Request::AcknowledgeBlock {
            workflow_id: args.workflow.clone(),
            block_id: block_id.clone(),
        },
        meta: CallMeta::default(),
    };
    let principal = Principal::operator(args.tenant.clone(), &ambient::os_user());
    let reply = engine.execute(&principal, &call).await;
    match reply.error {
        None if output.is_json() => output.document(&reply.body),
        None => output.line(&format!(
            "Block {block_id} of workflow {} is acknowledged. Nobody else is told of it.",
            args.workflow
        )),
        Some(code) => Err(Failure::refused(code, &reply.body, "the acknowledgement was refused")),
    }
}

async fn workflow(args: &AckArgs, store: &dyn StorageBackendPort) -> Result<Workflow, Failure> {
    let query = LoadQuery {
        tenant: args.tenant.clone(),
        workflow: Some(args.workflow.clone()),
        ledger: None,
        assets: Vec::new(),
        answered_as: None,
        count_open_of: None,
    };
    store.load(&query).await?.workflow.ok_or_else(|| {
        let text = format!("there is no workflow {} in tenant {}", args.workflow, args.tenant);
        Failure::failed(text).help("`wf-cli workflow list` shows them")
    })
}

/// The block that is meant where none was named.
fn only_block(workflow: &Workflow) -> Result<BlockId, Failure> {
    if workflow.phase != Phase::Blocked {
        return Err(Failure::failed(format!("workflow {} is not blocked", workflow.id)));
    }
    let mut waiting = workflow.blocks.iter().filter(|block| block.acknowledged_by.is_none());
    match (waiting.next(), waiting.next()) {
        (Some(block), None) => Ok(block.id.clone()),
        (None, _) => Err(Failure::failed("every block is acknowledged already")),
        (Some(_), Some(_)) => {
            let ids: Vec<&str> = workflow.blocks.iter().map(|block| block.id.as_str()).collect();
            let help = format!("name one with --block: {}", ids.join(", "));
            Err(Failure::failed("several blocks are open").help(help))
        }
    }
}
