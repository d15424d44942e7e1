//! A copy of the program that stays: what npx and uvx run lies in a cache, and a host that starts the program from there fails
//! as soon as the cache is cleared (PKG-10).

use super::change_plan::file_error;
use super::installed_program::SERVER_NAME;
use super::target::{InitRoots, InitTarget};
use super::{hook_programs, tools_program};
use crate::command_client;
use crate::fail::Fail;
use chorus_client::files::atomic_file;
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// Cache folders in the environment of the programs that run packages.
const CACHE_VARIABLES: [&str; 3] = ["XDG_CACHE_HOME", "UV_CACHE_DIR", "npm_config_cache"];
/// Cache folders below the home.
const HOME_CACHES: [&str; 2] = [".cache", "Library/Caches"];
/// A folder of npm's cache in which npx installs what it runs.
const NPX_FOLDER: &str = "_npx";

/// Whether a program is in a folder that is cleared sooner or later: a cache or the folder for temporary files.
pub fn is_transient(program: &Path) -> bool {
    if is_cargo_build(program) {
        return false;
    }
    let in_environment = CACHE_VARIABLES
        .iter()
        .filter_map(std::env::var_os)
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from);
    let in_home = etcetera::home_dir()
        .into_iter()
        .flat_map(|home| HOME_CACHES.iter().map(move |folder| home.join(folder)));
    let mut caches = in_environment
        .chain(in_home)
        .chain([std::env::temp_dir()])
        .filter_map(|folder| std::fs::canonicalize(folder).ok());
    caches.any(|cache| program.starts_with(cache))
        || program
            .components()
            .any(|part| part.as_os_str() == NPX_FOLDER)
}

/// A developer's build is not installed by a package manager, wherever the checkout is.
fn is_cargo_build(program: &Path) -> bool {
    program
        .parent()
        .is_some_and(|folder| folder.join(".fingerprint").is_dir())
}

/// Where the copy is.
pub fn copy_path() -> Result<PathBuf, Fail> {
    Ok(command_client::home_folder()?.join("bin").join(SERVER_NAME))
}

/// Copies the running program, in place of an older copy. A host that starts it at this moment runs one or the other. The folder
/// may be the first in that of the identity, so it is private too.
pub fn copy_program(program: &Path, copy: &Path) -> Result<(), Fail> {
    let folder = copy.parent().unwrap_or(Path::new("."));
    let part = folder.join(format!(".{SERVER_NAME}-{}", std::process::id()));
    atomic_file::create_private_folder(folder)?;
    let copied = std::fs::copy(program, &part)
        .and_then(|_| make_executable(&part))
        .and_then(|()| std::fs::File::open(&part)?.sync_all())
        .and_then(|()| std::fs::rename(&part, copy));
    copied.map_err(|error| {
        let _ = std::fs::remove_file(&part);
        file_error(copy, error)
    })?;
    Ok(atomic_file::sync_parent_folder(copy)?)
}

#[cfg(unix)]
fn make_executable(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_file: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Removes the copy when no host runs it any more. A host whose files cannot be read may run it, so then it stays.
pub fn remove_unused_copy(roots: &InitRoots) -> Result<Option<PathBuf>, Fail> {
    let copy = copy_path()?;
    if !copy.exists() || is_used_by_host(roots, &copy).unwrap_or(true) {
        return Ok(None);
    }
    std::fs::remove_file(&copy).map_err(|error| file_error(&copy, error))?;
    // Fails for a folder with other files, which then stays.
    let _ = copy.parent().map(std::fs::remove_dir);
    Ok(Some(copy))
}

fn is_used_by_host(roots: &InitRoots, copy: &Path) -> Result<bool, Fail> {
    for target in InitTarget::value_variants() {
        let layout = target.resolve_layout(roots);
        let tools = match &layout.tools {
            Some((path, form)) => tools_program(path, *form)?,
            None => None,
        };
        let hooks = match &layout.hooks {
            Some((path, _)) => hook_programs(path)?,
            None => Vec::new(),
        };
        if tools
            .into_iter()
            .chain(hooks)
            .any(|program| Path::new(&program) == copy)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
