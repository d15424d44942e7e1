//! The network of a history: endpoints that answer late, refuse, or answer into a broken connection; and a record of all that
//! arrived.

use crate::node::pass_time;
use crate::seeded_random::SeededRandom;
use chorus_hub::simulation::{NetworkFault, SimulatedAnswer, SimulatedNetwork, SimulatedPost};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A post that reached its endpoint.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The path of the URL.
    pub path: String,
    pub body: Value,
    /// Whether the endpoint said yes. The hub may not have heard it.
    pub accepted: bool,
}

#[derive(Default)]
pub struct NetworkRecord {
    pub arrivals: Vec<Arrival>,
    /// What must be in flight once at a time, and was there twice.
    pub overlaps: Vec<String>,
    pub fault_count: usize,
    in_flight: HashMap<String, usize>,
}

pub struct Network {
    random: Mutex<SeededRandom>,
    rate: Mutex<f64>,
    pub record: Arc<Mutex<NetworkRecord>>,
}

enum PostFate {
    Refused,
    /// The request is lost, and the hub waits for nothing.
    Lost,
    /// It arrives; the answer is lost.
    AnswerLost,
    /// It arrives, and the connection breaks.
    AnswerBroken,
    Busy,
    Answered,
}

impl Network {
    pub fn new(random: SeededRandom, rate: f64) -> Self {
        Self {
            random: Mutex::new(random),
            rate: Mutex::new(rate),
            record: Arc::default(),
        }
    }

    pub fn heal(&self) {
        *self.rate.lock().unwrap() = 0.0;
    }

    pub fn in_flight_count(&self) -> usize {
        self.record.lock().unwrap().in_flight.values().sum()
    }

    fn draw(&self) -> (PostFate, Duration, Duration) {
        let rate = *self.rate.lock().unwrap();
        let mut random = self.random.lock().unwrap();
        let planned = if !random.happens(rate) {
            PostFate::Answered
        } else {
            self.record.lock().unwrap().fault_count += 1;
            match random.below(5) {
                0 => PostFate::Refused,
                1 => PostFate::Lost,
                2 => PostFate::AnswerLost,
                3 => PostFate::AnswerBroken,
                _ => PostFate::Busy,
            }
        };
        (planned, random.millis(0, 20), random.millis(0, 60))
    }
}

/// What must not be in flight twice at once: the posts of one outbox lane, and the dispatches of one job. A message is posted
/// once in its life, which the oracle checks by the arrivals.
fn exclusive_key(path: &str, body: &Value) -> String {
    match body.get("job_id").and_then(Value::as_str) {
        Some(job_id) => format!("{path} {job_id}"),
        None => path.to_owned(),
    }
}

/// A post in flight; it ends with its answer, with its deadline, or with its hub.
struct FlightGuard {
    record: Arc<Mutex<NetworkRecord>>,
    key: String,
}

impl FlightGuard {
    fn begin(record: &Arc<Mutex<NetworkRecord>>, path: &str, body: &Value) -> Self {
        let key = exclusive_key(path, body);
        let mut state = record.lock().unwrap();
        let count = state.in_flight.entry(key.clone()).or_default();
        *count += 1;
        if *count > 1 && !path.starts_with("/hook/") {
            state.overlaps.push(key.clone());
        }
        Self {
            record: record.clone(),
            key,
        }
    }
}

impl Drop for FlightGuard {
    fn drop(&mut self) {
        let mut state = self.record.lock().unwrap();
        if let Some(count) = state.in_flight.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                state.in_flight.remove(&self.key);
            }
        }
    }
}

impl SimulatedNetwork for Network {
    fn post(
        &self,
        post: SimulatedPost,
    ) -> BoxFuture<'static, Result<SimulatedAnswer, NetworkFault>> {
        let (planned, there, back) = self.draw();
        let record = self.record.clone();
        async move {
            let path = post
                .url
                .splitn(4, '/')
                .nth(3)
                .map_or_else(String::new, |path| format!("/{path}"));
            let body: Value = serde_json::from_slice(&post.body).unwrap_or_default();
            let _flight = FlightGuard::begin(&record, &path, &body);
            pass_time(there).await;
            let accepted = match planned {
                PostFate::Refused => return Err(NetworkFault::Unreachable),
                PostFate::Lost => return std::future::pending().await,
                PostFate::Busy => false,
                PostFate::AnswerLost | PostFate::AnswerBroken | PostFate::Answered => true,
            };
            record.lock().unwrap().arrivals.push(Arrival {
                path: path.clone(),
                body,
                accepted,
            });
            pass_time(back).await;
            match planned {
                PostFate::AnswerLost => std::future::pending().await,
                PostFate::AnswerBroken => Err(NetworkFault::Broken),
                PostFate::Busy => Ok(answer(503, "{}")),
                PostFate::Refused | PostFate::Lost | PostFate::Answered => {
                    Ok(answer(200, r#"{"status":"ok"}"#))
                }
            }
        }
        .boxed()
    }
}

fn answer(status: u16, body: &'static str) -> SimulatedAnswer {
    SimulatedAnswer {
        status,
        body: body.into(),
    }
}
