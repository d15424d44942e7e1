//! `chorus pipeline`: several hires in a row, each one's output feeding the next, within one budget.

use super::{read, wait};
use crate::{cli::Common, fail::Exit, fail::Fail, out, session::Session};
use chorus_client::market::Hire;
use chorus_wire::market::credits::Credits;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The steps, in TOML or JSON
    file: String,
    /// The first input as JSON, @FILE, or - for standard input; otherwise the file's
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
    /// The most that all steps may cost together; otherwise the file's
    #[arg(long, value_name = "CREDITS", value_parser = read::amount)]
    budget: Option<Credits>,
}

/// What the file says. An unknown word in it is an error: it may be a misspelt budget.
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
    /// The most that this step may cost; otherwise all that is left.
    budget: Option<Number>,
    deadline: Option<String>,
    /// What goes in; `"$output"` in it is the output of the step before, `"$output.a.b"` a part of it, `"$input"` the first
    /// input. Without it the output goes in as it is.
    input: Option<Value>,
}

/// What is said of each step.
#[derive(Debug, Serialize)]
struct Done<'a> {
    step: usize,
    skill_name: &'a str,
    agent_id: &'a str,
    job_id: &'a str,
    execution_cost: Credits,
    output_data: &'a Value,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let plan = plan(&args.file)?;
    let mut left = match (args.budget, &plan.budget) {
        (Some(budget), _) => budget,
        (None, Some(budget)) => amount(budget)?,
        (None, None) => {
            return Err(Fail::usage(
                "the pipeline has no budget; say it in the file or with --budget",
            ));
        }
    };
    let first = args.input.as_deref().map_or(Ok(plan.input), read::input)?;
    let session = Session::open(common)?;
    let mut ear = wait::Ear::open(&session.client).await?;
    let mut output = first.clone();
    for (place, step) in plan.steps.iter().enumerate() {
        let at_step = |fail: Fail| fail.within(&format!("step {} ({})", place + 1, step.skill));
        let input = match &step.input {
            Some(template) => fill(template, &first, &output)
                .map_err(Fail::usage)
                .map_err(at_step)?,
            None => output,
        };
        if left.is_zero() {
            return Err(at_step(Fail::new(
                Exit::Refused,
                "BUDGET_INSUFFICIENT",
                "nothing of the budget is left",
            )));
        }
        let budget = step
            .budget
            .as_ref()
            .map(amount)
            .transpose()?
            .map_or(left, |budget| budget.min(left));
        let deadline = step
            .deadline
            .as_deref()
            .map(crate::commands::span::parse)
            .transpose()
            .map_err(Fail::usage)?;
        let mut hire = Hire::new(&step.skill, input, budget).within(deadline);
        hire.agent_id = step.agent.clone();
        let job = ear.result(&hire).await.map_err(at_step)?;
        wait::succeeded(&job).map_err(at_step)?;
        let cost = job.execution_cost.unwrap_or(budget);
        left = left.less(cost);
        let done = Done {
            step: place + 1,
            skill_name: &job.skill_name,
            agent_id: &job.agent_id,
            job_id: &job.job_id,
            execution_cost: cost,
            output_data: &job.output_data,
        };
        if common.json {
            out::say(true, &done, String::new);
        } else {
            let (skill, agent) = (out::harmless(done.skill_name), out::harmless(done.agent_id));
            tracing::info!("{}. {skill} by {agent} for {cost}, {left} left", done.step);
        }
        output = job.output_data;
    }
    if !common.json {
        out::line(&output.to_string());
    }
    Ok(())
}

fn plan(file: &str) -> Result<Plan, Fail> {
    let text = read::file_text(file)?;
    let wrong = |why: String| Fail::usage(format!("{file}: {why}"));
    let plan: Plan = if file.ends_with(".json") {
        serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?
    } else {
        let value: Value = toml::from_str(&text).map_err(|e| wrong(e.message().to_owned()))?;
        serde_json::from_value(value).map_err(|e| wrong(e.to_string()))?
    };
    if plan.steps.is_empty() {
        Err(wrong("it has no steps".into()))
    } else {
        Ok(plan)
    }
}

fn amount(number: &Number) -> Result<Credits, Fail> {
    read::amount(&number.to_string()).map_err(Fail::usage)
}

/// A step's input with its references filled in.
fn fill(template: &Value, first: &Value, output: &Value) -> Result<Value, String> {
    let inside = |value: &Value| fill(value, first, output);
    match template {
        Value::String(text) => match text
            .strip_prefix('$')
            .map(|path| path.split_once('.').unwrap_or((path, "")))
        {
            Some(("input", path)) => {
                part(first, path).ok_or_else(|| format!("{text} is not there"))
            }
            Some(("output", path)) => {
                part(output, path).ok_or_else(|| format!("{text} is not there"))
            }
            Some(_) | None => Ok(template.clone()),
        },
        Value::Array(items) => items
            .iter()
            .map(inside)
            .collect::<Result<_, _>>()
            .map(Value::Array),
        Value::Object(map) => {
            let fields = map
                .iter()
                .map(|(key, value)| Ok((key.clone(), inside(value)?)));
            fields.collect::<Result<_, String>>().map(Value::Object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(template.clone()),
    }
}

fn part(value: &Value, path: &str) -> Option<Value> {
    let mut names = path.split('.').filter(|name| !name.is_empty());
    let found = names.try_fold(value, |value, name| match name.parse::<usize>() {
        Ok(place) if value.is_array() => value.get(place),
        Ok(_) | Err(_) => value.get(name),
    });
    found.cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reference_stands_for_what_came_before() {
        let (first, output) = (
            json!({"to": "ja"}),
            json!({"text": "hello", "parts": [{"n": 1}]}),
        );
        let filled = fill(
            &json!({"text": "$output.text", "to": "$input.to", "n": ["$output.parts.0.n"], "price": "$5", "all": "$output"}),
            &first,
            &output,
        );
        assert_eq!(
            filled,
            Ok(json!({"text": "hello", "to": "ja", "n": [1], "price": "$5", "all": output}))
        );
        assert!(
            fill(&json!("$output.gone"), &first, &output)
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
                .and_then(|plan| amount(&plan.budget?).ok())
        };
        assert_eq!(
            read("budget = 0.30\nsteps = []"),
            Some(Credits::hundredths(30))
        );
        assert_eq!(
            read("budget = 2\nsteps = []"),
            Some(Credits::hundredths(200))
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
