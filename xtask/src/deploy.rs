//! `cargo xtask deploy`: what an operator installs. The Containerfile, the systemd unit, the Kubernetes manifests and the
//! CloudFormation template by linters that others keep ([`lint`]); what they promise each other and the server ([`promises`]);
//! that the built server takes what they give it and answers where they ask ([`taken`]); and a release archive, unpacked
//! and started ([`archive`]).

mod archive;
mod lint;
mod manifest;
mod promises;
mod taken;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::ci::{binary, build, target};
use crate::fault::Fault;
use crate::process::{Run, available};

/// Builders of container images: the program and a command that only works where it can build.
const BUILDERS: [(&str, &[&str]); 3] =
    [("podman", &["info"]), ("buildah", &["info"]), ("docker", &["info"])];

/// What to do besides.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Build the container image too, with podman, buildah or docker
    #[arg(long)]
    image: bool,
    /// Use this program instead of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Checks everything. True if it is good.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    let program = match &options.program {
        Some(program) => {
            std::path::absolute(program).map_err(|source| Fault::file(program, source))?
        }
        None if build(root)? => binary(root, "wf-cli"),
        None => return Ok(false),
    };
    let folder = target(root).join("tmp/deploy");
    // Of an earlier run that was ended.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).map_err(|source| Fault::file(&folder, source))?;
    let green = lint::all(root, &folder, &program)?
        & promises::hold(root)?
        & taken::by_the_server(root, &folder, &program)?
        & archive::serves(root, &folder, &program)?
        & image(root, options.image)?;
    std::fs::remove_dir_all(&folder).map_err(|source| Fault::file(&folder, source))?;
    Ok(green)
}

/// Builds the image if that is wanted; says so if not.
fn image(root: &Path, wanted: bool) -> Result<bool, Fault> {
    let builder = BUILDERS.iter().find(|(program, works)| available(root, program, works));
    match (wanted, builder) {
        (false, found) => {
            let here = found.map_or("no builder is here", |(program, _)| program);
            println!(
                "LEFT OUT: the container image: cargo xtask deploy --image builds it ({here})"
            );
            Ok(true)
        }
        (true, None) => {
            Err(Fault::parse("--image", &"needs podman, buildah or docker with its daemon"))
        }
        (true, Some((program, _))) => {
            let how = ["build", "--file", "Containerfile", "--tag", "checkpoint", "."];
            Run::new(root, program, &how).succeeds()
        }
    }
}
