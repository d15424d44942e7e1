//! The checks of this machine: the program, the credential file, the hooks of hosts and the listener.

use super::DoctorCheck;
use crate::commands::init::installed_program::{SERVER_NAME, find_on_path, is_runnable};
use crate::commands::init::target::{InitRoots, InitTarget};
use crate::commands::init::{self};
use crate::fail::Fail;
use chorus_client::files::inbox_state::StateLock;
use chorus_client::files::{AgentCredentials, IdentityFiles};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The rights of others on a file.
const RIGHTS_OF_OTHERS: u32 = 0o077;

/// Whether a shell and a host find this program by its name.
pub fn check_program() -> DoctorCheck {
    const SUBJECT: &str = "program";
    let own_path = std::env::current_exe().and_then(std::fs::canonicalize);
    let Ok(own_path) = own_path else {
        return DoctorCheck::good(SUBJECT, "its path is not known here");
    };
    let folder = own_path.parent().unwrap_or(Path::new("/"));
    let fix = format!("export PATH={}:$PATH", folder.display());
    match find_on_path(SERVER_NAME) {
        None => DoctorCheck::wrong(
            SUBJECT,
            format!("{} is not on the PATH", own_path.display()),
            fix,
        ),
        Some(found) if std::fs::canonicalize(&found).is_ok_and(|found| found == own_path) => {
            DoctorCheck::good(SUBJECT, found.display().to_string())
        }
        Some(found) => DoctorCheck::wrong(
            SUBJECT,
            format!(
                "{} comes first on the PATH, and this is {}",
                found.display(),
                own_path.display()
            ),
            fix,
        ),
    }
}

pub fn check_credentials(
    files: &IdentityFiles,
    credentials: &chorus_client::Result<Option<AgentCredentials>>,
) -> DoctorCheck {
    const SUBJECT: &str = "credentials";
    let file = files.credentials.display();
    let credentials = match credentials {
        Ok(Some(credentials)) => credentials,
        Ok(None) => {
            let found = format!("there is no identity in {file}");
            return DoctorCheck::wrong(SUBJECT, found, "chorus register NAME --hub URL");
        }
        Err(error) => {
            let fix = "chorus register NAME --hub URL --credentials OTHER_FILE";
            return DoctorCheck::wrong(SUBJECT, error.to_string(), fix);
        }
    };
    let mode = std::fs::metadata(&files.credentials)
        .map(|metadata| metadata.permissions().mode() & 0o777)
        .unwrap_or_default();
    if mode & RIGHTS_OF_OTHERS != 0 {
        return DoctorCheck::wrong(
            SUBJECT,
            format!("other users can read the key in {file} (mode {mode:03o})"),
            format!("chmod 600 {file}"),
        );
    }
    DoctorCheck::good(SUBJECT, format!("{} in {file}", credentials.agent_id))
}

/// Whether the hooks of the hosts run a program that exists: a build folder that was cleaned breaks them silently.
pub fn check_hooks() -> Result<DoctorCheck, Fail> {
    const SUBJECT: &str = "hooks";
    let roots = InitRoots::find_roots()?;
    let mut installed = Vec::new();
    for target in [
        InitTarget::ClaudeUser,
        InitTarget::ClaudeProject,
        InitTarget::Codex,
    ] {
        let Some((path, _)) = target.resolve_layout(&roots).hooks else {
            continue;
        };
        let fix = format!("chorus init --target {}", target.target_name());
        let programs = match init::hook_programs(&path) {
            Ok(programs) => programs,
            Err(fail) => return Ok(DoctorCheck::wrong(SUBJECT, fail.to_string(), fix)),
        };
        if let Some(missing) = programs.iter().find(|program| !is_runnable(program)) {
            let file = roots.display_path(&path);
            let found = format!("{file} runs {missing}, which is not there");
            return Ok(DoctorCheck::wrong(SUBJECT, found, fix));
        }
        if !programs.is_empty() {
            installed.push(target.target_name());
        }
    }
    Ok(match installed.is_empty() {
        true => DoctorCheck::unused(
            SUBJECT,
            "no coding agent is set up",
            "chorus init --target claude-user, or another host",
        ),
        false => DoctorCheck::good(SUBJECT, installed.join(", ")),
    })
}

pub fn check_listener(files: &IdentityFiles) -> DoctorCheck {
    const SUBJECT: &str = "listener";
    if StateLock::is_held(files) {
        return DoctorCheck::good(SUBJECT, "chorus listen runs with this identity");
    }
    DoctorCheck::unused(
        SUBJECT,
        "messages wait until they are read",
        "chorus listen",
    )
}
