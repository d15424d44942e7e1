//! Brokered jobs: hirers that ask for the next job when they hear the result of the last, workers on their inbox streams.

use crate::Times;
use crate::line::{Failure, Line, register};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::sync::mpsc;

/// Connections on which one worker reports results.
const REPORTERS: usize = 4;
/// What is not counted: caches, prepared statements and the page cache are warm after it.
const WARM_UP: Duration = Duration::from_secs(1);

const WARMING_UP: u8 = 0;
const COUNTING: u8 = 1;
const STOPPING: u8 = 2;

pub async fn run(hub: &str, hirers: usize, workers: usize, seconds: usize) -> Result<(), Failure> {
    let mut desk = Line::open(hub, "").await?;
    // Two runs on one hub must not meet.
    let run = std::process::id();
    for number in 0..workers {
        let skill = json!([{"skill_name": format!("skill-{run}-{number}"), "cost_per_call": 0.01,
            "input_schema": {"text": "string"}}]);
        let key = register(&mut desk, &format!("worker-{run}-{number}"), &skill).await?;
        work(hub, &key).await?;
    }
    let phase = Arc::new(AtomicU8::new(WARMING_UP));
    let mut hiring = Vec::new();
    for number in 0..hirers {
        let key = register(&mut desk, &format!("hirer-{run}-{number}"), &json!([])).await?;
        let (line, inbox) = (
            Line::open(hub, &key).await?,
            Line::open(hub, &key).await?.listen().await?,
        );
        let skill = format!("skill-{run}-{}", number % workers);
        let (name, phase) = (format!("{run}-{number}"), phase.clone());
        hiring.push(tokio::spawn(async move {
            hire(line, inbox, &skill, &name, &phase)
                .await
                .map_err(|e| e.to_string())
        }));
    }
    tokio::time::sleep(WARM_UP).await;
    let begin = Instant::now();
    phase.store(COUNTING, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    phase.store(STOPPING, Ordering::Relaxed);
    let took = begin.elapsed();
    let mut times = Times(Vec::new());
    for hirer in hiring {
        times.0.extend(hirer.await??);
    }
    let economy = desk.asked("GET", "/economy", "").await?;
    println!(
        r#"{{"jobs_per_s":{:.0},"jobs":{},"ms":{},"hirers":{hirers},"workers":{workers},"seconds":{:.1},"held":{},"states":{}}}"#,
        times.0.len() as f64 / took.as_secs_f64(),
        times.0.len(),
        times.summary(),
        took.as_secs_f64(),
        economy["held"],
        economy["job_states"]
    );
    Ok(())
}

/// Does every job that comes to this inbox, until the process ends.
async fn work(hub: &str, key: &str) -> Result<(), Failure> {
    let mut inbox = Line::open(hub, key).await?.listen().await?;
    let (give, jobs) = mpsc::channel::<String>(1_024);
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..REPORTERS {
        let (mut line, jobs) = (Line::open(hub, key).await?, jobs.clone());
        tokio::spawn(async move {
            loop {
                let Some(id) = jobs.lock().await.recv().await else {
                    return;
                };
                let result = r#"{"status":"SUCCESS","output_data":{"entities":["42"]},"execution_time_ms":1}"#;
                match line
                    .ask("POST", &format!("/jobs/{id}/result"), result)
                    .await
                {
                    Ok((200, _)) => {}
                    other => return eprintln!("a result was not taken: {other:?}"),
                }
            }
        });
    }
    tokio::spawn(async move {
        while let Ok((name, data)) = inbox.event().await {
            let job: Value = serde_json::from_str(&data).unwrap_or_default();
            if let (true, Some(id)) = (name == "job", job["job_id"].as_str())
                && give.send(id.to_owned()).await.is_err()
            {
                return;
            }
        }
    });
    Ok(())
}

/// How long each job took from its request to the news of its settlement. Only those count that began and ended while it was counted.
async fn hire(
    mut line: Line,
    mut inbox: Line,
    skill: &str,
    name: &str,
    phase: &AtomicU8,
) -> Result<Vec<Duration>, Failure> {
    let mut times = Vec::new();
    for number in 0.. {
        let counted = match phase.load(Ordering::Relaxed) {
            STOPPING => break,
            phase => phase == COUNTING,
        };
        let asked = Instant::now();
        let body = format!(
            r#"{{"job_id":"job-{name}-{number}","skill_name":"{skill}","input_data":{{"text":"Revenue was 42"}},"budget":0.02}}"#
        );
        let (status, answer) = line.ask("POST", "/jobs", &body).await?;
        if status != 202 {
            return Err(format!(
                "a job was not taken: {status} {}",
                String::from_utf8_lossy(&answer)
            )
            .into());
        }
        loop {
            let (event, data) = inbox.event().await?;
            if event == "job_result" {
                let result: Value = serde_json::from_str(&data)?;
                if result["status"] != "SUCCESS" {
                    return Err(format!("a job failed: {result}").into());
                }
                break;
            }
        }
        if counted && phase.load(Ordering::Relaxed) == COUNTING {
            times.push(asked.elapsed());
        }
    }
    Ok(times)
}
