//! `chorus advise`: what this session is doing, told to the others (FRM-22, FRM-29).

use super::frame_context::{FrameContext, ScopeArgs, SenderArgs};
use super::{file_edit, git_tree};
use crate::{cli::CommonArgs, fail::Fail};
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
    /// The working tree; otherwise the one around you
    #[arg(long, value_name = "DIR")]
    worktree: Option<String>,
    /// The branch; otherwise the one that is checked out
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Say nothing of where you are
    #[arg(long, conflicts_with_all = ["worktree", "branch"])]
    nowhere: bool,
    /// Be an editor's hook: the session and the file come as JSON on standard input, and no failure stops the editor
    #[arg(long)]
    hook: bool,
    #[command(flatten)]
    toward: ScopeArgs,
    #[command(flatten)]
    voice: SenderArgs,
}

impl Args {
    /// As an editor's hook.
    pub fn for_hook(voice: SenderArgs) -> Self {
        let toward = ScopeArgs {
            scope: None,
            to: None,
        };
        let (text, files, worktree, branch) = (Vec::new(), Vec::new(), None, None);
        Self {
            text,
            files,
            worktree,
            branch,
            nowhere: false,
            hook: true,
            toward,
            voice,
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
    edit.fill_session(&mut args.voice);
    // An editor may run its hooks anywhere; the file says which working tree it is.
    let tree = Path::new(&edit.file)
        .parent()
        .and_then(git_tree::GitTree::find_around);
    args.files.push(edit.file);
    file_edit::report_only(
        send_advisory(
            &CommonArgs {
                json: true,
                ..common.clone()
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
    let context = FrameContext::open(common, args.voice).await?;
    let tree = tree.filter(|_| !args.nowhere);
    let root = tree.as_ref().map(|tree| tree.root.display().to_string());
    let branch = tree.as_ref().and_then(git_tree::GitTree::current_branch);
    // What git says is a courtesy: a name too long for a frame is left out, one that was typed is refused.
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
        .send_and_print(&context.resolve_scope(&args.toward), payload, json!({}))
        .await
        .map(|_| ())
}
