//! Crash story of the board: hubs are killed repeatedly while several workers claim the same jobs. Every job ends once, no two workers
//! have a job at a time, and every job is paid at most once (R-62, R-64, R-86, failures 21–23).

use crate::actors::{Hub, TIMEOUT};
use crate::crash::{envelope, register_client, wait_for_count};
use crate::crash_board_checks::check_end;
use crate::postgres::Database;
use crate::servers::{Servers, hub_address, start_front};
use chorus_client::market::JobRequest;
use chorus_client::{Error, HubClient};
use chorus_wire::credits::Credits;
use chorus_wire::cursor::Cursor;
use chorus_wire::market::job::Job;
use chorus_wire::market::skill::SkillOffer;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

const HIRERS: usize = 2;
const WORKERS: usize = 4;
const CRASHES: usize = 4;
/// Ended jobs between two crashes.
const ENDS_PER_CRASH: usize = 40;
/// Jobs of one hirer that are open at a time: few, so that the workers meet at the same ones.
const OPEN_JOBS: usize = 8;
const SKILL: &str = "board-work";
const GRANT: &str = "1000.00";
const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread")]
async fn every_job_on_the_board_ends_once_after_kill_9_on_sqlite() {
    run_single_hub(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_on_the_board_ends_once_after_kill_9_on_postgresql() {
    if let Some(database) = Database::fresh().await {
        run_single_hub(Some(&database.url)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_on_the_board_ends_once_when_one_of_two_hubs_is_killed() {
    let Some(servers) = Servers::start() else {
        return;
    };
    let names = ["a", "b"];
    let start = |name: &str| {
        let mut command = servers.hub_command(name, "127.0.0.1:0", &servers.nats);
        command.args(["--opening-grant", GRANT]);
        Hub::start_command(command)
    };
    let mut hubs = names.map(start);
    let (front, url) = start_front(&hubs).await;
    let mut board = BoardLoad::start(&url).await;
    for crash in 0..CRASHES {
        let turn = crash % names.len();
        board.wait_for_ends(crash + 1).await;
        hubs[turn].process.send_signal("KILL");
        hubs[turn].process.await_exit();
        hubs[turn] = start(names[turn]);
        front.turn_to(hubs.iter().map(hub_address).collect());
    }
    board.stop_and_check().await;
}

async fn run_single_hub(database: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let start = |listen: &str| {
        let mut options = vec!["--listen", listen, "--opening-grant", GRANT];
        options.extend(database.iter().flat_map(|url| ["--database", url]));
        Hub::start(folder.path(), &options)
    };
    let mut hub = start("127.0.0.1:0");
    let address = hub.url.strip_prefix("http://").unwrap().to_owned();
    let mut board = BoardLoad::start(&hub.url).await;
    for crash in 0..CRASHES {
        board.wait_for_ends(crash + 1).await;
        hub.process.send_signal("KILL");
        hub.process.await_exit();
        hub = start(&address);
    }
    board.stop_and_check().await;
}

/// What becomes of a job, as its input tells the worker that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobFate {
    Succeeds,
    Fails,
    /// Its first worker declines it, and another one does it.
    DeclinedFirst,
    /// Its worker asks before it does it.
    Questioned,
    Approved,
    Rejected,
    /// The requester says nothing, so that the hub pays by itself.
    ApprovedByTime,
}

impl JobFate {
    const ALL: [Self; 7] = [
        Self::Succeeds,
        Self::Fails,
        Self::DeclinedFirst,
        Self::Questioned,
        Self::Approved,
        Self::Rejected,
        Self::ApprovedByTime,
    ];

    fn of_job(job: &Job) -> Self {
        Self::ALL[job.input_data.as_ref().unwrap()["fate"].as_u64().unwrap() as usize]
    }

    pub fn is_paid(self) -> bool {
        match self {
            Self::Succeeds
            | Self::DeclinedFirst
            | Self::Questioned
            | Self::Approved
            | Self::ApprovedByTime => true,
            Self::Fails | Self::Rejected => false,
        }
    }

    /// How long the requester has to approve it.
    fn approve_within(self) -> Option<Duration> {
        match self {
            Self::Approved | Self::Rejected => Some(HOUR),
            Self::ApprovedByTime => Some(Duration::from_secs(1)),
            Self::Succeeds | Self::Fails | Self::DeclinedFirst | Self::Questioned => None,
        }
    }
}

/// What the clients know about the jobs, from acknowledged requests only.
#[derive(Default)]
pub struct BoardRecord {
    pub fates: BTreeMap<String, JobFate>,
    /// The worker that has a job, or that ended it.
    holders: BTreeMap<String, usize>,
    /// All workers that had a job, in order.
    pub claims: BTreeMap<String, Vec<usize>>,
    ended: BTreeSet<String>,
}

impl BoardRecord {
    fn record_claim(&mut self, job_id: &str, worker: usize) {
        let holder = self.holders.insert(job_id.to_owned(), worker);
        assert_eq!(
            holder, None,
            "worker {worker} got {job_id}, which another has"
        );
        let claims = self.claims.entry(job_id.to_owned()).or_default();
        claims.push(worker);
    }
}

/// Hirers and workers of one board, running until stopped.
struct BoardLoad {
    hirers: Vec<HubClient>,
    workers: Vec<HubClient>,
    record: Arc<Mutex<BoardRecord>>,
    /// No further jobs are requested.
    stop: Arc<AtomicBool>,
    /// No further jobs are claimed: all have ended.
    finish: Arc<AtomicBool>,
    ends: watch::Receiver<usize>,
    hiring: Vec<tokio::task::JoinHandle<()>>,
    working: Vec<tokio::task::JoinHandle<()>>,
}

impl BoardLoad {
    async fn start(url: &str) -> Self {
        let record = Arc::<Mutex<BoardRecord>>::default();
        let stop = Arc::<AtomicBool>::default();
        let finish = Arc::<AtomicBool>::default();
        let (count, ends) = watch::channel(0);
        let count = Arc::new(count);
        let mut workers = Vec::new();
        let mut working = Vec::new();
        for number in 0..WORKERS {
            let client = register_client(url, &format!("worker{number}")).await;
            client.publish_skill(&skill()).await.unwrap();
            let work = run_worker(client.clone(), number, record.clone(), finish.clone());
            working.push(tokio::spawn(work));
            workers.push(client);
        }
        let mut hirers = Vec::new();
        let mut hiring = Vec::new();
        for number in 0..HIRERS {
            let client = register_client(url, &format!("hirer{number}")).await;
            let (own_count, own_ends) = watch::channel(0);
            let own_count = Arc::new(own_count);
            let judging =
                judge_deliveries(client.clone(), [own_count, count.clone()], record.clone());
            let requesting = request_jobs(client.clone(), record.clone(), own_ends, stop.clone());
            hiring.push(tokio::spawn(async move {
                tokio::select! {
                    () = requesting => {}
                    () = judging => unreachable!("it reads for ever"),
                }
            }));
            hirers.push(client);
        }
        Self {
            hirers,
            workers,
            record,
            stop,
            finish,
            ends,
            hiring,
            working,
        }
    }

    async fn wait_for_ends(&mut self, step: usize) {
        wait_for_count(&mut self.ends, step * ENDS_PER_CRASH).await;
    }

    async fn stop_and_check(mut self) {
        self.wait_for_ends(CRASHES + 1).await;
        self.stop.store(true, Ordering::SeqCst);
        for hirer in self.hiring {
            let ended = tokio::time::timeout(TIMEOUT, hirer).await;
            ended.expect("a job never ended").unwrap();
        }
        self.finish.store(true, Ordering::SeqCst);
        for worker in self.working {
            worker.await.unwrap();
        }
        let record = std::mem::take(&mut *self.record.lock().unwrap());
        check_end(&self.hirers, &self.workers, &record).await;
    }
}

fn skill() -> SkillOffer {
    SkillOffer {
        skill_name: SKILL.into(),
        description: None,
        cost_per_call: Credits::from_hundredths(10),
        input_schema: None,
        output_schema: None,
    }
}

/// Requests jobs until `stop` is set, then waits until all of them have ended.
async fn request_jobs(
    hirer: HubClient,
    record: Arc<Mutex<BoardRecord>>,
    mut ends: watch::Receiver<usize>,
    stop: Arc<AtomicBool>,
) {
    let mut requested = 0;
    while !stop.load(Ordering::SeqCst) {
        let number = requested % JobFate::ALL.len();
        let fate = JobFate::ALL[number];
        let request = JobRequest::new(SKILL, json!({"fate": number}), Credits::from_hundredths(15))
            .with_deadline(Some(HOUR))
            .on_board(fate.approve_within());
        // Before the request: a worker may have the job before its requester has the answer.
        let job_id = request.job_id.clone();
        record.lock().unwrap().fates.insert(job_id, fate);
        retry_until_answered(|| hirer.request_job(&request))
            .await
            .unwrap();
        requested += 1;
        let room = ends.wait_for(|ended| requested - ended < OPEN_JOBS).await;
        drop(room.unwrap());
    }
    ends.wait_for(|ended| *ended == requested).await.unwrap();
}

/// Answers questions, judges deliveries and counts results, as the inbox of the hirer brings them.
async fn judge_deliveries(
    hirer: HubClient,
    counts: [Arc<watch::Sender<usize>>; 2],
    record: Arc<Mutex<BoardRecord>>,
) {
    let mut inbox = hirer.open_inbox(Some(Cursor::START)).await;
    loop {
        let event = inbox.next().await.unwrap();
        if !matches!(event.name.as_str(), "job_update" | "job_result") {
            continue;
        }
        let job: Job = serde_json::from_str(&event.data).unwrap();
        let id = job.job_id.as_str();
        if event.name == "job_result" {
            let is_first = record.lock().unwrap().ended.insert(id.to_owned());
            assert!(is_first, "{id} ended twice");
            for count in &counts {
                count.send_modify(|ended| *ended += 1);
            }
            continue;
        }
        let fate = record.lock().unwrap().fates[id];
        let judged = match (job.state.as_str(), fate) {
            ("input-required", _) => retry_until_answered(|| hirer.answer_job(id, "This.")).await,
            ("delivered", JobFate::Approved) => {
                retry_until_answered(|| hirer.approve_job(id)).await
            }
            ("delivered", JobFate::Rejected) => {
                retry_until_answered(|| hirer.reject_job(id, None)).await
            }
            (_, _) => continue,
        };
        // Refused: an earlier attempt was accepted, and its answer was lost.
        assert!(matches!(judged, Ok(_) | Err("ERR_JOB_CLOSED")), "{job:?}");
    }
}

/// Claims the oldest job that it has not had, like all other workers, and does it.
async fn run_worker(
    client: HubClient,
    number: usize,
    record: Arc<Mutex<BoardRecord>>,
    finish: Arc<AtomicBool>,
) {
    let mut declined = BTreeSet::new();
    while !finish.load(Ordering::SeqCst) {
        let board = retry_until_answered(|| client.list_board(Some(SKILL))).await;
        let jobs = board.unwrap().jobs;
        let Some(job) = jobs.iter().find(|job| !declined.contains(&job.job_id)) else {
            pause().await;
            continue;
        };
        match retry_until_answered(|| client.claim_job(&job.job_id)).await {
            Ok(job) => {
                record.lock().unwrap().record_claim(&job.job_id, number);
                if !do_job(&client, &job, &record).await {
                    declined.insert(job.job_id);
                }
            }
            Err(code) => assert_eq!(code, "ERR_JOB_CLOSED", "another worker was first"),
        }
    }
}

/// Reports what the fate of the job says; false when it was declined.
async fn do_job(client: &HubClient, job: &Job, record: &Mutex<BoardRecord>) -> bool {
    let id = job.job_id.as_str();
    let fate = JobFate::of_job(job);
    let is_first = record.lock().unwrap().claims[id].len() == 1;
    let report = async |report: Value| {
        let answer = retry_until_answered(|| client.deliver_result(id, &report)).await;
        // A hub was killed before it answered, and the requester has rejected the delivery since.
        let is_rejected =
            fate == JobFate::Rejected && answer.as_ref().err() == Some(&"ERR_JOB_CLOSED");
        assert!(answer.is_ok() || is_rejected, "{id} ({fate:?}): {answer:?}");
    };
    if fate == JobFate::DeclinedFirst && is_first {
        // Before the report: another worker may claim the job before the answer is here.
        record.lock().unwrap().holders.remove(id);
        let decline = json!({"status": "FAILURE", "error_code": "SKILL_MISMATCH"});
        let answer = retry_until_answered(|| client.deliver_result(id, &decline)).await;
        // Not found: an earlier attempt was accepted, and a former worker is not told about the job.
        assert!(matches!(answer, Ok(_) | Err("ERR_NOT_FOUND")), "{id}");
        return false;
    }
    report(json!({"status": "PENDING", "progress": "begun"})).await;
    if fate == JobFate::Questioned {
        report(json!({"status": "PENDING", "question": "Which?"})).await;
        while retry_until_answered(|| client.fetch_job(id))
            .await
            .unwrap()
            .answer
            .is_none()
        {
            pause().await;
        }
    }
    report(match fate {
        JobFate::Fails => json!({"status": "FAILURE", "error_code": "EXECUTION_ERROR"}),
        JobFate::Succeeds
        | JobFate::DeclinedFirst
        | JobFate::Questioned
        | JobFate::Approved
        | JobFate::Rejected
        | JobFate::ApprovedByTime => {
            json!({"status": "SUCCESS", "output_data": id, "execution_cost": 0.10})
        }
    })
    .await;
    true
}

async fn pause() {
    let _ = tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>()).await;
}

/// The answer, or the code of the refusal. A request without an answer is repeated.
async fn retry_until_answered<T, F: Future<Output = Result<T, Error>>>(
    request: impl Fn() -> F,
) -> Result<T, &'static str> {
    const KNOWN_CODES: [&str; 2] = ["ERR_JOB_CLOSED", "ERR_NOT_FOUND"];
    for _ in 0..2_000 {
        match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) if error.is_transient() => pause().await,
            Err(error) => {
                let code = error.error_response().map(|refusal| refusal.code.clone());
                let known = KNOWN_CODES
                    .into_iter()
                    .find(|known| code.as_deref() == Some(known));
                return Err(known.unwrap_or_else(|| panic!("{error:?}")));
            }
        }
    }
    panic!("the hub never came back");
}

/// A message behind all events that the hirer has got so far.
pub async fn send_marker(worker: &HubClient, hirer: &str) {
    let marker = envelope("worker0", "the end");
    worker.send_message(hirer, &marker, 0).await.unwrap();
}
