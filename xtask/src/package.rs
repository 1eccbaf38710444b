//! The crates as the registry would get them: each packs alone, is small and complete, and works for strangers.
//!
//! ```text
//! cargo package ──▶ target/package/*.crate ──▶ archive: what is in each ──▶ outside: programs that are built from them
//! ```
//!
//! cargo's own check builds every package, which takes as long as the product. Here the files are looked at, and the
//! programs of `tests/embedding`, a workspace outside of this one, are built from the packed light crates and run;
//! `--verify` builds all of them as cargo does. Which crates are published: [`crate::tidy::publishing`].

mod archive;
mod outside;

use std::path::Path;

use clap::Args;

use crate::ci;
use crate::fault::Fault;
use crate::process::Run;
use crate::tidy::publishing::{Published, published};
use crate::tree::Tree;

use archive::Packed;

/// What to do with the packages.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Only this crate (repeatable); what it depends on is taken from the registry or the crates named besides
    #[arg(long = "crate", value_name = "NAME")]
    only: Vec<String>,
    /// Build every package, as `cargo publish` does: takes as long as building the product
    #[arg(long)]
    verify: bool,
    /// Look at the packages only, run no program that uses them
    #[arg(long)]
    look: bool,
}

/// Packs, looks, and runs. False if a package is not fit to be published or a program did not do what it must.
pub(crate) fn task(root: &Path, options: &Options) -> Result<bool, Fault> {
    let tree = Tree::read(root)?;
    let mut crates = published(&tree);
    if let Some(unknown) = options.only.iter().find(|name| crates.iter().all(|c| c.name != **name))
    {
        return Err(Fault::parse(unknown, &"no crate of this name is published"));
    }
    if !options.only.is_empty() {
        crates.retain(|one| options.only.contains(&one.name));
    }
    pack(root, &crates, options.verify)?;
    let folder = ci::target(root).join("package");
    let mut green = true;
    for one in &crates {
        let packed = Packed::read(&folder, &one.name, env!("CARGO_PKG_VERSION"))?;
        let faults = packed.look(tree.text("LICENSE").unwrap_or_default());
        println!("{}: {}", one.name, packed.size());
        for fault in &faults {
            println!("  {fault}");
        }
        green &= faults.is_empty();
        packed.unpack(&folder)?;
    }
    if !address(&tree) {
        println!(
            "note: no `repository` in [workspace.package] yet; docs/releasing.md, first publication"
        );
    }
    if options.look || !options.only.is_empty() || !green {
        return Ok(green);
    }
    outside::task(root, &tree, &folder)
}

fn pack(root: &Path, crates: &[Published], verify: bool) -> Result<(), Fault> {
    // What is packed is the work tree, committed or not: nothing is published here.
    let mut arguments = vec!["package", "--locked", "--allow-dirty", "--quiet"];
    if !verify {
        arguments.push("--no-verify");
    }
    for one in crates {
        arguments.extend(["--package", &one.name]);
    }
    if !verify {
        // Where the product was built, the index of all that it needs is there: a second instead of half a minute.
        let offline = Run::cargo(root, &[&arguments[..], &["--offline"]].concat());
        if offline.output()?.status.success() {
            return Ok(());
        }
        return Run::cargo(root, &arguments).stdout().map(drop);
    }
    let run = Run::cargo(root, &arguments);
    let command = run.shown().to_owned();
    if run.succeeds()? {
        return Ok(());
    }
    Err(Fault::Failed { command, output: "see above".to_owned() })
}

/// Do the manifests say where the sources are?
fn address(tree: &Tree) -> bool {
    tree.line_of("Cargo.toml", "repository = ") != 0
}
