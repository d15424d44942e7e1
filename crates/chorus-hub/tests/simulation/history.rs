//! One history: clients at work while hubs crash, links are cut and answers are lost; then all is healed, and the oracle looks.

use crate::bus::SimulatedBus;
use crate::clock_error::ClockError;
use crate::database::DatabaseServer;
use crate::fault_counts::FaultCounts;
use crate::network::Network;
use crate::node::{SimulatedEnvironment, SimulatedHub};
use crate::operation::{ClientCall, ClientRequest, Operation, OperationState};
use crate::perform::perform;
use crate::planted::PlantedFault;
use crate::reader::InboxReader;
use crate::seeded_random::SeededRandom;
use crate::stage::ReusedDatabase;
use crate::template::{EPOCH, READERS};
use crate::{oracle, planted};
use chorus_hub::{Clock, random};
use chorus_wire::ErrorCode;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a client waits for an answer.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(20);
const CLIENT_ATTEMPTS: u32 = 12;
/// Steps in which a healed history must come to rest.
const SETTLE_STEPS: usize = 400;

/// The result of a history.
pub struct HistoryReport {
    pub operations: usize,
    pub faults: FaultCounts,
    /// Broken promises; none for a correct hub.
    pub violations: Vec<String>,
}

/// One run of a hub in one of the places for hubs.
pub struct RunningHub {
    pub run: usize,
    pub node: SimulatedHub,
}

pub struct History {
    pub stage: Rc<ReusedDatabase>,
    pub environment: SimulatedEnvironment,
    pub random: SeededRandom,
    pub hubs: Vec<Option<RunningHub>>,
    pub operations: Vec<Operation>,
    pub readers: Vec<InboxReader>,
    pub violations: Vec<String>,
    clock_error: ClockError,
    /// Cut links, and when each is restored.
    cuts: Vec<(usize, Duration)>,
    /// Those that the history caused itself.
    faults: FaultCounts,
    is_healed: bool,
    run_count: usize,
    event_count: u64,
}

pub fn run_history(
    seed: u64,
    stage: &Rc<ReusedDatabase>,
    planted_fault: Option<PlantedFault>,
) -> HistoryReport {
    let mut history = live_through(seed, stage, planted_fault);
    oracle::check(&mut history);
    HistoryReport {
        operations: history.operations.len(),
        faults: history.count_faults(),
        violations: history.violations,
    }
}

/// What a history leaves behind: the same for the same seed.
pub fn trace_history(seed: u64, stage: &Rc<ReusedDatabase>) -> Vec<String> {
    oracle::list_traces(&live_through(seed, stage, None))
}

fn live_through(
    seed: u64,
    stage: &Rc<ReusedDatabase>,
    planted_fault: Option<PlantedFault>,
) -> History {
    random::seed_this_thread(Some(seed));
    let mut history = History::new(seed, stage, planted_fault);
    let steps = 40 + history.random.below(70);
    for step in 0..steps {
        history.act();
        history.pass_time();
        if step >= steps / 2
            && let Some(fault) = planted_fault
        {
            planted::plant_under_way(&history, fault);
        }
    }
    history.heal();
    if let Some(fault) = planted_fault {
        planted::plant_at_end(&history, fault);
    }
    history
}

impl History {
    fn new(seed: u64, stage: &Rc<ReusedDatabase>, planted_fault: Option<PlantedFault>) -> Self {
        let mut random = SeededRandom::new(seed, 1);
        stage.reset();
        let clock = Clock::manual_at(EPOCH);
        clock.advance(Duration::from_secs(60));
        let has_peers = random.happens(0.5) || planted_fault.is_some_and(PlantedFault::needs_peers);
        let commit_rate = *random.pick(&[0.0, 0.01, 0.03, 0.1]);
        let network_rate = *random.pick(&[0.0, 0.1, 0.3]);
        let server = DatabaseServer::new(
            stage.file.clone(),
            stage.idle_connections.clone(),
            has_peers,
            clock.clone(),
            SeededRandom::new(seed, 2),
            commit_rate,
        );
        let environment = SimulatedEnvironment {
            dir: stage.dir().to_owned(),
            seal_key_file: stage.template.seal_key_file.clone(),
            clock: clock.clone(),
            server: Arc::new(server),
            network: Arc::new(Network::new(SeededRandom::new(seed, 3), network_rate)),
            bus: has_peers.then(|| SimulatedBus::new(clock, SeededRandom::new(seed, 4))),
        };
        let mut history = Self {
            stage: stage.clone(),
            environment,
            random,
            hubs: Vec::new(),
            operations: Vec::new(),
            readers: READERS
                .iter()
                .map(|agent| InboxReader::new(*agent, stage.template.newest_seq))
                .collect(),
            violations: Vec::new(),
            clock_error: ClockError::default(),
            cuts: Vec::new(),
            faults: FaultCounts::default(),
            is_healed: false,
            run_count: 0,
            event_count: 0,
        };
        let places = if has_peers { 2 } else { 1 };
        history.hubs.resize_with(places, || None);
        (0..places).for_each(|place| history.start_hub(place));
        history
    }

    pub fn now(&self) -> Duration {
        self.environment.clock.monotonic_now()
    }

    fn count_faults(&self) -> FaultCounts {
        FaultCounts {
            commits: self.environment.server.commit_fault_count(),
            posts: self.environment.network.record.lock().unwrap().fault_count,
            ..self.faults
        }
    }

    fn next_event(&mut self) -> u64 {
        self.event_count += 1;
        self.event_count
    }

    fn start_hub(&mut self, place: usize) {
        self.run_count += 1;
        self.hubs[place] = Some(RunningHub {
            run: self.run_count,
            node: SimulatedHub::start(&self.environment, self.run_count),
        });
    }

    fn crash_hub(&mut self, place: usize) {
        if let Some(running) = self.hubs[place].take() {
            self.faults.crashes += 1;
            for reader in &mut self.readers {
                reader.on_run_ended(running.run);
            }
        }
    }

    /// What clients, operators and the machine do before the next moment.
    fn act(&mut self) {
        if self.random.happens(0.45) {
            let request = self.draw_request();
            self.begin_operation(request);
        }
        self.cause_faults();
        for place in 0..self.hubs.len() {
            if self.hubs[place].is_none() && self.random.happens(0.15) {
                self.start_hub(place);
            }
        }
        for index in 0..self.readers.len() {
            if self.readers[index].is_connected() {
                if self.random.happens(0.02) {
                    self.readers[index].disconnect();
                }
            } else if self.random.happens(0.15) {
                self.connect_reader(index);
            }
        }
        self.drive_operations();
    }

    fn cause_faults(&mut self) {
        let place = self.random.below(self.hubs.len());
        if self.random.happens(0.012) {
            self.crash_hub(place);
        }
        if let Some(bus) = self.environment.bus.clone() {
            let link = self.hubs[place].as_ref().and_then(|one| one.node.link_id());
            if let Some(link) = link
                && self.random.happens(0.015)
            {
                bus.cut_link(link);
                self.faults.cuts += 1;
                let until = self.now() + self.random.millis(50, 4_000);
                self.cuts.push((link, until));
            }
            let now = self.now();
            let (over, lasting) = self.cuts.drain(..).partition(|(_, until)| *until <= now);
            self.cuts = lasting;
            let over: Vec<(usize, Duration)> = over;
            over.iter().for_each(|(link, _)| bus.restore_link(*link));
        } else if self.random.happens(0.01) {
            // Hubs of a cluster follow the clock of the database, which nothing sets (D-83).
            self.leap_clock();
        }
        if self.random.happens(0.006) {
            let duration = self.random.millis(20, 3_000);
            self.environment.server.begin_outage(duration);
            self.faults.outages += 1;
        }
    }

    fn leap_clock(&mut self) {
        let seconds = self.clock_error.draw_leap(&mut self.random);
        self.environment.clock.leap(seconds * 1_000_000);
        self.faults.clock_leaps += 1;
    }

    pub fn begin_operation(&mut self, request: ClientRequest) {
        let started_at = self.next_event();
        self.operations.push(Operation::new(request, started_at));
    }

    fn connect_reader(&mut self, index: usize) {
        let place = self.random.below(self.hubs.len());
        let breaks_after =
            (!self.is_healed && self.random.happens(0.3)).then(|| self.random.below(4));
        if let Some(running) = &self.hubs[place]
            && let Some(hub) = running.node.hub()
        {
            self.readers[index].connect(
                &running.node,
                hub,
                running.run,
                &self.stage.template,
                breaks_after,
            );
        }
    }

    /// Sends what is due, and takes the answers.
    fn drive_operations(&mut self) {
        for index in 0..self.operations.len() {
            self.collect_answers(index);
            let operation = &self.operations[index];
            let is_due = operation.state == OperationState::Open
                && operation.calls.is_empty()
                && operation.retry_at <= self.now();
            if !is_due {
                continue;
            }
            let may_go_on = operation.attempts == 0
                || (operation.is_repeatable() && operation.attempts < CLIENT_ATTEMPTS);
            if !may_go_on {
                self.operations[index].state = OperationState::Unknown;
                continue;
            }
            self.call_hub(index);
            // A client that is in doubt repeats itself while its first request is still under way.
            if self.operations[index].is_repeatable() && !self.is_healed && self.random.happens(0.1)
            {
                self.faults.duplicates += 1;
                self.call_hub(index);
            }
        }
    }

    fn call_hub(&mut self, index: usize) {
        let place = self.random.below(self.hubs.len());
        let Some(running) = &self.hubs[place] else {
            return;
        };
        let Some(reachable) = running.node.reachable_hub() else {
            return;
        };
        let answer = Arc::new(Mutex::new(None));
        let slot = answer.clone();
        let request = self.operations[index].request.clone();
        let template = self.stage.template.clone();
        running.node.spawn(async move {
            let answered = perform(reachable, template, request).await;
            *slot.lock().unwrap() = Some(answered);
        });
        let deadline = self.now() + CLIENT_TIMEOUT;
        let run = running.run;
        let operation = &mut self.operations[index];
        operation.attempts += 1;
        operation.calls.push(ClientCall {
            run,
            answer,
            deadline,
        });
    }

    fn collect_answers(&mut self, index: usize) {
        let now = self.now();
        let runs: Vec<usize> = self.hubs.iter().flatten().map(|one| one.run).collect();
        let calls = std::mem::take(&mut self.operations[index].calls);
        for call in calls {
            let answered = call.answer.lock().unwrap().take();
            let is_lost = !self.is_healed && answered.is_some() && self.random.happens(0.08);
            self.faults.lost_answers += usize::from(is_lost);
            match answered.filter(|_| !is_lost) {
                Some(Ok(acknowledgement)) => {
                    let event = self.next_event();
                    let operation = &mut self.operations[index];
                    operation.acknowledged_at.get_or_insert(event);
                    operation.acknowledgements.push(acknowledgement);
                    operation.state = OperationState::Acknowledged;
                }
                Some(Err(error)) => self.handle_refusal(index, &error),
                None if is_lost => {
                    self.operations[index].retry_at = now + Duration::from_millis(20)
                }
                None if call.deadline > now && runs.contains(&call.run) => {
                    self.operations[index].calls.push(call);
                }
                // The hub died, or the client waited for too long.
                None => self.operations[index].retry_at = now + Duration::from_millis(50),
            }
        }
    }

    fn handle_refusal(&mut self, index: usize, error: &chorus_wire::Error) {
        let now = self.now();
        let operation = &mut self.operations[index];
        if error.code == ErrorCode::Unavailable {
            operation.retry_at = now + Duration::from_millis(100);
        } else if operation.may_be_refused_with(error.code) {
            if operation.state == OperationState::Open {
                operation.state = OperationState::Refused(error.code);
            }
        } else {
            let violation = format!(
                "{:?} was answered with {:?}: {} ({:?})",
                operation.request, error.code, error.message, error.cause
            );
            operation.state = OperationState::Refused(error.code);
            self.violations.push(violation);
        }
    }

    fn pass_time(&mut self) {
        let duration = match self.random.below(50) {
            0 => self.random.millis(1_000, 3_000),
            1..10 => self.random.millis(20, 200),
            _ => self.random.millis(1, 15),
        };
        self.tick_all(duration);
    }

    fn tick_all(&mut self, duration: Duration) {
        self.deliver_messages();
        let first = self.random.below(self.hubs.len());
        for offset in 0..self.hubs.len() {
            let place = (first + offset) % self.hubs.len();
            let Some(running) = &self.hubs[place] else {
                continue;
            };
            running.node.tick(duration);
            if let Some(cause) = running.node.start_error() {
                if !cause.contains("Store") && !cause.contains("Bus") {
                    self.violations
                        .push(format!("a hub did not start: {cause}"));
                }
                self.crash_hub(place);
            } else if running.node.is_dying() {
                self.crash_hub(place);
            }
            self.deliver_messages();
        }
        self.environment.clock.advance(duration);
    }

    fn deliver_messages(&self) {
        if let Some(bus) = &self.environment.bus {
            bus.deliver_arrived();
        }
    }

    /// Ends all faults and waits until nothing is left to do.
    fn heal(&mut self) {
        self.is_healed = true;
        self.environment.server.heal();
        self.environment.network.heal();
        if let Some(bus) = &self.environment.bus {
            bus.heal();
        }
        self.cuts.clear();
        let mut pauses = 0;
        for step in 0..SETTLE_STEPS {
            for place in 0..self.hubs.len() {
                if self.hubs[place].is_none() {
                    self.start_hub(place);
                }
            }
            for index in 0..self.readers.len() {
                if !self.readers[index].is_connected() {
                    self.connect_reader(index);
                }
            }
            self.drive_operations();
            // A post that was lost may wait for as long as its job has.
            self.tick_all(Duration::from_millis(match step {
                0..20 => 5,
                20..100 => 60,
                _ => 250,
            }));
            if oracle::is_settled(self) {
                return self.choose_last_readers();
            }
            // Leases, deadlines and pauses between attempts pass while nothing is under way.
            if step > 60 && step % 20 == 0 && self.environment.network.in_flight_count() == 0 {
                pauses += 1;
                let pause = Duration::from_secs(match pauses {
                    // A clock that leaped days ahead and back has left jobs whose deadline is in days.
                    5 => 3_600 + self.clock_error.seconds_behind_most(),
                    // A deadline from before a leap ahead counts what passes for a day after it (D-123).
                    6 => 25 * 3_600,
                    _ => 70,
                });
                self.environment.clock.advance(pause);
                self.run_maintenance();
            }
        }
        let left = oracle::describe_unsettled(self);
        self.violations
            .push(format!("the history did not come to rest: {left}"));
    }

    fn run_maintenance(&mut self) {
        for running in self.hubs.iter().flatten() {
            if let Some(hub) = running.node.hub() {
                running.node.spawn(async move {
                    let _ = hub.run_maintenance().await;
                });
            }
        }
    }

    /// Some readers leave, so that presence has something to be true about.
    fn choose_last_readers(&mut self) {
        for index in 0..self.readers.len() {
            if self.random.happens(0.5) {
                self.readers[index].disconnect();
            }
        }
        // In steps that are much shorter than the time that a hub waits for its peer: the answer is there a step later.
        for _ in 0..60 {
            self.tick_all(Duration::from_millis(50));
        }
    }
}
