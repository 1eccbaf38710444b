//! `wf-cli call`: calls one tool of a server and prints what it says.

use std::convert::Infallible;
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value};
use wf_mcp_http::auth::Masked;

use crate::client::Endpoint;
use crate::cmd::doctor::alive::here;
use crate::config::{ConfigArgs, ServerConfig};
use crate::exit::{Exit, Failure, one_line};
use crate::output::{Output, Tone};

/// Call one tool of a running server
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  wf-cli call find_work
  wf-cli call find_work --arg query=pump --json
  WF_TOKEN=$(wf-cli token issue --sub ann) wf-cli call find_work
  wf-cli call start_workflow --arg procedure_id=pump-inspection \\
    --arg assets.pump=PUMP-204 --arg inputs.work_order=WO-1 --arg idempotency_key=my-key-1

Exit codes: 0 ok, 1 the answer is an error, 2 usage, 3 unavailable (send the same call again).")]
pub(crate) struct CallArgs {
    /// The tool, such as find_work
    tool: String,
    /// One argument; a dot goes one level deeper. Values are text.
    #[arg(long = "arg", value_name = "KEY=VALUE")]
    arg: Vec<String>,
    /// Arguments as a JSON object; --arg adds to it
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
    /// The MCP endpoint [default: /mcp at server.listen; with a certificate at server.public_url]
    #[arg(long, env = "WF_URL", hide_env_values = true)]
    url: Option<String>,
    /// The bearer token to send; better in the variable, which other users cannot see
    #[arg(long, env = "WF_TOKEN", hide_env_values = true, value_parser = masked)]
    token: Option<Masked<String>>,
    /// How long to wait for the answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

/// So that no `Debug` of the arguments shows it.
fn masked(text: &str) -> Result<Masked<String>, Infallible> {
    Ok(Masked::new(text.to_owned()))
}

/// Runs the command.
pub(crate) async fn run(
    args: &CallArgs,
    config: &ConfigArgs,
    output: Output,
) -> Result<(), Failure> {
    let url = match &args.url {
        Some(url) => url.clone(),
        None => where_it_is(&config.load()?.server),
    };
    let mut endpoint = Endpoint::parse(&url)?;
    if let Some(token) = &args.token {
        endpoint = endpoint.with_token(token.expose())?;
    }
    let arguments = arguments(args.arguments.as_deref(), &args.arg)?;
    let wait = Duration::from_secs(args.timeout);
    let result = endpoint.call_tool(&args.tool, arguments, wait).await?;
    let structured = result.get("structuredContent").ok_or_else(|| {
        Failure::failed("the answer has no structured content: this is another server's tool")
    })?;
    print(structured, output)?;
    let exit = verdict(structured);
    if exit == Exit::Ok { Ok(()) } else { Err(Failure::quiet(exit)) }
}

/// Where the server with this configuration is called from its own machine. With a certificate it has to be called by a
/// name that is in it.
fn where_it_is(server: &ServerConfig) -> String {
    match (&server.tls, &server.public_url) {
        (None, _) => format!("http://{}/mcp", here(server.listen)),
        (Some(_), Some(url)) if url.starts_with("https://") => url.clone(),
        (Some(_), Some(_) | None) => format!("https://localhost:{}/mcp", server.listen.port()),
    }
}

fn print(structured: &Value, output: Output) -> Result<(), Failure> {
    let speech = structured.get("speech").and_then(Value::as_str);
    let ok = verdict(structured) == Exit::Ok;
    let tone = if ok { Tone::Strong } else { Tone::Bad };
    let speech = one_line(speech.unwrap_or_default());
    if output.is_json() {
        // Programs read stdout, the person beside them reads stderr.
        output.note(&speech);
        return output.document(structured);
    }
    output.line(&output.paint(tone, &speech))
}

fn verdict(structured: &Value) -> Exit {
    if structured.get("ok").and_then(Value::as_bool) == Some(true) {
        return Exit::Ok;
    }
    match structured.pointer("/error/code").and_then(Value::as_str) {
        Some("BACKEND_UNAVAILABLE") => Exit::Unavailable,
        _ => Exit::Failed,
    }
}

fn arguments(object: Option<&str>, pairs: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut all = match object.map(serde_json::from_str::<Value>) {
        None => Map::new(),
        Some(Ok(Value::Object(map))) => map,
        Some(Ok(_)) => return Err(Failure::usage("--arguments must be a JSON object")),
        Some(Err(error)) => {
            return Err(Failure::usage("--arguments is no JSON").because(error));
        }
    };
    for pair in pairs {
        let (path, value) = pair
            .split_once('=')
            .filter(|(path, _)| path.split('.').all(|part| !part.is_empty()))
            .ok_or_else(|| {
                Failure::usage(format!("--arg {pair}: write KEY=VALUE"))
                    .help("for example --arg assets.pump=PUMP-204")
            })?;
        set(&mut all, path, value)
            .ok_or_else(|| Failure::usage(format!("--arg {pair}: {path} is given twice")))?;
    }
    Ok(all)
}

/// Puts `value` at the dotted `path`; `None` when something else is there.
fn set(object: &mut Map<String, Value>, path: &str, value: &str) -> Option<()> {
    match path.split_once('.') {
        None if object.contains_key(path) => None,
        None => {
            object.insert(path.to_owned(), Value::String(value.to_owned()));
            Some(())
        }
        Some((first, rest)) => set(
            object.entry(first).or_insert_with(|| Value::Object(Map::new())).as_object_mut()?,
            rest,
            value,
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn built(object: Option<&str>, pairs: &[&str]) -> Result<Value, Failure> {
        let pairs: Vec<String> = pairs.iter().map(|p| (*p).to_owned()).collect();
        arguments(object, &pairs).map(Value::Object)
    }

    #[test]
    fn dots_go_deeper_and_values_stay_text() {
        assert_eq!(
            built(
                Some(r#"{"inputs":{"count":3}}"#),
                &["assets.pump=PUMP-204", "inputs.note=a=b", "value=4.20"]
            )
            .unwrap(),
            json!({"inputs": {"count": 3, "note": "a=b"}, "assets": {"pump": "PUMP-204"}, "value": "4.20"})
        );
    }

    #[test]
    fn slips_are_usage_errors() {
        for bad in [&["a"][..], &["=x"], &["a.=x"], &["a=1", "a=2"], &["a=1", "a.b=2"]] {
            assert_eq!(built(None, bad).unwrap_err().exit(), Exit::Usage, "{bad:?}");
        }
        assert_eq!(built(Some("[]"), &[]).unwrap_err().exit(), Exit::Usage);
        assert_eq!(built(Some("{"), &[]).unwrap_err().exit(), Exit::Usage);
    }

    #[test]
    fn the_verdict_follows_ok_and_the_code() {
        assert_eq!(verdict(&json!({"ok": true})), Exit::Ok);
        let error = |code: &str| verdict(&json!({"ok": false, "error": {"code": code}}));
        assert_eq!(error("ASSET_LOCKED"), Exit::Failed);
        assert_eq!(error("BACKEND_UNAVAILABLE"), Exit::Unavailable);
        assert_eq!(verdict(&json!({})), Exit::Failed);
    }
}
