//! One file of Kubernetes manifests as data: what its one workload runs, with what, and where it is asked.

use serde_json::Value;

use crate::fault::Fault;

/// The objects of one file.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) file: String,
    objects: Vec<Value>,
    workload: usize,
}

/// A probe: what is asked, and at which port of the container.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) path: String,
    pub(super) port: u64,
}

impl Manifest {
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, Fault> {
        let objects: Vec<Value> =
            serde_saphyr::from_multiple(text).map_err(|error| Fault::parse(file, &error))?;
        let is_workload = |object: &Value| matches!(kind(object), "StatefulSet" | "Deployment");
        let workload = objects
            .iter()
            .position(is_workload)
            .ok_or_else(|| Fault::parse(file, &"runs nothing"))?;
        Ok(Self { file: file.to_owned(), objects, workload })
    }

    pub(super) fn workload(&self) -> &Value {
        &self.objects[self.workload]
    }

    /// The first object of a kind.
    pub(super) fn of_kind(&self, wanted: &str) -> Option<&Value> {
        self.objects.iter().find(|object| kind(object) == wanted)
    }

    /// Below the pod's specification.
    pub(super) fn pod(&self, pointer: &str) -> Option<&Value> {
        self.workload().pointer(&format!("/spec/template/spec{pointer}"))
    }

    /// Below its one container.
    pub(super) fn container(&self, pointer: &str) -> Option<&Value> {
        self.pod(&format!("/containers/0{pointer}"))
    }

    /// The command line of the container.
    pub(super) fn arguments(&self) -> Vec<String> {
        let words = self.container("/args").and_then(Value::as_array);
        words.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The server's configuration, as text.
    pub(super) fn configuration(&self) -> &str {
        let map = self.of_kind("ConfigMap");
        map.and_then(|map| map.pointer("/data/checkpoint.toml"))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The number of the container's port of this name.
    pub(super) fn port(&self, name: &str) -> Option<u64> {
        let ports = self.container("/ports")?.as_array()?;
        ports.iter().find(|port| port["name"] == name)?["containerPort"].as_u64()
    }

    /// A probe that asks over HTTP.
    pub(super) fn probe(&self, name: &str) -> Option<Probe> {
        let get = self.container(&format!("/{name}/httpGet"))?;
        let port = &get["port"];
        let port = port.as_str().map_or_else(|| port.as_u64(), |name| self.port(name))?;
        Some(Probe { path: get["path"].as_str()?.to_owned(), port })
    }

    /// Where something is mounted that the container may write (`true`) or only read.
    pub(super) fn mounts(&self, writable: bool) -> Vec<&str> {
        let mounts = self.container("/volumeMounts").and_then(Value::as_array);
        mounts
            .into_iter()
            .flatten()
            .filter(|mount| (mount["readOnly"] != true) == writable)
            .filter_map(|mount| mount["mountPath"].as_str())
            .collect()
    }
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}
