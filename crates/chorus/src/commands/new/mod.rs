//! `chorus new`: writes a small agent project with the SDK, a test against a real hub and a README.

mod project_name;
mod sdk_source;
mod template;

use crate::{cli::CommonArgs, fail::Fail, output};
use project_name::ProjectName;
use sdk_source::SdkSource;
use std::io::Write;
use std::path::{Path, PathBuf};
use template::ProjectLanguage;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The language of the project
    #[arg(value_enum)]
    language: ProjectLanguage,
    /// Its name: of the folder, of the package and of the agent
    #[arg(value_parser = ProjectName::parse)]
    name: ProjectName,
    /// Use the SDK in this checkout of Chorus instead of the published one
    #[arg(long, value_name = "PATH")]
    sdk: Option<PathBuf>,
}

pub fn run(common: &CommonArgs, args: &Args) -> Result<(), Fail> {
    let source = SdkSource::find(args.language, args.sdk.as_deref())?;
    let folder = Path::new(args.name.as_str());
    prepare_folder(folder)?;
    let files = args.language.render_files(&args.name, &source);
    for (file, text) in &files {
        write_new_file(&folder.join(file), text)?;
    }
    let names: Vec<&str> = files.iter().map(|(file, _)| *file).collect();
    let result = serde_json::json!({ "folder": folder, "files": names });
    output::print_result(common.json, &result, || {
        let steps = args.language.first_steps();
        let steps = steps.iter().map(|step| format!("\n  {step}"));
        format!(
            "{} is an agent that answers messages. Next:\n  cd {}{}",
            args.name.as_str(),
            args.name.as_str(),
            steps.collect::<String>()
        )
    });
    Ok(())
}

/// Creates the folder, or accepts an empty one: nothing that is there is mixed with the project.
fn prepare_folder(folder: &Path) -> Result<(), Fail> {
    let fail = |error: std::io::Error| file_error(folder, &error.to_string());
    match std::fs::create_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        created => return created.map_err(fail),
    }
    if !folder.is_dir() {
        return Err(file_error(folder, "is there already, and is no folder"));
    }
    match std::fs::read_dir(folder).map_err(fail)?.next() {
        None => Ok(()),
        Some(_) => Err(file_error(folder, "is there already, and is not empty")),
    }
}

/// Another program may have written the file since the folder was seen empty, so the file must be new too.
fn write_new_file(path: &Path, text: &str) -> Result<(), Fail> {
    let mut options = std::fs::OpenOptions::new();
    let written = options
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| file_error(path, &error.to_string()))
}

fn file_error(path: &Path, what: &str) -> Fail {
    let message = format!("{} {what}", path.display());
    Fail::new(crate::fail::ExitKind::Usage, "FILE", message)
}
