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
