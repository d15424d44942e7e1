//! `chorus pipeline`: runs several jobs in a row within one budget; each output is the input of the next.

use super::{job_waiter, read_input};
use crate::{agent_names, cli::CommonArgs, command_client::CommandClient};
use crate::{fail::ExitKind, fail::Fail, output};
use chorus_client::market::JobRequest;
use chorus_wire::credits::Credits;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The steps, in TOML or JSON
    file: String,
    /// The first input as JSON, @FILE, or - for standard input; default: the file's
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// The maximum cost of all steps together; default: the file's
    #[arg(long, value_name = "CREDITS", value_parser = read_input::parse_amount)]
    budget: Option<Credits>,
}

/// The pipeline file. An unknown field is an error, because it may be a misspelt `budget`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    budget: Option<Number>,
    #[serde(default)]
    input: Value,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    skill: String,
    agent: Option<String>,
    /// The maximum cost of this step; default: the rest of the budget.
    budget: Option<Number>,
    deadline: Option<String>,
    /// The step's input. `"$output"` in it is the output of the previous step, `"$output.a.b"` a part of it, `"$input"`
    /// the first input. Default: the output of the previous step.
    input: Option<Value>,
}

/// The JSON line of each step.
#[derive(Debug, Serialize)]
struct StepOutput<'a> {
    step: usize,
    skill_name: &'a str,
    agent_id: &'a str,
    job_id: &'a str,
    execution_cost: Credits,
    output_data: &'a Value,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let mut plan = read_plan(&args.file)?;
    let mut remaining_budget = match (args.budget, &plan.budget) {
        (Some(budget), _) => budget,
        (None, Some(budget)) => parse_amount(budget)?,
        (None, None) => {
            return Err(Fail::usage_error(
                "the pipeline has no budget; say it in the file or with --budget",
            ));
        }
    };
    let pipeline_input = args
        .input
        .as_deref()
        .map_or(Ok(plan.input), read_input::read_input)?;
    let command = CommandClient::open(common)?;
    resolve_agents(&command, &mut plan.steps).await?;
    let mut waiter = job_waiter::JobWaiter::open(&command.client, common.json).await?;
    let mut output = pipeline_input.clone();
    for (index, step) in plan.steps.iter().enumerate() {
        let at_step = |fail: Fail| step.explain(index, fail);
        let input = match &step.input {
            Some(template) => fill_template(template, &pipeline_input, &output)
                .map_err(Fail::usage_error)
                .map_err(at_step)?,
            None => output,
        };
        if remaining_budget.is_zero() {
            return Err(at_step(Fail::new(
                ExitKind::Refused,
                "BUDGET_INSUFFICIENT",
                "nothing of the budget is left",
            )));
        }
        let budget = step
            .budget
            .as_ref()
            .map(parse_amount)
            .transpose()?
            .map_or(remaining_budget, |budget| budget.min(remaining_budget));
        let deadline = step
            .deadline
            .as_deref()
            .map(crate::commands::duration::parse_duration)
            .transpose()
            .map_err(Fail::usage_error)?;
        let mut request = JobRequest::new(&step.skill, input, budget).with_deadline(deadline);
        request.agent_id = step.agent.clone();
        let job = waiter.request_and_wait(&request).await.map_err(at_step)?;
        job_waiter::check_success(&job).map_err(at_step)?;
        let cost = job.execution_cost.unwrap_or(budget);
        remaining_budget = remaining_budget.saturating_sub(cost);
        let step_output = StepOutput {
            step: index + 1,
            skill_name: &job.skill_name,
            agent_id: job.agent_id.as_deref().unwrap_or_default(),
            job_id: &job.job_id,
            execution_cost: cost,
            output_data: &job.output_data,
        };
        report_step(common, &step_output, remaining_budget);
        output = job.output_data;
    }
    if !common.json {
        output::print_json(&output.to_string());
    }
    Ok(())
}

impl Step {
    fn explain(&self, index: usize, fail: Fail) -> Fail {
        fail.with_context(&format!("step {} ({})", index + 1, self.skill))
    }
}

/// Completes the names of the agents before any step is paid for.
async fn resolve_agents(command: &CommandClient, steps: &mut [Step]) -> Result<(), Fail> {
    for (index, step) in steps.iter_mut().enumerate() {
        if let Some(agent) = &step.agent {
            let resolved = agent_names::resolve_agent(&command.client, agent).await;
            step.agent = Some(resolved.map_err(|fail| step.explain(index, fail))?);
        }
    }
    Ok(())
}

fn report_step(common: &CommonArgs, step_output: &StepOutput<'_>, remaining_budget: Credits) {
    if common.json {
        output::print_result(true, step_output, String::new);
        return;
    }
    let skill = output::escape_controls(step_output.skill_name);
    let agent = output::escape_controls(step_output.agent_id);
    let cost = step_output.execution_cost;
    tracing::info!(
        "{}. {skill} by {agent} for {cost}, {remaining_budget} left",
        step_output.step
    );
}

fn read_plan(file: &str) -> Result<Plan, Fail> {
    let text = read_input::read_file(file)?;
    let plan_error = |message: String| Fail::usage_error(format!("{file}: {message}"));
    let plan: Plan = if file.ends_with(".json") {
        serde_json::from_str(&text).map_err(|e| plan_error(e.to_string()))?
    } else {
        let value: Value = toml::from_str(&text).map_err(|e| plan_error(e.message().to_owned()))?;
        serde_json::from_value(value).map_err(|e| plan_error(e.to_string()))?
    };
    if plan.steps.is_empty() {
        Err(plan_error("it has no steps".into()))
    } else {
        Ok(plan)
    }
}

fn parse_amount(number: &Number) -> Result<Credits, Fail> {
    read_input::parse_amount(&number.to_string()).map_err(Fail::usage_error)
}

/// Replaces the references in a step's input.
fn fill_template(
    template: &Value,
    pipeline_input: &Value,
    output: &Value,
) -> Result<Value, String> {
    let fill_nested = |value: &Value| fill_template(value, pipeline_input, output);
    match template {
        Value::String(text) => match text
            .strip_prefix('$')
            .map(|path| path.split_once('.').unwrap_or((path, "")))
        {
            Some(("input", path)) => {
                value_at(pipeline_input, path).ok_or_else(|| format!("{text} is not there"))
            }
            Some(("output", path)) => {
                value_at(output, path).ok_or_else(|| format!("{text} is not there"))
            }
            Some(_) | None => Ok(template.clone()),
        },
        Value::Array(items) => items
            .iter()
            .map(fill_nested)
            .collect::<Result<_, _>>()
            .map(Value::Array),
        Value::Object(map) => {
            let fields = map
                .iter()
                .map(|(key, value)| Ok((key.clone(), fill_nested(value)?)));
            fields.collect::<Result<_, String>>().map(Value::Object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(template.clone()),
    }
}

fn value_at(value: &Value, path: &str) -> Option<Value> {
    let mut names = path.split('.').filter(|name| !name.is_empty());
    let found = names.try_fold(value, |value, name| match name.parse::<usize>() {
        Ok(index) if value.is_array() => value.get(index),
        Ok(_) | Err(_) => value.get(name),
    });
    found.cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_replaced_by_earlier_values() {
        let pipeline_input = json!({"to": "ja"});
        let output = json!({"text": "hello", "parts": [{"n": 1}]});
        let filled = fill_template(
            &json!({"text": "$output.text", "to": "$input.to", "n": ["$output.parts.0.n"], "price": "$5", "all": "$output"}),
            &pipeline_input,
            &output,
        );
        assert_eq!(
            filled,
            Ok(json!({"text": "hello", "to": "ja", "n": [1], "price": "$5", "all": output}))
        );
        assert!(
            fill_template(&json!("$output.gone"), &pipeline_input, &output)
                .unwrap_err()
                .contains("$output.gone")
        );
    }

    #[test]
    fn amounts_in_a_file_keep_their_digits() {
        let read = |text: &str| {
            let value: Value = toml::from_str(text).unwrap();
            serde_json::from_value::<Plan>(value)
                .ok()
                .and_then(|plan| parse_amount(&plan.budget?).ok())
        };
        assert_eq!(
            read("budget = 0.30\nsteps = []"),
            Some(Credits::from_hundredths(30))
        );
        assert_eq!(
            read("budget = 2\nsteps = []"),
            Some(Credits::from_hundredths(200))
        );
        for bad in [
            "budget = 0.001\nsteps = []",
            "budget = -1\nsteps = []",
            "budgett = 1\nsteps = []",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
