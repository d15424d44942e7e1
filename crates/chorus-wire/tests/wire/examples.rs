//! Every example of the documents: requests are accepted as printed, replies begin with the printed keys.

use crate::shape::Shape;
use chorus_wire::credits::Credits;
use chorus_wire::cursor::Cursor;
use chorus_wire::envelope::Envelope;
use chorus_wire::identity::{AgentAddress, AgentName};
use chorus_wire::market::job::{JobOutcome, JobRequest, JobResult};
use chorus_wire::market::transfer::CreditTransfer;
use chorus_wire::message::{DeliveryOutcome, ReceiverReply, SendReply, SendRequest};
use chorus_wire::registration::RegistrationRequest;
use chorus_wire::reply::{
    AgentRecord, DirectoryRow, FailureReply, MarketRegistrationReply, RegistrationReply,
    ReplyMetadata, SuccessReply,
};
use chorus_wire::secret::Secret;
use chorus_wire::{CHORUS_VERSION, Error, json, time::UnixMicros};
use serde::Serialize;
use std::collections::BTreeSet;
use std::{fs, path::Path};

pub fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/examples")
        .join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Method, path and body of a printed request.
pub fn request(name: &str) -> (String, String, String) {
    let text = example(name);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let (method, path) = head.lines().next().unwrap().split_once(' ').unwrap();
    (method.to_owned(), path.to_owned(), body.to_owned())
}

pub fn assert_prints_like(value: &impl Serialize, name: &str) {
    let ours = serde_json::to_string(value).unwrap();
    let printed = example(name);
    assert!(
        Shape::of(&ours).begins_like(&Shape::of(&printed)),
        "{name}:\n{printed}\nours:\n{ours}"
    );
}

fn success<T>(data: T) -> SuccessReply<T> {
    SuccessReply {
        success: true,
        data,
        metadata: ReplyMetadata::stamped_at(UnixMicros(0)),
    }
}

fn record() -> AgentRecord {
    AgentRecord {
        agent_id: "alice@chorus".into(),
        agent_card: None,
        registered_at: UnixMicros(0),
        online: false,
        reach: None,
        has_endpoint: false,
        endpoint: None,
        handle: None,
        host_verified: None,
    }
}

// TRN-02…04: the quick start and the skill
#[test]
fn printed_registrations_are_accepted() {
    for (name, id) in [
        (
            "transport-profile/quick-start-1-register.http",
            "my-agent@chorus",
        ),
        ("skill/connect-1-register.http", "your-name@agchorus"),
    ] {
        let (method, path, body) = request(name);
        assert!(method == "POST" && path.ends_with("/register"), "{name}");
        let registration = RegistrationRequest::parse(body.as_bytes()).unwrap();
        assert_eq!(
            (
                registration.agent_id.as_str(),
                registration.endpoint.as_ref(),
                registration.is_market_form()
            ),
            (id, None, false)
        );
        let card = registration.card.unwrap();
        assert_eq!(
            (card.user_culture(), card.supported_languages()),
            (Some("en"), vec!["en"])
        );
    }
}

// TRN-29
#[test]
fn the_printed_operator_registration_is_accepted() {
    let (method, path, body) = request("transport-profile/6.3-register.http");
    assert_eq!((method.as_str(), path.as_str()), ("POST", "/agents"));
    let registration = RegistrationRequest::parse_operator(body.as_bytes()).unwrap();
    assert_eq!(
        registration.name,
        AgentName::Address(AgentAddress::parse("", "alice@chorus.example").unwrap())
    );
    assert_eq!(
        registration.endpoint.as_deref(),
        Some("https://alice.example/receive")
    );
    assert_eq!(
        registration.card.unwrap().supported_languages(),
        ["zh-CN", "en"]
    );
}

// R-10, R-61: the jobs document's form, with its placeholders
#[test]
fn the_printed_market_registration_is_accepted() {
    let registration =
        RegistrationRequest::parse(example("jobs-protocol/3.1-register.json").as_bytes()).unwrap();
    assert!(registration.is_market_form());
    let market = registration.market.unwrap();
    assert_eq!(registration.agent_id, "uuid");
    assert_eq!(market.owner_id.as_deref(), Some("Owner identifier"));
    assert_eq!(
        market.api_endpoint.as_deref(),
        Some("https://agent-host:port/jobs")
    );
    assert_eq!(market.skills[0].skill_name, "analyze_text");
    assert_eq!(market.skills[0].cost_per_call.to_hundredths(), 10);
}

// TRN-05
#[test]
fn the_reply_to_a_registration_is_as_printed() {
    let data = RegistrationReply {
        agent_id: "alice@chorus".into(),
        api_key: Some(Secret::new("ca_0")),
        registration: record(),
        status: None,
        reputation_score: None,
    };
    let printed = example("transport-profile/quick-start-1-registered.txt").replace("{...}", "{}");
    let ours = serde_json::to_string(&success(data)).unwrap();
    assert!(Shape::of(&ours).begins_like(&Shape::of(&printed)), "{ours}");
    assert!(
        ours.contains(r#""api_key":"ca_"#) && ours.contains(r#""registered_at":""#),
        "{ours}"
    );
}

// R-10: 50.0 keeps its decimal
#[test]
fn the_reply_to_a_market_registration_is_as_printed() {
    let ours = MarketRegistrationReply {
        status: "registered".into(),
        agent_id: "uuid".into(),
        reputation_score: 50.0,
        api_key: Some(Secret::new("ca_0")),
    };
    assert_prints_like(&ours, "jobs-protocol/3.1-registered.json");
    assert!(
        serde_json::to_string(&ours)
            .unwrap()
            .contains("\"reputation_score\":50.0")
    );
}

// TRN-14, ENV-01
#[test]
fn printed_sends_are_accepted() {
    for (name, receiver, text) in [
        (
            "transport-profile/quick-start-3-send.http",
            "other-agent@chorus",
            "Hello, let's collaborate on this project.",
        ),
        (
            "transport-profile/6.4-send.http",
            "bob@chorus.example",
            "下午一起喝杯咖啡?",
        ),
        (
            "skill/connect-3-send.http",
            "other-agent@agchorus",
            "Hello!",
        ),
    ] {
        let (method, path, body) = request(name);
        assert!(method == "POST" && path.ends_with("/messages"), "{name}");
        let request = SendRequest::parse(body.as_bytes()).unwrap();
        assert_eq!(
            request.receiver,
            AgentName::Address(AgentAddress::parse("", receiver).unwrap())
        );
        assert_eq!(request.envelope.original_text(), text);
        assert!(!request.stream && request.a2a_message.is_none());
        // ENV-15: the envelope is forwarded with the same keys in the same order.
        let Shape::Object(printed) = Shape::of(&body) else {
            panic!("{name}")
        };
        assert_eq!(
            Shape::of(&request.envelope.to_json()),
            printed[1].1,
            "{name}"
        );
    }
}

// TRN-15, TRN-19, TRN-20
#[test]
fn the_replies_to_sends_are_as_printed() {
    let trace_id = uuid::Uuid::nil();
    assert_prints_like(
        &success(SendReply::new(&DeliveryOutcome::DeliveredSse, trace_id)),
        "transport-profile/quick-start-3-sent.json",
    );
    let delivered = DeliveryOutcome::Delivered {
        receiver_response: serde_json::json!({"status": "ok"}),
    };
    let failed = DeliveryOutcome::Failed {
        error_code: "ERR_TIMEOUT".into(),
        detail: "no answer".into(),
    };
    for (delivery, name) in [
        (delivered, "6.4-delivered.json"),
        (failed, "6.4-failed.json"),
    ] {
        let ours = success(SendReply::new(&delivery, trace_id));
        // The printed `data` has no `trace_id`, which comes after its keys; `metadata` is last.
        assert_prints_like(&ours, &format!("transport-profile/{name}"));
        let again: SuccessReply<SendReply> =
            serde_json::from_str(&serde_json::to_string(&ours).unwrap()).unwrap();
        assert_eq!(again.data, ours.data);
    }
}

// TRN-38…40
#[test]
fn every_reply_is_wrapped_as_printed() {
    assert_prints_like(
        &success(serde_json::json!({})),
        "transport-profile/6.2-success.json",
    );
    let at = UnixMicros::parse("2026-03-20T10:00:00Z").unwrap();
    let ours = FailureReply::new(&Error::validation("sender_id is required"), at);
    let printed: String = example("transport-profile/6.2-failure.json")
        .split_whitespace()
        .collect();
    assert_eq!(
        serde_json::to_string(&ours).unwrap().replace(' ', ""),
        printed,
        "character for character"
    );
}

/// The fields of a printed object, taken one by one.
struct PrintedFields(serde_json::Map<String, serde_json::Value>);

impl PrintedFields {
    fn parse(text: &str) -> Self {
        let value = json::parse_value(text).unwrap();
        Self(value.as_object().cloned().unwrap())
    }

    fn take(&mut self, key: &str) -> serde_json::Value {
        self.0.remove(key).unwrap()
    }

    fn take_text(&mut self, key: &str) -> String {
        self.take(key).as_str().unwrap().to_owned()
    }

    fn expect_empty(self) {
        assert!(self.0.is_empty(), "{:?}", self.0);
    }
}

// TRN-17, TRN-44
#[test]
fn the_printed_delivery_contains_only_an_envelope() {
    let (_, _, body) = request("transport-profile/6.5-receive.http");
    let mut fields = PrintedFields::parse(&body);
    let envelope = Envelope::parse(&fields.take("envelope").to_string()).unwrap();
    fields.expect_empty();
    assert_eq!(envelope.sender_id().as_str(), "alice@chorus.example");
}

// ENV-13, ENV-14
#[test]
fn printed_receiver_replies_are_parsed_and_printed_alike() {
    let error = ReceiverReply::error("INVALID_ENVELOPE", "missing sender_culture");
    for (name, reply) in [
        ("transport-profile/6.5-ok.json", ReceiverReply::ok()),
        ("skill/receiving-3-ok.json", ReceiverReply::ok()),
        ("transport-profile/6.5-error.json", error.clone()),
        ("skill/receiving-3-error.json", error),
    ] {
        let printed = example(name);
        assert_eq!(
            ReceiverReply::parse(printed.as_bytes()).unwrap(),
            reply,
            "{name}"
        );
        assert_eq!(
            Shape::of(&serde_json::to_string(&reply).unwrap()),
            Shape::of(&printed),
            "{name}"
        );
        assert!(
            ReceiverReply::is_protocol_reply(&json::parse_value(&printed).unwrap()),
            "{name}"
        );
    }
}

// TRN-59
#[test]
fn the_directory_is_printed_as_in_the_skill() {
    let rows: Vec<DirectoryRow> =
        serde_json::from_str(&example("skill/finding-2-discover.json")).unwrap();
    assert_eq!(rows[0].languages, ["zh-CN", "en"]);
    let ours = serde_json::to_string(&rows).unwrap();
    assert_eq!(
        Shape::of(&ours),
        Shape::of(&example("skill/finding-2-discover.json"))
    );
}

// TRN-57
#[test]
fn the_printed_since_is_a_cursor() {
    let (_, path, _) = request("skill/connect-4-catch-up.http");
    let (_, since) = path.split_once("since=").unwrap();
    assert_eq!(since.parse::<Cursor>().unwrap(), Cursor::from_log_seq(5));
}

// SKL-27, SKL-28: both editions of the history file
#[test]
fn printed_history_lines_contain_whole_envelopes() {
    for name in [
        "skill/storage-history.jsonl",
        "skill-0.7-local-storage/history.jsonl",
    ] {
        let text = example(name);
        assert_eq!(text.lines().count(), 2, "{name}");
        for line in text.lines() {
            let mut fields = PrintedFields::parse(line);
            assert!(UnixMicros::parse(&fields.take_text("ts")).is_some());
            assert!(matches!(
                fields.take_text("dir").as_str(),
                "sent" | "received"
            ));
            AgentAddress::parse("peer", &fields.take_text("peer")).unwrap();
            let envelope = fields.take("envelope");
            let parsed = Envelope::parse(&envelope.to_string()).unwrap();
            assert_eq!(serde_json::to_value(&parsed).unwrap(), envelope, "{name}");
            fields.expect_empty();
        }
    }
}

// SKL-23
#[test]
fn printed_credentials_have_three_fields_and_an_address() {
    for name in [
        "skill/storage-credentials.json",
        "skill-0.7-local-storage/config.json",
    ] {
        let mut fields = PrintedFields::parse(&example(name));
        AgentAddress::parse("agent_id", &fields.take_text("agent_id")).unwrap();
        assert!(fields.take_text("api_key").starts_with("ca_"));
        assert!(fields.take_text("hub_url").starts_with("https://"));
        fields.expect_empty();
    }
}

// TRN-50
#[test]
fn the_discovery_document_names_the_supported_version() {
    let mut fields = PrintedFields::parse(&example("transport-profile/8-discovery.json"));
    assert_eq!(fields.take_text("chorus_version"), CHORUS_VERSION);
}

// JOB-17…20
#[test]
fn the_printed_job_result_and_transfer_are_parsed() {
    let job = JobRequest::parse(example("jobs-protocol/3.3-job.json").as_bytes()).unwrap();
    assert_eq!(
        (job.skill_name.as_str(), job.budget.to_string().as_str()),
        ("analyze_text", "0.15")
    );
    assert_eq!(
        job.callback_url.as_deref(),
        Some("https://orchestrator/results")
    );
    assert_eq!(job.deadline.as_secs(), 600);

    let result = JobResult::parse(example("jobs-protocol/3.4-result.json").as_bytes()).unwrap();
    let JobOutcome::Success {
        output_data,
        execution_cost,
    } = result.outcome
    else {
        panic!("{result:?}")
    };
    assert_eq!(output_data["entities"][0]["value"], 42000);
    assert_eq!(
        (execution_cost, result.execution_time_ms),
        (Some(Credits::from_hundredths(10)), Some(1250))
    );

    let text = example("jobs-protocol/3.5-transfer.json");
    let transfer = CreditTransfer::parse(text.as_bytes()).unwrap();
    let printed = serde_json::to_string(&transfer).unwrap();
    assert!(printed.contains(r#""amount":0.10,"#), "{printed}");
    assert_eq!(
        json::parse_value(&printed).unwrap(),
        json::parse_value(&text).unwrap()
    );
}

/// Examples that the server's route tests use; this crate parses nothing in them.
const EXAMPLES_OF_ROUTE_TESTS: [&str; 5] = [
    "jobs-protocol/3.2-discover.json",
    "skill/connect-2-inbox.http",
    "skill/finding-2-discover.http",
    "transport-profile/8-discovery.http",
    "transport-profile/quick-start-2-inbox.http",
];

#[test]
fn every_example_is_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples");
    let mut found = BTreeSet::new();
    for folder in fs::read_dir(&root).unwrap() {
        for file in fs::read_dir(folder.unwrap().path()).unwrap() {
            found.insert(
                file.unwrap()
                    .path()
                    .strip_prefix(&root)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned(),
            );
        }
    }
    let source = concat!(
        include_str!("examples.rs"),
        include_str!("channel_examples.rs")
    );
    let is_used = |name: &str| {
        source.contains(name)
            || source.contains(&format!("\"{}\"", name.rsplit('/').next().unwrap()))
    };
    let unused: Vec<_> = found.iter().filter(|name| !is_used(name)).collect();
    assert!(unused.is_empty(), "{unused:?}");
    assert!(
        EXAMPLES_OF_ROUTE_TESTS
            .iter()
            .all(|name| found.contains(*name))
    );
}
