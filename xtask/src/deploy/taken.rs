//! That the built server takes what the files of an installation give it, and answers where they ask it.
//!
//! Each command line of the unit, the Containerfile and the manifests is run with its own configuration, as
//! `serve --print-config`; and the server of one manifest is started, asked at its probes and ended by SIGTERM.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::lint::INSTALLED;
use super::manifest::Manifest;
use super::promises::Files;
use crate::background::{Background, free_address, get};
use crate::fault::Fault;
use crate::process::Run;

/// Where the configuration is in every installation.
const CONFIGURED: &str = "/etc/checkpoint/";
/// How long a debug build may take to be ready.
const START: Duration = Duration::from_secs(60);

/// A command line, and what it is run with.
struct Case {
    name: String,
    /// After the program.
    arguments: Vec<String>,
    /// The variable that names the configuration, where the command line does not.
    variable: bool,
    configuration: String,
}

/// Tries everything. True if the server takes it all.
pub(super) fn by_the_server(root: &Path, folder: &Path, program: &Path) -> Result<bool, Fault> {
    let files = Files::read(root)?;
    let manifests = files.manifests()?;
    let mut green = true;
    let cases = cases(&files, &manifests)?;
    for case in &cases {
        green &= case.is_taken(folder, program)?;
    }
    if green {
        println!(
            "{} command lines and their configurations are taken, and misspelt ones are not",
            cases.len()
        );
    }
    for manifest in manifests.iter().take(1) {
        green &= answers(&files, manifest, folder, program)?;
    }
    Ok(green)
}

fn cases(files: &Files, manifests: &[Manifest]) -> Result<Vec<Case>, Fault> {
    let unit = files.setting("ExecStart").unwrap_or_default();
    let unit = unit.strip_prefix(INSTALLED).unwrap_or_default();
    let installed = |name: &str, arguments: Vec<String>, variable| Case {
        name: name.to_owned(),
        arguments,
        variable,
        configuration: files.configuration.clone(),
    };
    let mut cases = vec![
        installed("the unit", unit.split_whitespace().map(str::to_owned).collect(), false),
        installed("the Containerfile", command(files.instruction("CMD"))?, true),
    ];
    for manifest in manifests {
        let words = manifest.arguments();
        let Some((program, arguments)) = words.split_first() else {
            return Err(Fault::parse(&manifest.file, &"runs no command"));
        };
        if program != "wf-cli" {
            return Err(Fault::parse(&manifest.file, &format!("runs {program}")));
        }
        cases.push(Case {
            name: manifest.file.clone(),
            arguments: arguments.to_vec(),
            variable: false,
            configuration: manifest.configuration().to_owned(),
        });
    }
    Ok(cases)
}

/// The arguments of a command in the form of a list, which must be one of the program.
fn command(list: Option<&str>) -> Result<Vec<String>, Fault> {
    let wrong = |reason: &str| Fault::parse("Containerfile", &reason);
    let list = list.ok_or_else(|| wrong("no command"))?;
    let words: Vec<String> =
        serde_json::from_str(list).map_err(|error| wrong(&format!("{list}: {error}")))?;
    match words.split_first() {
        Some((program, arguments)) if program == "wf-cli" => Ok(arguments.to_vec()),
        Some(_) | None => Err(wrong(&format!("{list} does not start the server"))),
    }
}

impl Case {
    fn is_taken(&self, folder: &Path, program: &Path) -> Result<bool, Fault> {
        let mut green = true;
        let good = &self.configuration;
        let bad = good.replacen("listen =", "listn =", 1);
        for (configuration, wanted) in [(good, Some(0)), (&bad, Some(2))] {
            let file = folder.join("checkpoint.toml");
            std::fs::write(&file, configuration).map_err(|source| Fault::file(&file, source))?;
            let arguments = self.arguments_in(folder);
            let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            arguments.push("--print-config");
            let mut run = Run::new(folder, &program.to_string_lossy(), &arguments);
            if self.variable {
                run = run.env("WF_CONFIG", &file.to_string_lossy());
            }
            let shown = run.shown().to_owned();
            let output = run.output()?;
            if output.status.code() != wanted {
                println!(
                    "{}: `{shown}` ends with {}, not {wanted:?}, on:\n{configuration}",
                    self.name, output.status
                );
                println!("{}", String::from_utf8_lossy(&output.stderr));
                green = false;
            }
        }
        Ok(green)
    }

    fn arguments_in(&self, folder: &Path) -> Vec<String> {
        let here = format!("{}/", folder.display());
        self.arguments.iter().map(|word| word.replace(CONFIGURED, &here)).collect()
    }
}

/// Starts the server of a manifest on free ports, with its database in `folder`.
fn answers(
    files: &Files,
    manifest: &Manifest,
    folder: &Path,
    program: &Path,
) -> Result<bool, Fault> {
    let file = folder.join("checkpoint.toml");
    std::fs::write(&file, manifest.configuration()).map_err(|source| Fault::file(&file, source))?;
    let (main, admin) = (free_address()?, free_address()?);
    let instead = [
        ("WF_CONFIG", file.to_string_lossy().into_owned()),
        ("WF_SERVER_LISTEN", main.to_string()),
        ("WF_SERVER_ADMIN_LISTEN", admin.to_string()),
        ("WF_BACKEND_LOCAL_PATH", folder.join("checkpoint.db").to_string_lossy().into_owned()),
    ];
    let shown = format!("{} serve, as in {}", program.display(), manifest.file);
    let mut starts = Command::new(program);
    starts.arg("serve").envs(instead.iter().map(|(name, value)| (*name, value)));
    let mut server = Background::start(&mut starts, &shown, &folder.join("server.log"))?;
    let mut wrong = probes(manifest, &mut server, main, admin)?;
    // The authorization server of the manifest is nowhere, and the process lives all the same.
    let health = command(
        files.instruction("HEALTHCHECK").and_then(|line| Some(line.split_once("CMD ")?.1)),
    )?;
    let healthy = || {
        let mut asks = Command::new(program);
        asks.args(&health).envs(instead.iter().map(|(name, value)| (*name, value)));
        asks.output().is_ok_and(|output| output.status.success())
    };
    if !healthy() {
        wrong.push(format!(
            "the health check `{}` fails beside a server that lives",
            health.join(" ")
        ));
    }
    let ended = server.terminate(Duration::from_secs(files.grace))?;
    if ended.code() != Some(0) {
        wrong.push(format!("SIGTERM ended it with {ended}"));
    }
    if healthy() {
        wrong.push("the health check succeeds when no server is there".to_owned());
    }
    for what in &wrong {
        println!("{}: {what}", manifest.file);
    }
    if wrong.is_empty() {
        println!(
            "{}: ready, alive and healthy where it is asked, and gone on SIGTERM",
            manifest.file
        );
    }
    Ok(wrong.is_empty())
}

/// Waits until the server answers where the probes ask; what is wrong with them.
fn probes(
    manifest: &Manifest,
    server: &mut Background,
    main: SocketAddr,
    admin: SocketAddr,
) -> Result<Vec<String>, Fault> {
    let lacks = |what: &str| Fault::parse(&manifest.file, &format!("has no {what}"));
    let numbered = |name: &str| manifest.port(name).ok_or_else(|| lacks(name));
    let ports = BTreeMap::from([(numbered("mcp")?, main), (numbered("admin")?, admin)]);
    let mut wrong = Vec::new();
    for name in ["readinessProbe", "livenessProbe"] {
        let probe = manifest.probe(name).ok_or_else(|| lacks(name))?;
        let Some(address) = ports.get(&probe.port).copied() else {
            wrong.push(format!("{name} asks at port {}, where nobody listens", probe.port));
            continue;
        };
        server.until(START, || is_ok(address, &probe.path).then_some(()))?;
        if is_ok(address, &format!("{}-not", probe.path)) {
            wrong.push(format!("{name} would be answered whatever it asks"));
        }
    }
    Ok(wrong)
}

fn is_ok(address: SocketAddr, path: &str) -> bool {
    get(address, path).is_ok_and(|status| status.contains(" 200 "))
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn only_a_list_that_starts_the_server_is_a_command() {
        assert_eq!(command(Some(r#"["wf-cli", "serve"]"#)).ok(), Some(vec!["serve".to_owned()]));
        for wrong in [None, Some("wf-cli serve"), Some(r#"["sh"]"#), Some("[]")] {
            assert!(command(wrong).is_err(), "{wrong:?}");
        }
    }
}
