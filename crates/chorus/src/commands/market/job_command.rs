//! Runs a command for a job: input JSON on standard input, output JSON on standard output. Dropping the future kills it.

use chorus_client::market::PendingJob;
use chorus_wire::limits;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, Command};

/// The error code of a job whose command failed (JOB-30).
const EXECUTION_FAILED: &str = "EXECUTION_ERROR";
/// The error code of a job that the worker declines: no score moves.
pub const DECLINED: &str = "SKILL_MISMATCH";

/// What the requester learns from the standard error of a command that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorSharing {
    /// Nothing: it may contain paths, inputs of other jobs or secrets of the worker.
    Private,
    /// Its last line, cut to [`SHARED_LINE_CHARS`].
    LastLine,
}

/// Max characters of the line that the requester gets: a sentence, not a log.
const SHARED_LINE_CHARS: usize = 200;

/// Runs the job and returns its result as the specification defines it. The command's standard error is passed on to that of the
/// worker.
pub async fn run_job(
    command: &[String],
    job: &PendingJob,
    agent_id: &str,
    limit: Duration,
    sharing: ErrorSharing,
) -> Value {
    let started_at = Instant::now();
    let outcome = match tokio::time::timeout(limit, run_command(command, job, sharing)).await {
        Ok(Ok(ended)) if ended.status.success() => parse_output(&ended.output),
        Ok(Ok(ended)) => {
            let last_line = ended.error_line.map(|line| format!(": {line}"));
            let last_line = last_line.unwrap_or_default();
            Err(format!(
                "the command ended with {}{last_line}",
                ended.status
            ))
        }
        Ok(Err(error)) => Err(format!("the command could not be run: {}", error.kind())),
        Err(_) => Err("the command did not end in time".to_owned()),
    };
    let find_text = |key| read_only_text(outcome.as_ref().ok()?, key);
    if let Some(question) = find_text(QUESTION_KEY) {
        return json!({"job_id": job.job_id, "agent_id": agent_id, "status": "PENDING", "question": question});
    }
    let reason = find_text(DECLINE_KEY);
    let (status, output, code, message) = match (outcome, reason) {
        (_, Some(reason)) => ("FAILURE", Value::Null, json!(DECLINED), json!(reason)),
        (Ok(output), None) => ("SUCCESS", output, Value::Null, Value::Null),
        (Err(message), None) => (
            "FAILURE",
            Value::Null,
            json!(EXECUTION_FAILED),
            json!(message),
        ),
    };
    let mut result = json!({"job_id": job.job_id, "agent_id": agent_id, "status": status, "output_data": output,
        "execution_time_ms": started_at.elapsed().as_millis() as u64, "error_message": message});
    if code != Value::Null {
        result["error_code"] = code;
    }
    result
}

/// The output by which a command asks its requester instead of giving a result.
const QUESTION_KEY: &str = "chorus_question";
/// The output by which a command declines the job, with the reason: the input is not one that it can work with.
const DECLINE_KEY: &str = "chorus_decline";

/// The text under a key that is the only one of an output.
fn read_only_text(output: &Value, key: &str) -> Option<String> {
    let object = output.as_object().filter(|object| object.len() == 1)?;
    object.get(key)?.as_str().map(str::to_owned)
}

/// Checks that the program of a command can be run, before any job is taken for it.
pub fn check_command(command: &[String]) -> Result<(), String> {
    let program = command.first().map(String::as_str).unwrap_or_default();
    let is_program = |path: &Path| {
        let mode = std::fs::metadata(path).map(|file| (file.is_file(), file.permissions().mode()));
        mode.is_ok_and(|(is_file, mode)| is_file && mode & 0o111 != 0)
    };
    let is_found = if program.contains('/') {
        is_program(Path::new(program))
    } else {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&folders).any(|folder| is_program(&folder.join(program)))
    };
    if is_found {
        Ok(())
    } else {
        Err(format!("{program} is not a program that can be run"))
    }
}

fn parse_output(output: &[u8]) -> Result<Value, String> {
    if output.len() > limits::JOB_DATA_OCTETS {
        return Err(format!(
            "the command printed more than {} octets",
            limits::JOB_DATA_OCTETS
        ));
    }
    serde_json::from_slice(output).map_err(|_| "the command did not print JSON".to_owned())
}

/// A command that has ended.
struct EndedCommand {
    status: ExitStatus,
    output: Vec<u8>,
    /// The last line of its standard error, where the requester may have it.
    error_line: Option<String>,
}

async fn run_command(
    command: &[String],
    job: &PendingJob,
    sharing: ErrorSharing,
) -> std::io::Result<EndedCommand> {
    let (program, program_args) = command
        .split_first()
        .ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program)
        .args(program_args)
        // No part of a job is in the arguments, so no input can become a command.
        .env("CHORUS_JOB_ID", &job.job_id)
        .env("CHORUS_SKILL_NAME", &job.skill_name)
        .env("CHORUS_ORCHESTRATOR_ID", &job.orchestrator_id)
        .env(
            "CHORUS_QUESTION",
            job.question.as_deref().unwrap_or_default(),
        )
        .env("CHORUS_ANSWER", job.answer.as_deref().unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(match sharing {
            ErrorSharing::Private => Stdio::inherit(),
            ErrorSharing::LastLine => Stdio::piped(),
        })
        // Its own process group, so that a cancelled job also kills the child processes of the command.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group_guard = ProcessGroupGuard(child.id());
    let input = format!("{}\n", job.input_data);
    let stdin = child.stdin.take();
    let write_input = async move {
        if let Some(mut stdin) = stdin {
            // A command may ignore its input; only its exit status counts.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let stdout = child.stdout.take();
    let read_output = async move {
        let mut output = Vec::new();
        if let Some(stdout) = stdout {
            // Read one octet past the limit to detect longer output.
            stdout
                .take(limits::JOB_DATA_OCTETS as u64 + 1)
                .read_to_end(&mut output)
                .await?;
        }
        std::io::Result::Ok(output)
    };
    let read_errors = pass_errors_on(child.stderr.take());
    let ((), output, error_line) = tokio::join!(write_input, read_output, read_errors);
    let output = output?;
    let status = child.wait().await?;
    group_guard.disarm();
    Ok(EndedCommand {
        status,
        output,
        error_line,
    })
}

/// Writes the standard error of a command to that of this process. Returns its last line that is not empty.
async fn pass_errors_on(stderr: Option<ChildStderr>) -> Option<String> {
    let mut errors = BufReader::new(stderr?);
    let mut last_line = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line without an end is passed on in pieces, so that it takes no memory.
        let mut piece = (&mut errors).take(limits::DETAIL_CHARS as u64);
        if piece.read_until(b'\n', &mut line).await.unwrap_or(0) == 0 {
            return last_line;
        }
        // A terminal that is gone does not end the job.
        let _ = tokio::io::stderr().write_all(&line).await;
        let text = String::from_utf8_lossy(&line);
        let shared: String = text
            .trim()
            .chars()
            .filter(|c| !c.is_control())
            .take(SHARED_LINE_CHARS)
            .collect();
        last_line = Some(shared).filter(|line| !line.is_empty()).or(last_line);
    }
}

/// Kills a command's process group when dropped, unless the command has ended.
struct ProcessGroupGuard(Option<u32>);

impl ProcessGroupGuard {
    /// The command has ended: its process id may be reused from now on.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroupGuard {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        if let Some(group) = self.0.and_then(|id| Pid::from_raw(id as i32)) {
            // Fails when the group has already ended, which is fine.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
