//! `chorus advise`: announces to other sessions what this session is doing (FRM-22, FRM-29).

use super::frame_context::{FrameContext, ScopeArgs, SenderArgs};
use super::{file_edit, git_tree};
use crate::{cli::CommonArgs, command_client, fail::Fail};
use chorus_wire::frame::payload::AgentAdvisory;
use chorus_wire::limits;
use serde_json::json;
use std::path::Path;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What you are doing
    #[arg(required_unless_present = "hook")]
    text: Vec<String>,
    /// A file it is about; may be repeated. Inside a repository it is named from its root
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<String>,
    /// The working tree; default: the current one
    #[arg(long, value_name = "DIR")]
    worktree: Option<String>,
    /// The branch; default: the current one
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Do not send the working tree and branch
    #[arg(long, conflicts_with_all = ["worktree", "branch"])]
    nowhere: bool,
    /// Run as an editor's hook: reads the session and the file as JSON from standard input, and never fails
    #[arg(long)]
    hook: bool,
    #[command(flatten)]
    target: ScopeArgs,
    #[command(flatten)]
    sender: SenderArgs,
}

impl Args {
    /// The arguments of `--hook`.
    pub fn for_hook(sender: SenderArgs) -> Self {
        let target = ScopeArgs {
            scope: None,
            to: None,
        };
        let text = Vec::new();
        let files = Vec::new();
        let worktree = None;
        let branch = None;
        Self {
            text,
            files,
            worktree,
            branch,
            nowhere: false,
            hook: true,
            target,
            sender,
        }
    }
}

pub async fn run(common: &CommonArgs, mut args: Args) -> Result<(), Fail> {
    if !args.hook {
        return send_advisory(common, args, git_tree::GitTree::find_current()).await;
    }
    let Some(edit) = file_edit::FileEdit::read_stdin() else {
        return Ok(());
    };
    if args.text.is_empty() {
        args.text
            .push(format!("edited {}", git_tree::shared_name(&edit.file)));
    }
    edit.fill_session(&mut args.sender);
    let common = match command_client::pin_credentials(common) {
        Ok(common) => common,
        Err(fail) => return file_edit::report_only(Err(fail)),
    };
    // An editor may run its hooks in any folder, so the working tree is that of the file.
    let tree = Path::new(&edit.file)
        .parent()
        .and_then(git_tree::GitTree::find_around);
    args.files.push(edit.file);
    file_edit::report_only(
        send_advisory(
            &CommonArgs {
                json: true,
                ..common
            },
            args,
            tree,
        )
        .await,
    )
}

async fn send_advisory(
    common: &CommonArgs,
    args: Args,
    tree: Option<git_tree::GitTree>,
) -> Result<(), Fail> {
    let context = FrameContext::open(common, args.sender).await?;
    let tree = tree.filter(|_| !args.nowhere);
    let root = tree.as_ref().map(|tree| tree.root.display().to_string());
    let branch = tree.as_ref().and_then(git_tree::GitTree::current_branch);
    // A name from git that is too long for a frame is left out; only one that the user typed is refused.
    let root = root.filter(|text| text.len() <= limits::FRAME_PATH_OCTETS);
    let branch = branch.filter(|text| text.len() <= limits::FRAME_LABEL_OCTETS);
    let files: Vec<String> = args
        .files
        .iter()
        .map(|file| git_tree::shared_name(file))
        .collect();
    let payload = AgentAdvisory {
        advisory_text: args.text.join(" "),
        file_refs: Some(files).filter(|files| !files.is_empty()),
        worktree: args.worktree.or(root),
        branch: args.branch.or(branch),
    };
    context
        .send_and_print(
            &context.resolve_scope(&args.target).await?,
            payload,
            json!({}),
        )
        .await
        .map(|_| ())
}
