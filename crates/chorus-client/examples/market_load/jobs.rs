//! Measures brokered jobs: each hirer requests its next job after the last result; workers read their inbox streams.

use crate::Times;
use crate::connection::{BoxError, HubConnection, register_agent};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::sync::mpsc;

/// Connections on which one worker delivers results.
const REPORTERS: usize = 4;
/// Uncounted time at the start: caches, prepared statements and the page cache are warm after it.
const WARM_UP: Duration = Duration::from_secs(1);

const WARMING_UP: u8 = 0;
const COUNTING: u8 = 1;
const STOPPING: u8 = 2;

pub async fn run(hub: &str, hirers: usize, workers: usize, seconds: usize) -> Result<(), BoxError> {
    let mut control = HubConnection::open(hub, "").await?;
    // Names contain the process id, so that two runs on one hub do not collide.
    let run = std::process::id();
    for number in 0..workers {
        let skill = json!([{"skill_name": format!("skill-{run}-{number}"), "cost_per_call": 0.01,
            "input_schema": {"text": "string"}}]);
        let key = register_agent(&mut control, &format!("worker-{run}-{number}"), &skill).await?;
        start_worker(hub, &key).await?;
    }
    let phase = Arc::new(AtomicU8::new(WARMING_UP));
    let mut hiring = Vec::new();
    for number in 0..hirers {
        let key =
            register_agent(&mut control, &format!("hirer-{run}-{number}"), &json!([])).await?;
        let connection = HubConnection::open(hub, &key).await?;
        let inbox = HubConnection::open(hub, &key).await?.open_inbox().await?;
        let skill = format!("skill-{run}-{}", number % workers);
        let name = format!("{run}-{number}");
        let phase = phase.clone();
        hiring.push(tokio::spawn(async move {
            run_hirer(connection, inbox, &skill, &name, &phase)
                .await
                .map_err(|e| e.to_string())
        }));
    }
    tokio::time::sleep(WARM_UP).await;
    let started_at = Instant::now();
    phase.store(COUNTING, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
    phase.store(STOPPING, Ordering::Relaxed);
    let elapsed = started_at.elapsed();
    let mut times = Times(Vec::new());
    for hirer in hiring {
        times.0.extend(hirer.await??);
    }
    let economy = control.request_json("GET", "/economy", "").await?;
    println!(
        r#"{{"jobs_per_s":{:.0},"jobs":{},"ms":{},"hirers":{hirers},"workers":{workers},"seconds":{:.1},"held":{},"states":{}}}"#,
        times.0.len() as f64 / elapsed.as_secs_f64(),
        times.0.len(),
        times.summary(),
        elapsed.as_secs_f64(),
        economy["held"],
        economy["job_states"]
    );
    Ok(())
}

/// Starts tasks that do every job of this inbox, until the process ends.
async fn start_worker(hub: &str, key: &str) -> Result<(), BoxError> {
    let mut inbox = HubConnection::open(hub, key).await?.open_inbox().await?;
    let (job_sender, jobs) = mpsc::channel::<String>(1_024);
    let jobs = Arc::new(Mutex::new(jobs));
    for _ in 0..REPORTERS {
        let mut connection = HubConnection::open(hub, key).await?;
        let jobs = jobs.clone();
        tokio::spawn(async move {
            loop {
                let Some(id) = jobs.lock().await.recv().await else {
                    return;
                };
                let result = r#"{"status":"SUCCESS","output_data":{"entities":["42"]},"execution_time_ms":1}"#;
                match connection
                    .request("POST", &format!("/jobs/{id}/result"), result)
                    .await
                {
                    Ok((200, _)) => {}
                    other => return eprintln!("a result was not accepted: {other:?}"),
                }
            }
        });
    }
    tokio::spawn(async move {
        while let Ok((name, data)) = inbox.next_event().await {
            let job: Value = serde_json::from_str(&data).unwrap_or_default();
            if let (true, Some(id)) = (name == "job", job["job_id"].as_str())
                && job_sender.send(id.to_owned()).await.is_err()
            {
                return;
            }
        }
    });
    Ok(())
}

/// The time of each job from its request to its result event. Only jobs that start and end in the counting phase count.
async fn run_hirer(
    mut connection: HubConnection,
    mut inbox: HubConnection,
    skill: &str,
    name: &str,
    phase: &AtomicU8,
) -> Result<Vec<Duration>, BoxError> {
    let mut times = Vec::new();
    for number in 0.. {
        let is_counted = match phase.load(Ordering::Relaxed) {
            STOPPING => break,
            phase => phase == COUNTING,
        };
        let asked_at = Instant::now();
        let body = format!(
            r#"{{"job_id":"job-{name}-{number}","skill_name":"{skill}","input_data":{{"text":"Revenue was 42"}},"budget":0.02}}"#
        );
        let (status, answer) = connection.request("POST", "/jobs", &body).await?;
        if status != 202 {
            return Err(format!(
                "a job was not accepted: {status} {}",
                String::from_utf8_lossy(&answer)
            )
            .into());
        }
        loop {
            let (event, data) = inbox.next_event().await?;
            if event == "job_result" {
                let result: Value = serde_json::from_str(&data)?;
                if result["status"] != "SUCCESS" {
                    return Err(format!("a job failed: {result}").into());
                }
                break;
            }
        }
        if is_counted && phase.load(Ordering::Relaxed) == COUNTING {
            times.push(asked_at.elapsed());
        }
    }
    Ok(times)
}
