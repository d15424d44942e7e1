//! A fuzzer reads the contract at `/openapi.json` and sends what it allows and what it forbids: the hub answers as the
//! contract says, refuses what it forbids and takes what it allows. `hosts/contract/schemathesis.toml` has the settings.

use crate::actors::{Agent, OPERATOR, Scene};
use crate::contract::contract_folder;
use crate::http::call;
use crate::kit::{PythonKit, isolate, read_key, run_within};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

/// Max time of a run, which takes half a minute of one core: long enough for a busy machine, on which two run at once.
const TIMEOUT: Duration = Duration::from_secs(200);

/// Jobs with ids that the fuzzer's settings name: one that its agent requests, and one that its agent works on.
const JOBS: [&str; 2] = [
    "00000000-0000-4000-8000-000000000001",
    "00000000-0000-4000-8000-000000000002",
];

/// A hub on which the names in the fuzzer's settings are in use.
struct FuzzedHub {
    scene: Scene,
    fuzzer: Agent,
    message: String,
    accord: String,
}

impl FuzzedHub {
    fn open() -> Self {
        let scene = Scene::open();
        let fuzzer = scene.agent("fuzzer");
        let alice = scene.agent("alice");
        let hub = scene.hub.url.clone();
        let send = |agent: &Agent, method: &str, path: &str, body: Value| -> Value {
            serde_json::from_str(&call(&hub, &read_key(agent), method, path, &body)).unwrap()
        };
        let envelope = json!({ "chorus_version": "0.4", "sender_id": "alice@chorus",
            "original_text": "Shall we meet on Thursday?", "sender_culture": "en" });
        let sent = send(
            &alice,
            "POST",
            "/messages",
            json!({ "receiver_id": "fuzzer@chorus", "envelope": envelope }),
        );
        send(&fuzzer, "POST", "/orgs", json!({ "handle": "~acme" }));
        send(&alice, "POST", "/orgs", json!({ "handle": "~peer" }));
        let accord = send(
            &alice,
            "POST",
            "/orgs/~peer/accords",
            json!({ "grantee": "~acme", "grant": "ops", "reaches": "*" }),
        );
        for (worker, skill, orchestrator, job) in [
            (&alice, "analyze_text", &fuzzer, JOBS[0]),
            (&fuzzer, "translate", &alice, JOBS[1]),
        ] {
            let offer = json!({ "skill_name": skill, "cost_per_call": 0.1 });
            send(worker, "PUT", &format!("/skills/{skill}"), offer);
            let request = json!({ "job_id": job, "skill_name": skill, "budget": 0.15 });
            send(orchestrator, "POST", "/jobs", request);
        }
        let text = |value: &Value| {
            value
                .as_str()
                .unwrap_or_else(|| panic!("{value}"))
                .to_owned()
        };
        Self {
            message: text(&sent["data"]["trace_id"]),
            accord: text(&accord["id"]),
            scene,
            fuzzer,
        }
    }

    /// The fuzzer's settings, with the ids that the hub has chosen.
    fn write_settings(&self) -> PathBuf {
        let settings = std::fs::read_to_string(contract_folder().join("schemathesis.toml"))
            .unwrap()
            .replace("\"MESSAGE\"", &json!(self.message).to_string())
            .replace("\"ACCORD\"", &json!(self.accord).to_string());
        let path = self.fuzzer.home.join("schemathesis.toml");
        std::fs::write(&path, settings).unwrap();
        path
    }

    fn fuzz(&self, kit: &PythonKit, key: &str) {
        let hub = &self.scene.hub.url;
        let mut command = kit.program("schemathesis");
        isolate(&mut command, &self.fuzzer.home);
        command
            .env("PYTHONPATH", contract_folder())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg("--config-file")
            .arg(self.write_settings())
            .args(["run", &format!("{hub}/openapi.json"), "--url", hub])
            .args(["--header", &format!("Authorization: Bearer {key}")])
            .args(["--report", "json", "--report-json-path", "report.json"]);
        let ended = run_within(command, TIMEOUT);
        assert_eq!(ended.code, 0, "{}\n{}", ended.out, ended.err);
        self.assert_most_operations_accepted_a_request();
    }

    /// Otherwise the run says little: a hub that refuses everything keeps its contract too.
    fn assert_most_operations_accepted_a_request(&self) {
        let report = std::fs::read_to_string(self.fuzzer.home.join("report.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        let rates = report["valid_rates"].as_object().unwrap();
        let has_accepted = |rate: &Value| {
            rate.as_object()
                .unwrap()
                .values()
                .any(|phase| phase["accepted"] != 0)
        };
        let refused: Vec<&String> = rates
            .iter()
            .filter(|(_, rate)| !has_accepted(rate))
            .map(|(operation, _)| operation)
            .collect();
        assert!(refused.len() * 2 < rates.len(), "{refused:?}");
    }
}

#[test]
fn the_hub_keeps_its_contract_with_an_agent_that_sends_anything() {
    let Some(kit) = PythonKit::fetched() else {
        return;
    };
    let hub = FuzzedHub::open();
    hub.fuzz(&kit, &read_key(&hub.fuzzer));
    // Else the fuzzer has spoiled its own key, and has seen little but 401.
    hub.fuzzer.run(&["whoami"]).ok();
}

#[test]
fn the_hub_keeps_its_contract_with_an_operator_that_sends_anything() {
    let Some(kit) = PythonKit::fetched() else {
        return;
    };
    let hub = FuzzedHub::open();
    hub.fuzz(&kit, OPERATOR);
}
