//! Hears the inbox beside other listeners, and wakes a session when mail came that was not announced to it.

use super::method::WakeMethod;
use super::schedule::{WaitingMessage, WakeRecord, WakeSchedule};
use super::wake_text::WakeNews;
use crate::commands::frame::frame_context::current_time;
use crate::commands::hook::{PlannedWake, ReportProgress};
use crate::fail::{ExitKind, Fail};
use crate::{cli::CommonArgs, command_client, command_client::CommandClient};
use chorus_client::backoff::Backoff;
use chorus_client::event_stream::StreamEvent;
use chorus_wire::cursor::Cursor;
use chorus_wire::message::MessageEvent;
use chorus_wire::time::UnixMicros;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How many states of messages are asked for at once.
const STATUS_CALLS: usize = 8;
/// How long a wake waits before it asks again whether the session is busy.
const BUSY_INTERVAL: Duration = Duration::from_millis(200);
/// The longest sleep until a wake: the clock may have been set.
const MAX_SLEEP: Duration = Duration::from_secs(1);
/// Max time to say that messages were shown: the session does not wait for a hub that is away.
const SHOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The settings of a waker.
pub struct MailWaker {
    pub common: CommonArgs,
    /// The session whose budgets count.
    pub session: String,
    pub method: WakeMethod,
    pub max_wakes: u32,
    /// Calls of the session that are under way; it is not woken meanwhile.
    pub open_calls: Arc<AtomicUsize>,
}

/// The parts of one connection to the hub.
struct OpenInbox {
    command: CommandClient,
    schedule: WakeSchedule,
    /// The cursor of the last event.
    newest: Option<Cursor>,
}

impl MailWaker {
    /// Returns after a wake by `--once`. A hub that is away, a rotated key and missing credentials only delay it.
    pub async fn run_until_woken(&self) {
        let backoff = Backoff::default();
        let mut failures = 0;
        loop {
            match self.hear_inbox(&mut failures).await {
                Ok(()) => return,
                Err(fail) => tracing::debug!("the inbox is not heard: {fail}"),
            }
            failures += 1;
            tokio::time::sleep(backoff.delay_after(failures)).await;
        }
    }

    async fn hear_inbox(&self, failures: &mut u32) -> Result<(), Fail> {
        let common = command_client::pin_credentials(&self.common)?;
        let command = CommandClient::open(&common)?;
        let session_name = self.session.clone();
        let received = command.read_state()?.parse_cursor();
        let (start, records) = with_progress(&command, move |mut progress| {
            let start = progress.start_wakes(received.unwrap_or(Cursor::START))?;
            Ok::<_, Fail>((start, progress.session_wakes(&session_name)))
        })
        .await??;
        let mut stream = command.client.open_waking_inbox(Some(start)).await;
        let mut inbox = OpenInbox {
            command,
            schedule: WakeSchedule::new(self.max_wakes, records),
            newest: None,
        };
        loop {
            let due = inbox.schedule.next_due(current_time());
            tokio::select! {
                event = stream.next() => {
                    *failures = 0;
                    inbox.add_event(event?);
                }
                () = sleep_until(due) => {
                    if self.wake_if_due(&mut inbox).await? && self.method.ends_after_wake() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Whether the session was woken.
    async fn wake_if_due(&self, inbox: &mut OpenInbox) -> Result<bool, Fail> {
        if self.open_calls.load(Ordering::Acquire) > 0 {
            tokio::time::sleep(BUSY_INTERVAL).await;
            return Ok(false);
        }
        let batch = inbox.schedule.take_batch(current_time());
        if batch.is_empty() {
            return Ok(false);
        }
        let unanswered = keep_unanswered(&inbox.command, batch).await?;
        let now = current_time();
        let Some((news, record)) = self.plan_wake(inbox, unanswered, now).await? else {
            return Ok(false);
        };
        if let Err(fail) = self.method.wake_session(&news).await {
            tracing::debug!("the session was not woken: {fail}");
            self.take_back(inbox, news).await?;
            return Ok(false);
        }
        tracing::debug!("woken for {}", record.senders.join(", "));
        if self.method.carries_text() {
            // The text is out, whatever becomes of the file: without the note the next hook tells it once more.
            let confirmed =
                with_progress(&inbox.command, |mut progress| progress.confirm_wakes()).await;
            if let Err(error) | Ok(Err(error)) = confirmed.map(|saved| saved.map_err(Fail::from)) {
                tracing::warn!("what was announced could not be saved: {error}");
            }
            mark_shown(&inbox.command, news.shown_messages()).await;
        }
        Ok(true)
    }

    /// Leaves out what was announced meanwhile, and saves the rest as announced, all under the lock of the progress file.
    async fn plan_wake(
        &self,
        inbox: &mut OpenInbox,
        unanswered: Vec<WaitingMessage>,
        now: UnixMicros,
    ) -> Result<Option<(WakeNews, WakeRecord)>, Fail> {
        let finished = inbox.newest.filter(|_| inbox.schedule.waiting_count() == 0);
        let files = inbox.command.files.clone();
        let credentials = inbox.command.credentials.clone();
        let opened = tokio::task::spawn_blocking(move || {
            let progress = ReportProgress::open_locked(&files, &credentials);
            let is_new =
                |message: &WaitingMessage| !progress.is_told(&message.trace_id(), message.cursor);
            let messages: Vec<WaitingMessage> = unanswered.into_iter().filter(is_new).collect();
            (progress, messages)
        });
        let (mut progress, messages) = opened.await.map_err(task_error)?;
        if messages.is_empty() {
            if let Some(finished) = finished {
                progress.save_finished(finished)?;
            }
            return Ok(None);
        }
        let record = inbox.schedule.record_wake(now, &messages);
        let news = WakeNews {
            agent_id: inbox.command.credentials.agent_id.clone(),
            messages,
            spent: inbox.schedule.spent_budgets(now, &record),
            held: inbox.schedule.waiting_count(),
        };
        let shown = match self.method.carries_text() {
            true => news.shown_messages(),
            false => &[],
        };
        let counted = match self.method.carries_text() {
            true => news.counted_messages(),
            false => &news.messages,
        };
        progress.save_wake(PlannedWake {
            session: &self.session,
            record: record.clone(),
            with_text: shown.iter().map(WaitingMessage::trace_id).collect(),
            counted: counted.iter().map(WaitingMessage::trace_id).collect(),
            finished,
        })?;
        Ok(Some((news, record)))
    }

    /// The host did not take the wake: its messages wait for the next one.
    async fn take_back(&self, inbox: &mut OpenInbox, news: WakeNews) -> Result<(), Fail> {
        let trace_ids: Vec<String> = news.messages.iter().map(WaitingMessage::trace_id).collect();
        let oldest = news
            .messages
            .iter()
            .filter_map(|message| message.cursor)
            .min();
        with_progress(&inbox.command, move |mut progress| {
            let before = oldest.map(|cursor| Cursor::from_log_seq(cursor.seq.saturating_sub(1)));
            let finished = progress.finished_cursor().min(before);
            progress.undo_wake(&trace_ids, finished)
        })
        .await??;
        inbox.schedule.put_back(news.messages);
        Ok(())
    }
}

impl OpenInbox {
    fn add_event(&mut self, event: StreamEvent) {
        self.newest = event.cursor.or(self.newest);
        if event.name != "message" {
            return;
        }
        match serde_json::from_str::<MessageEvent>(&event.data) {
            Ok(message) => self.schedule.add_message(WaitingMessage {
                cursor: event.cursor,
                event: message,
                arrived: current_time(),
            }),
            Err(error) => tracing::debug!("a message was not understood: {error}"),
        }
    }
}

async fn sleep_until(due: Option<UnixMicros>) {
    match due {
        None => std::future::pending().await,
        Some(due) => {
            let micros = u64::try_from(due.0 - current_time().0).unwrap_or(0);
            tokio::time::sleep(Duration::from_micros(micros).min(MAX_SLEEP)).await;
        }
    }
}

/// Runs a function with the progress file, which may wait for the lock of a running hook.
async fn with_progress<T: Send + 'static>(
    command: &CommandClient,
    act: impl FnOnce(ReportProgress) -> T + Send + 'static,
) -> Result<T, Fail> {
    let files = command.files.clone();
    let credentials = command.credentials.clone();
    tokio::task::spawn_blocking(move || act(ReportProgress::open_locked(&files, &credentials)))
        .await
        .map_err(task_error)
}

fn task_error(error: tokio::task::JoinError) -> Fail {
    Fail::new(ExitKind::Usage, "FILE", error.to_string())
}

/// Leaves out what the hub says was answered or shown meanwhile, here or on another machine.
async fn keep_unanswered(
    command: &CommandClient,
    batch: Vec<WaitingMessage>,
) -> Result<Vec<WaitingMessage>, Fail> {
    let mut unanswered = Vec::new();
    for chunk in batch.chunks(STATUS_CALLS) {
        let mut calls = Vec::new();
        for message in chunk {
            let client = command.client.clone();
            let trace_id = message.trace_id();
            calls.push(tokio::spawn(async move {
                client.fetch_message_status(&trace_id).await
            }));
        }
        for (message, call) in chunk.iter().zip(calls) {
            let is_settled = match call.await.map_err(task_error)? {
                Ok(status) => status.acknowledged_at.is_some() || status.shown_at.is_some(),
                Err(error) if error.is_transient() => return Err(error.into()),
                // Another hub may not know states.
                Err(_) => false,
            };
            if !is_settled {
                unanswered.push(message.clone());
            }
        }
    }
    Ok(unanswered)
}

/// Says that these messages were part of a turn. It is tried once: the text is there already.
async fn mark_shown(command: &CommandClient, messages: &[WaitingMessage]) {
    let marks = async {
        for message in messages {
            let trace_id = message.trace_id();
            if let Err(error) = command.client.mark_shown(&trace_id).await {
                tracing::debug!("{trace_id} could not be marked as shown: {error}");
            }
        }
    };
    if tokio::time::timeout(SHOWN_TIMEOUT, marks).await.is_err() {
        tracing::debug!("the hub took too long to take what was shown");
    }
}
