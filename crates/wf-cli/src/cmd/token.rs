//! `wf-cli token`: tokens for trying a server with `--auth dev`, without an authorization server.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use wf_core::models::TenantId;
use wf_core::ports::ClockPort as _;
use wf_mcp_http::auth::{DevKeyError, DevToken};

use crate::ambient::SystemClock;
use crate::config::{ConfigArgs, value};
use crate::exit::Failure;
use crate::output::Output;
use crate::{dev_key, gate};

/// Issue tokens for a server with --auth dev
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum TokenCommand {
    Issue(IssueArgs),
}

/// Issue one token, signed with the key beside the database
#[derive(Debug, Args)]
#[command(
    after_help = "The key is made when it is not there. Whoever can read it, or a token, can act; no other
server takes either.

Examples:
  wf-cli token issue --sub ann --name 'Ann Miller'
  wf-cli token issue --sub eve --scope 'workflow:read workflow:write workflow:supervise'
  wf-cli token issue --sub alexa --scope mcp:service --ttl 10m
  WF_TOKEN=$(wf-cli token issue --sub ann) wf-cli call find_work"
)]
struct IssueArgs {
    /// Who acts
    #[arg(long, value_name = "SUBJECT")]
    sub: String,
    /// The tenant
    #[arg(long, default_value = "default", value_parser = tenant)]
    tenant: TenantId,
    /// What they may do, separated by blanks
    #[arg(long, default_value = "workflow:read workflow:write")]
    scope: String,
    /// How long it counts: a whole number and s, m or h, at most 24h
    #[arg(long, default_value = "1h", value_parser = life)]
    ttl: Duration,
    /// The name that is spoken and shown
    #[arg(long)]
    name: Option<String>,
    /// A role; may be repeated
    #[arg(long)]
    role: Vec<String>,
}

fn tenant(text: &str) -> Result<TenantId, String> {
    TenantId::parse(text).map_err(|error| error.to_string())
}

fn life(text: &str) -> Result<Duration, String> {
    value::duration(text)
        .ok_or_else(|| "write a whole number and s, m or h, such as 30m".to_owned())
}

/// Runs the command.
pub(crate) fn run(args: &TokenArgs, config: &ConfigArgs, output: Output) -> Result<(), Failure> {
    match &args.command {
        TokenCommand::Issue(args) => issue(args, config, output),
    }
}

fn issue(args: &IssueArgs, config: &ConfigArgs, output: Output) -> Result<(), Failure> {
    let config = config.load()?;
    let key = dev_key::load_or_make(&config)?;
    let scopes: Vec<String> = args.scope.split_whitespace().map(str::to_owned).collect();
    let token = DevToken {
        tenant: Some(args.tenant.clone()),
        name: args.name.clone(),
        scopes: scopes.clone(),
        roles: args.role.clone(),
        life: args.ttl,
        ..DevToken::new(args.sub.as_str())
    };
    let signed = key.sign(&token, &gate::dev_tokens(&config), SystemClock.now());
    let signed = signed.map_err(|error| match error {
        DevKeyError::Token => Failure::usage(error.to_string()),
        DevKeyError::Made | DevKeyError::Read | DevKeyError::Signed => {
            Failure::failed("no token was issued").because(error)
        }
    })?;
    if output.is_json() {
        return output.document(&json!({
            "token": signed.expose(),
            "expires_in": args.ttl.as_secs(),
            "sub": args.sub,
            "tenant": args.tenant.as_str(),
            "scope": scopes.join(" "),
        }));
    }
    output.line(signed.expose())
}
