//! One job, one command: input JSON on its standard input, output JSON on its standard output. Dropping the work ends the command.

use chorus_client::market::PendingJob;
use chorus_wire::limits;
use serde_json::{Value, json};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

/// What a worker is told when its command fails (JOB-30).
const EXECUTION_FAILED: &str = "EXECUTION_ERROR";

/// Does the job and says how it went, as the document's result. What a command prints on standard error is the worker's own.
pub async fn run_job(
    command: &[String],
    job: &PendingJob,
    agent_id: &str,
    limit: Duration,
) -> Value {
    let started_at = Instant::now();
    let outcome = match tokio::time::timeout(limit, run_command(command, job)).await {
        Ok(Ok((status, output))) if status.success() => parse_output(&output),
        Ok(Ok((status, _))) => Err(format!("the command ended with {status}")),
        Ok(Err(error)) => Err(format!("the command could not be run: {}", error.kind())),
        Err(_) => Err("the command did not end in time".to_owned()),
    };
    let (status, output, code, message) = match outcome {
        Ok(output) => ("SUCCESS", output, Value::Null, Value::Null),
        Err(why) => ("FAILURE", Value::Null, json!(EXECUTION_FAILED), json!(why)),
    };
    let mut result = json!({"job_id": job.job_id, "agent_id": agent_id, "status": status, "output_data": output,
        "execution_time_ms": started_at.elapsed().as_millis() as u64, "error_message": message});
    if code != Value::Null {
        result["error_code"] = code;
    }
    result
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

async fn run_command(
    command: &[String],
    job: &PendingJob,
) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let (program, words) = command
        .split_first()
        .ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program)
        .args(words)
        // Nothing of a job is in the words: no input can become a command.
        .env("CHORUS_JOB_ID", &job.job_id)
        .env("CHORUS_SKILL_NAME", &job.skill_name)
        .env("CHORUS_ORCHESTRATOR_ID", &job.orchestrator_id)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Of its own, so that a job that is taken back ends with everything that the command has started.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group_guard = ProcessGroupGuard(child.id());
    let input = format!("{}\n", job.input_data);
    let stdin = child.stdin.take();
    let write_input = async move {
        if let Some(mut stdin) = stdin {
            // A command that does not read its input has its reasons; its exit status says the rest.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let stdout = child.stdout.take();
    let read_output = async move {
        let mut output = Vec::new();
        if let Some(stdout) = stdout {
            // One octet past the bound shows that there is more; the rest is not kept.
            stdout
                .take(limits::JOB_DATA_OCTETS as u64 + 1)
                .read_to_end(&mut output)
                .await?;
        }
        std::io::Result::Ok(output)
    };
    let ((), output) = tokio::join!(write_input, read_output);
    let output = output?;
    let status = child.wait().await?;
    group_guard.disarm();
    Ok((status, output))
}

/// Ends a command's group of processes unless it has ended by itself.
struct ProcessGroupGuard(Option<u32>);

impl ProcessGroupGuard {
    /// It is over: the number may be somebody else's from now on.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroupGuard {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        if let Some(group) = self.0.and_then(|id| Pid::from_raw(id as i32)) {
            // Gone already is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
