//! What the files of an installation promise each other and the server, where no linter knows both sides: users, folders,
//! ports, and that nobody is ended while it still finishes what is in flight.

use std::path::Path;

use serde_json::Value;

use super::manifest::Manifest;
use crate::fault::Fault;

/// The manifests.
pub(super) const MANIFESTS: [&str; 2] =
    ["deploy/kubernetes/sqlite.yaml", "deploy/kubernetes/dynamodb.yaml"];
/// Where the server has the time in which it finishes what is in flight.
const GRACE: (&str, &str) =
    ("crates/wf-mcp-http/src/config.rs", "shutdown_grace: Duration::from_secs(");

/// The files as text.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) containerfile: String,
    pub(super) unit: String,
    /// What an installed server starts with.
    pub(super) configuration: String,
    manifests: [String; 2],
    /// In seconds.
    pub(super) grace: u64,
}

impl Files {
    pub(super) fn read(root: &Path) -> Result<Self, Fault> {
        let read = |file: &str| {
            let path = root.join(file);
            std::fs::read_to_string(&path).map_err(|source| Fault::file(&path, source))
        };
        let code = read(GRACE.0)?;
        let grace = code
            .split_once(GRACE.1)
            .and_then(|(_, rest)| rest.split(')').next()?.parse().ok())
            .ok_or_else(|| Fault::parse(GRACE.0, &format!("has no `{}`", GRACE.1)))?;
        Ok(Self {
            containerfile: read("Containerfile")?,
            unit: read("deploy/checkpoint.service")?,
            configuration: read("deploy/checkpoint.toml")?,
            manifests: [read(MANIFESTS[0])?, read(MANIFESTS[1])?],
            grace,
        })
    }

    pub(super) fn manifests(&self) -> Result<Vec<Manifest>, Fault> {
        let named = MANIFESTS.iter().zip(&self.manifests);
        named.map(|(file, text)| Manifest::parse(file, text)).collect()
    }

    /// What follows a word at the beginning of a line of the Containerfile, the last such line.
    pub(super) fn instruction(&self, name: &str) -> Option<&str> {
        let lines = self.containerfile.lines().map(str::trim);
        lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).next_back()
    }

    /// The value of a setting of the unit, the last one.
    pub(super) fn setting(&self, name: &str) -> Option<&str> {
        let lines = self.unit.lines();
        lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).next_back()
    }

    /// The number of the image's user, if it is a number.
    fn user(&self) -> Option<u64> {
        self.instruction("USER").and_then(|user| user.parse().ok())
    }

    /// Everything that is not as promised, each in one sentence.
    fn broken(&self) -> Result<Vec<String>, Fault> {
        let mut found = of_the_image(self);
        found.extend(of_the_unit(self));
        for manifest in self.manifests()? {
            let more = of_a_manifest(self, &manifest)?;
            found.extend(more.into_iter().map(|what| format!("{}: {what}", manifest.file)));
        }
        Ok(found)
    }
}

/// True if all is as promised.
pub(super) fn hold(root: &Path) -> Result<bool, Fault> {
    let found = Files::read(root)?.broken()?;
    for what in &found {
        println!("{what}");
    }
    if found.is_empty() {
        println!("users, folders, ports and times agree");
    }
    Ok(found.is_empty())
}

/// Sentences whose condition does not hold.
fn unless(promises: &[(bool, &str)]) -> Vec<String> {
    promises.iter().filter(|(holds, _)| !holds).map(|(_, what)| (*what).to_owned()).collect()
}

/// A value of a configuration, as text.
fn value(configuration: &str, path: [&str; 2]) -> Result<Option<String>, Fault> {
    let table: toml::Table =
        configuration.parse().map_err(|error| Fault::parse("a configuration", &error))?;
    let section = path[..1].iter().try_fold(&table, |table, name| {
        name.split('.').try_fold(table, |table, part| table.get(part)?.as_table())
    });
    let found = section.and_then(|section| section.get(path[1]));
    Ok(found.and_then(toml::Value::as_str).map(str::to_owned))
}

/// The port of an address in a configuration.
fn port(configuration: &str, key: &str) -> Result<Option<u64>, Fault> {
    let address = value(configuration, ["server", key])?;
    Ok(address.and_then(|address| address.rsplit(':').next()?.parse().ok()))
}

fn folder(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn database(files: &Files) -> String {
    value(&files.configuration, ["backend.local", "path"]).ok().flatten().unwrap_or_default()
}

fn of_the_image(files: &Files) -> Vec<String> {
    let copied = files.instruction("COPY deploy/checkpoint.toml");
    let variable = files.instruction("ENV").and_then(|line| line.strip_prefix("WF_CONFIG="));
    let volume = files.instruction("VOLUME").unwrap_or_default();
    let folder = format!("\"{}\"", folder(&database(files)));
    unless(&[
        (
            files.user().is_some_and(|user| user > 0),
            "Containerfile: USER must be a number above 0: Kubernetes cannot tell that a name is not root",
        ),
        (
            files.instruction("STOPSIGNAL") == Some("SIGTERM"),
            "Containerfile: the server ends politely on SIGTERM",
        ),
        (
            copied.is_some() && copied == variable,
            "Containerfile: WF_CONFIG must name the configuration that is copied",
        ),
        (
            volume.contains(&folder),
            "Containerfile: the database of deploy/checkpoint.toml is in no volume",
        ),
    ])
}

fn of_the_unit(files: &Files) -> Vec<String> {
    let stop =
        files.setting("TimeoutStopSec").and_then(|time| time.strip_suffix('s')?.parse().ok());
    let state = format!("/var/lib/{}", files.setting("StateDirectory").unwrap_or_default());
    let configuration =
        format!("/etc/{}/", files.setting("ConfigurationDirectory").unwrap_or_default());
    let start = files.setting("ExecStart").unwrap_or_default();
    unless(&[
        (
            stop.is_some_and(|stop: u64| stop > files.grace),
            "the unit: TimeoutStopSec ends a server that still finishes",
        ),
        (
            folder(&database(files)) == state,
            "the unit: the database of deploy/checkpoint.toml is not in its StateDirectory",
        ),
        (
            files.setting("WorkingDirectory") == Some(&*state),
            "the unit: WorkingDirectory is not its StateDirectory",
        ),
        (
            start.contains(&format!("--config {configuration}")),
            "the unit: the configuration is not in its ConfigurationDirectory",
        ),
        (
            files.setting("ExecReload") == Some("/bin/kill -HUP $MAINPID"),
            "the unit: procedures are read again on SIGHUP",
        ),
        (
            files.setting("User").is_some_and(|user| !["root", "0"].contains(&user)),
            "the unit: it must not be root",
        ),
    ])
}

fn of_a_manifest(files: &Files, manifest: &Manifest) -> Result<Vec<String>, Fault> {
    let mut found = of_a_pod(files, manifest);
    found.extend(of_the_ports(manifest)?);
    found.extend(of_the_state(files, manifest)?);
    Ok(found)
}

/// What the pod may do, as whom, and how it ends.
fn of_a_pod(files: &Files, manifest: &Manifest) -> Vec<String> {
    let pod = |pointer: &str| manifest.pod(pointer).cloned().unwrap_or_default();
    let container = |pointer: &str| manifest.container(pointer).cloned().unwrap_or_default();
    let user = files.user();
    let image = container("/image");
    let version = concat!(":", env!("CARGO_PKG_VERSION"));
    unless(&[
        (
            pod("/terminationGracePeriodSeconds").as_u64().is_some_and(|time| time > files.grace),
            "terminationGracePeriodSeconds ends a server that still finishes",
        ),
        (
            user.is_some() && pod("/securityContext/runAsUser").as_u64() == user,
            "runAsUser is not the user of the Containerfile",
        ),
        (pod("/securityContext/runAsNonRoot") == true, "runAsNonRoot is not true"),
        (pod("/securityContext/seccompProfile/type") == "RuntimeDefault", "no seccomp profile"),
        (
            container("/securityContext/readOnlyRootFilesystem") == true,
            "the root file system can be written",
        ),
        (container("/securityContext/allowPrivilegeEscalation") == false, "it can gain privileges"),
        (container("/securityContext/capabilities/drop/0") == "ALL", "it keeps capabilities"),
        (!container("/resources/limits/memory").is_null(), "no limit of memory"),
        (
            image.as_str().is_some_and(|image| image.ends_with(version)),
            "the image is not of this version",
        ),
        (manifest.probe("readinessProbe").is_some(), "no probe of readiness"),
        (manifest.probe("livenessProbe").is_some(), "no probe of life"),
    ])
}

/// Who is led to which port, and that the server listens there.
fn of_the_ports(manifest: &Manifest) -> Result<Vec<String>, Fault> {
    let specification = |kind: &str| {
        let object = manifest.of_kind(kind).and_then(|object| object.pointer("/spec"));
        object.cloned().unwrap_or_default()
    };
    let workload =
        |pointer: &str| manifest.workload().pointer(pointer).cloned().unwrap_or_default();
    let (service, policy) = (specification("Service"), specification("NetworkPolicy"));
    let target = service.pointer("/ports/0/targetPort").and_then(Value::as_str).unwrap_or_default();
    let configuration = manifest.configuration();
    let listens = |name: &str, key: &str| {
        let number = manifest.port(name);
        Ok::<_, Fault>(number.is_some() && number == port(configuration, key)?)
    };
    Ok(unless(&[
        (
            workload("/spec/selector/matchLabels") == workload("/spec/template/metadata/labels"),
            "the labels of the pods are not those that are selected",
        ),
        (
            service["selector"] == workload("/spec/selector/matchLabels"),
            "the service selects other pods",
        ),
        (
            policy["podSelector"]["matchLabels"] == service["selector"]
                && is_for_some(&policy, "admin"),
            "the operators' port is for everybody in the cluster",
        ),
        (manifest.port(target).is_some(), "the service leads to no port"),
        (listens("mcp", "listen")?, "the port `mcp` is not that of server.listen"),
        (listens("admin", "admin_listen")?, "the port `admin` is not that of server.admin_listen"),
    ]))
}

/// Where configuration and state are, and how many servers share them.
fn of_the_state(files: &Files, manifest: &Manifest) -> Result<Vec<String>, Fault> {
    let workload =
        |pointer: &str| manifest.workload().pointer(pointer).cloned().unwrap_or_default();
    let arguments = manifest.arguments();
    let named = arguments.iter().position(|word| word == "--config");
    let named = named.and_then(|at| arguments.get(at + 1)).map_or("", |file| folder(file));
    let mut found = unless(&[(
        manifest.mounts(false).contains(&named),
        "the configuration is not mounted where --config says",
    )]);
    let group = manifest.pod("/securityContext/fsGroup").and_then(Value::as_u64);
    found.extend(match value(manifest.configuration(), ["backend.local", "path"])? {
        Some(path) => unless(&[
            (manifest.mounts(true).contains(&folder(&path)), "the database is on no volume"),
            (group == files.user(), "the volume is not the user's"),
            (
                workload("/kind") == "StatefulSet" && workload("/spec/replicas") == 1,
                "a database in a file is for one server: a StatefulSet never has two",
            ),
        ]),
        None => unless(&[
            (
                workload("/spec/replicas").as_u64().is_some_and(|servers| servers > 1),
                "one server serves nobody while it is replaced",
            ),
            (manifest.of_kind("PodDisruptionBudget").is_some(), "all servers may be taken at once"),
            (manifest.mounts(true).is_empty(), "it needs nothing to write to"),
        ]),
    });
    Ok(found)
}

/// A policy that names a port of the container, each time with who may come.
fn is_for_some(policy: &Value, port: &str) -> bool {
    let rules = policy["ingress"].as_array().map_or(&[][..], Vec::as_slice);
    let names = |rule: &Value| {
        let ports = rule["ports"].as_array().map_or(&[][..], Vec::as_slice);
        // Without ports it is for all of them.
        ports.is_empty() || ports.iter().any(|one| one["port"] == port)
    };
    !rules.is_empty() && rules.iter().filter(|rule| names(rule)).all(|rule| !rule["from"].is_null())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::Files;

    /// What is replaced, by what, and what must be said of it.
    const FAULTS: &[(&str, &str, &str)] = &[
        ("USER 10001", "USER checkpoint", "USER must be a number"),
        ("STOPSIGNAL SIGTERM", "STOPSIGNAL SIGKILL", "politely"),
        ("WF_CONFIG=/etc/checkpoint/", "WF_CONFIG=/etc/", "WF_CONFIG must name"),
        ("VOLUME [\"/var/lib/checkpoint\"]", "VOLUME [\"/var/lib\"]", "in no volume"),
        ("TimeoutStopSec=45s", "TimeoutStopSec=25s", "TimeoutStopSec"),
        ("StateDirectory=checkpoint", "StateDirectory=other", "StateDirectory"),
        ("WorkingDirectory=/var", "WorkingDirectory=/", "WorkingDirectory"),
        (
            "ConfigurationDirectory=checkpoint",
            "ConfigurationDirectory=other",
            "ConfigurationDirectory",
        ),
        ("kill -HUP", "kill -USR1", "SIGHUP"),
        ("User=checkpoint", "User=root", "root"),
        (
            "terminationGracePeriodSeconds: 45",
            "terminationGracePeriodSeconds: 25",
            "still finishes",
        ),
        ("runAsUser: 10001", "runAsUser: 1000", "runAsUser"),
        ("runAsNonRoot: true", "runAsNonRoot: false", "runAsNonRoot"),
        ("type: RuntimeDefault", "type: Unconfined", "seccomp"),
        ("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "root file system"),
        ("allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "privileges"),
        ("drop: [\"ALL\"]", "drop: [\"CHOWN\"]", "capabilities"),
        ("memory: 256Mi", "cpu: 1", "limit of memory"),
        (
            "image: registry.example.com/checkpoint:",
            "image: registry.example.com/checkpoint:9",
            "of this version",
        ),
        (
            "  selector:\n    matchLabels:\n      app: checkpoint",
            "  selector:\n    matchLabels:\n      app: other",
            "labels",
        ),
        ("targetPort: mcp", "targetPort: http", "leads to no port"),
        ("containerPort: 8080", "containerPort: 8081", "server.listen"),
        ("kind: NetworkPolicy", "kind: Other", "for everybody"),
        ("        - port: mcp", "        - port: admin", "for everybody"),
        ("containerPort: 9090", "containerPort: 9091", "server.admin_listen"),
        (
            "readinessProbe:\n            httpGet",
            "readinessProbe:\n            tcpSocket",
            "of readiness",
        ),
        ("livenessProbe:\n            httpGet", "livenessProbe:\n            tcpSocket", "of life"),
        ("mountPath: /etc/checkpoint", "mountPath: /etc/other", "where --config says"),
        ("mountPath: /var/lib/checkpoint", "mountPath: /var/lib/other", "on no volume"),
        ("fsGroup: 10001", "fsGroup: 1", "not the user's"),
        ("replicas: 1", "replicas: 2", "for one server"),
        ("replicas: 3", "replicas: 1", "serves nobody"),
        ("kind: PodDisruptionBudget", "kind: Other", "at once"),
    ];

    fn files() -> Files {
        Files::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).expect("the files")
    }

    #[test]
    fn the_files_agree_and_each_fault_is_found() {
        let good = files();
        assert_eq!(good.broken().expect("read"), Vec::<String>::new());
        for (what, by, says) in FAULTS {
            let mut bad = good.clone();
            let mut hits = 0;
            for text in [&mut bad.containerfile, &mut bad.unit, &mut bad.configuration]
                .into_iter()
                .chain(&mut bad.manifests)
            {
                hits += text.matches(what).count();
                *text = text.replace(what, by);
            }
            assert!(hits > 0, "nothing has `{what}`");
            let found = bad.broken().expect("read");
            assert!(found.iter().any(|one| one.contains(says)), "{what}: {found:?}");
        }
    }

    #[test]
    fn the_grace_is_the_servers() {
        assert_eq!(files().grace, 25);
    }
}
