//! Runs the checks of schemas on threads that serve no requests, two at a time.

use super::schema::{self, JobValue};
use crate::{Result, limits};
use chorus_wire::market::skill::SkillOffer;
use chorus_wire::{Error, ErrorCode};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::timeout;

static SCHEMA_PERMITS: Semaphore = Semaphore::const_new(limits::SCHEMA_CHECKS_AT_ONCE);

/// Checks the schemas of the skills of one request. Callers do this before the transaction, so that
/// the writer does not wait for it.
pub(crate) async fn check_skills(skills: &[SkillOffer]) -> Result<()> {
    let with_schemas: Vec<SkillOffer> = skills
        .iter()
        .filter(|skill| skill.input_schema.is_some() || skill.output_schema.is_some())
        .cloned()
        .collect();
    if with_schemas.is_empty() {
        return Ok(());
    }
    run_schema_check(move || schema::check_skill_schemas(&with_schemas)).await
}

/// Checks an input against the skill as registered (JOB-27). A mismatch is refused before any
/// credits are held.
pub(crate) async fn check_input(skill: &Value, input: &Value) -> Result<()> {
    let Some(schema) = skill.get("input_schema").filter(|schema| !schema.is_null()) else {
        return Ok(());
    };
    check_job_value(JobValue::Input, schema, input).await
}

/// Checks an output against the schema that the job was given with, as JSON.
pub(crate) async fn check_output(schema: &str, output: &Value) -> Result<()> {
    let schema: Value = serde_json::from_str(schema).map_err(Error::internal)?;
    check_job_value(JobValue::Output, &schema, output).await
}

/// The verdict on an output, if it takes no longer than a statement of the transaction that asks; `None` otherwise.
pub(crate) fn check_small_output(schema: &str, output: &Value) -> Option<Result<()>> {
    let schema: Value = serde_json::from_str(schema).ok()?;
    schema::check_small_value(JobValue::Output, &schema, output)
}

async fn check_job_value(which: JobValue, schema: &Value, value: &Value) -> Result<()> {
    if let Some(verdict) = schema::check_small_value(which, schema, value) {
        return verdict;
    }
    let schema = schema.clone();
    let value = value.clone();
    run_schema_check(move || schema::check_value_now(which, &schema, &value)).await
}

/// A stranger's schema can take the CPU for tens of milliseconds. On a thread of the runtime it
/// would delay every request that the thread serves.
async fn run_schema_check(check: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    let permit = timeout(limits::SCHEMA_CHECK_WAIT, SCHEMA_PERMITS.acquire())
        .await
        .map_err(|_| ErrorCode::Unavailable)?
        .map_err(Error::internal)?;
    tokio::task::spawn_blocking(move || {
        // Held until the thread is free, even if the client has disconnected.
        let _permit = permit;
        check()
    })
    .await
    .map_err(Error::internal)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::mpsc;
    use std::time::Duration;
    use tokio::sync::Mutex;

    /// Longer than any step here takes on a busy machine.
    const END_TIMEOUT: Duration = Duration::from_secs(20);
    /// Held by the tests that need all permits of the process: two of them at once would wait for each other.
    static ALL_PERMITS: Mutex<()> = Mutex::const_new(());

    // the runtime has one thread. A check on it would wait for ever for the task that ends it.
    #[tokio::test]
    async fn a_check_does_not_occupy_the_thread_of_the_requests() {
        let (end, ended) = mpsc::channel::<()>();
        let check = run_schema_check(move || {
            ended.recv_timeout(END_TIMEOUT).map_err(Error::internal)?;
            Ok(())
        });
        let (checked, ()) = tokio::join!(check, async move { end.send(()).unwrap() });
        assert!(checked.is_ok(), "{checked:?}");
    }

    // a check holds its permit until its thread is free.
    #[tokio::test]
    async fn at_most_two_checks_run_at_once() {
        let _alone = ALL_PERMITS.lock().await;
        let (started, mut starts) = tokio::sync::mpsc::channel(2);
        let mut ends = Vec::new();
        let mut checks = Vec::new();
        for _ in 0..2 {
            let started = started.clone();
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            checks.push(tokio::spawn(run_schema_check(move || {
                started.blocking_send(()).map_err(Error::internal)?;
                ended.recv_timeout(END_TIMEOUT).map_err(Error::internal)
            })));
        }
        for _ in 0..2 {
            starts.recv().await.unwrap();
        }
        assert_eq!(SCHEMA_PERMITS.available_permits(), 0);
        for end in ends {
            end.send(()).unwrap();
        }
        for check in checks {
            assert!(check.await.unwrap().is_ok());
        }
    }

    // the clock stands still while a thread works, so a check without a permit would end before the timeout.
    #[tokio::test(start_paused = true)]
    async fn a_check_of_a_value_with_patterns_waits_for_its_turn() {
        let _alone = ALL_PERMITS.lock().await;
        let schema = json!({"type": "string", "pattern": "^a turn+$"});
        let skill = json!({"input_schema": schema});
        let schema = schema.to_string();
        // The second time the schema is compiled, and its patterns take time all the same.
        for value in [json!("a turnnn"), json!("no turn")] {
            let permits = SCHEMA_PERMITS
                .acquire_many(limits::SCHEMA_CHECKS_AT_ONCE as u32)
                .await
                .unwrap();
            let mut input = Box::pin(check_input(&skill, &value));
            let mut output = Box::pin(check_output(&schema, &value));
            let at_once = limits::SCHEMA_CHECK_WAIT / 2;
            let early = timeout(at_once, async {
                tokio::select! {
                    verdict = &mut input => verdict,
                    verdict = &mut output => verdict,
                }
            });
            let early = early.await;
            assert!(early.is_err(), "checked without a permit: {early:?}");
            drop(permits);
            let is_valid = value == "a turnnn";
            assert_eq!(input.await.is_ok(), is_valid, "{value}");
            assert_eq!(output.await.is_ok(), is_valid, "{value}");
        }
    }
}
