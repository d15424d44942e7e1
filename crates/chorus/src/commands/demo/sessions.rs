//! The demo's frame scene: three sessions of the user work on a book together and ask the user for a decision.

use super::DemoPace;
use super::agents::DemoCast;
use crate::fail::{ExitKind, Fail};
use chorus_client::HubClient;
use chorus_client::frame::{FrameSender, FrameStream, FrameStreamEvent, random_uuid};
use chorus_hub::Clock;
use chorus_wire::frame::payload::{
    AgentAdvisory, AgentBindingMoment, AgentBroadcast, AgentLockRelease, AgentLockRequest,
    AgentQuery, AgentResponse, DecisionOption, DecisionQuestion, EventClass,
};
use chorus_wire::frame::{FrameFilter, FramePayload, ScopeIdent};
use chorus_wire::{identity::Handle, time::UnixMicros};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use uuid::Uuid;

/// Decisions that the user is asked for, one after the other.
const DECISIONS: usize = 3;
/// Max answers queued for the asking session.
const ANSWER_QUEUE_LEN: usize = 64;
const CHAPTER: &str = "atlas/chapter-3.md";

fn current_time() -> UnixMicros {
    Clock::system().now()
}

/// One session of the user: a program with its own open stream.
struct DemoSession {
    client: HubClient,
    sender: FrameSender,
    answers: mpsc::Receiver<AgentResponse>,
    /// Aborted when the session is dropped.
    _listener: JoinSet<()>,
}

impl DemoSession {
    async fn open(
        client: &HubClient,
        handle: &Handle,
        instrument: &str,
        session: &str,
    ) -> Result<Self, Fail> {
        let ident = |text| {
            ScopeIdent::parse(text)
                .ok_or_else(|| Fail::new(ExitKind::Usage, "USAGE", "a session without a name"))
        };
        let sender = FrameSender::new(handle.clone(), ident(instrument)?, ident(session)?);
        let mut stream =
            client.open_frame_stream(&sender, &FrameFilter::default(), None, current_time);
        stream.wait_opened().await?;
        let (answer_sender, answers) = mpsc::channel(ANSWER_QUEUE_LEN);
        let mut listener = JoinSet::new();
        listener.spawn(forward_answers(stream, answer_sender));
        Ok(Self {
            client: client.clone(),
            sender,
            answers,
            _listener: listener,
        })
    }

    /// Sends a frame to all sessions of the user; returns the frame's id.
    async fn send_frame(&self, payload: impl Into<FramePayload>) -> Result<Uuid, Fail> {
        let scope = self.sender.handle_scope();
        let frame = self
            .sender
            .draft_frame(&scope, payload.into(), current_time())
            .to_frame()
            .map_err(|e| Fail::usage_error(e.message))?;
        self.client
            .submit_frame(&self.sender, &scope, &frame, false)
            .await?;
        Ok(frame.frame_id)
    }

    async fn send_advisory(&self, text: &str) -> Result<(), Fail> {
        let advisory = AgentAdvisory {
            advisory_text: text.into(),
            file_refs: Some(vec![CHAPTER.into()]),
            worktree: None,
            branch: Some("atlas".into()),
        };
        self.send_frame(advisory).await.map(drop)
    }

    /// Waits for the answer to a question.
    async fn wait_answer(&mut self, question_id: Uuid) -> Result<String, Fail> {
        while let Some(response) = self.answers.recv().await {
            if response.query_id == question_id
                || response.responded_to_frame_id == Some(question_id)
            {
                return Ok(response.response_text);
            }
        }
        Err(Fail::new(
            ExitKind::Transport,
            "TRANSPORT",
            "a session of the demo hears nothing more",
        ))
    }
}

/// Reads all frames, because the hub closes a stream that is not read, and queues the answers.
async fn forward_answers(mut stream: FrameStream, answer_sender: mpsc::Sender<AgentResponse>) {
    loop {
        match stream.next().await {
            Ok(FrameStreamEvent::Frame(frame, _)) => {
                if let FramePayload::AgentResponse(response) = &frame.payload {
                    // Fails when the queue is full of answers to old questions.
                    let _ = answer_sender.try_send(response.clone());
                }
            }
            Ok(
                FrameStreamEvent::Opened(_)
                | FrameStreamEvent::OpenItems(_)
                | FrameStreamEvent::Gap,
            ) => {}
            Err(error) => {
                return tracing::warn!("the stream of a demo session ended: {error}");
            }
        }
    }
}

pub async fn play_sessions(cast: Arc<DemoCast>, pace: DemoPace) -> Result<(), Fail> {
    let you = &cast.you;
    let layout = DemoSession::open(&you.client, &you.handle, "cc-editor", "layout").await?;
    let mut proof = DemoSession::open(&you.client, &you.handle, "cc-proof", "proof").await?;
    let mut press = DemoSession::open(&you.client, &you.handle, "cc-press", "press").await?;
    layout
        .send_advisory("I am setting chapter 3, the words for light.")
        .await?;
    pace.pause(4).await;
    let lease_id = random_uuid();
    let lock = AgentLockRequest {
        resource: CHAPTER.into(),
        lease_id,
        ttl_ms: 600_000,
        intent: Some("setting the type; ten minutes".to_owned()),
    };
    press.send_frame(lock).await?;
    pace.pause(4).await;
    ask_question(&layout, &mut proof, pace).await?;
    for round in 0..DECISIONS {
        let question_id = press.send_frame(binding_moment(round)).await?;
        if pace.is_ending() {
            return Ok(());
        }
        // the question stays open until the user answers it, so it is asked once.
        let text = press.wait_answer(question_id).await?;
        let thanks = format!(
            "Thank you. “{}” it is; the page is being set.",
            shorten_text(&text)
        );
        press.send_advisory(&thanks).await?;
        pace.pause(20).await;
    }
    press
        .send_frame(AgentLockRelease {
            lease_id,
            resource: Some(CHAPTER.into()),
        })
        .await?;
    let broadcast = AgentBroadcast {
        broadcast_text: "Chapter 3 is set and on its way to the press.".into(),
        event_class: EventClass::Merged,
        refs: None,
    };
    press.send_frame(broadcast).await?;
    // The sessions stay on the roster until the demo ends.
    std::future::pending().await
}

/// One session asks a question, another answers it.
async fn ask_question(
    responder: &DemoSession,
    asker: &mut DemoSession,
    pace: DemoPace,
) -> Result<(), Fail> {
    let query = AgentQuery {
        query_text: "Does any session still use the old page numbers?".into(),
        query_id: random_uuid(),
        response_scope: asker.sender.handle_scope(),
        timeout_ms: 60_000,
    };
    let query_id = query.query_id;
    let responded_to_frame_id = Some(asker.send_frame(query).await?);
    pace.pause(3).await;
    let answer = AgentResponse {
        query_id,
        response_text: "No. The index was the last one, and it is renumbered.".into(),
        responder_session_id: responder.sender.session.to_string(),
        responded_to_frame_id,
        answer_attempt_idx: None,
    };
    responder.send_frame(answer).await?;
    asker.wait_answer(query_id).await.map(drop)
}

/// A decision for the user; another one each round.
fn binding_moment(round: usize) -> AgentBindingMoment {
    let choice = |label: &str, reasoning: &str| DecisionOption {
        label: label.into(),
        reasoning: reasoning.into(),
    };
    let (stem, options) = match round {
        0 => (
            "Which word opens the atlas?",
            vec![
                choice("木漏れ日", "It is light, and a picture says it at once."),
                choice(
                    "Feierabend",
                    "Most people know the feeling, few have the word.",
                ),
                choice("缘分", "The book itself came about by it."),
            ],
        ),
        1 => (
            "In which order do the words come?",
            vec![
                choice(
                    "by feeling",
                    "Readers look for what they feel, not for an alphabet.",
                ),
                choice("by language", "It is what a library expects."),
            ],
        ),
        _ => (
            "How many copies do we print first?",
            vec![
                choice("five hundred", "Enough for friends and one bookshop each."),
                choice(
                    "two thousand",
                    "Cheaper each, and a cellar full if we are wrong.",
                ),
            ],
        ),
    };
    AgentBindingMoment {
        synopsis: "The atlas is nearly set, and one thing is yours to say.".into(),
        findings: vec![
            "Chapters 1 to 3 are proofread.".into(),
            "The press is free until this evening.".into(),
        ],
        recommendations: vec!["Decide today, and the proof is on your table tomorrow.".into()],
        offer: "Whatever you choose, I set the page at once.".into(),
        question: DecisionQuestion {
            stem: stem.into(),
            options,
            recommended_idx: 0,
            hatches: None,
        },
    }
}

/// The start of an answer, short enough to quote.
fn shorten_text(text: &str) -> String {
    text.chars().take(80).collect()
}
