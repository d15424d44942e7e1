//! What random histories found once: the outcome of a webhook was lost when the database was away at the moment of its answer.

use crate::database::DatabaseServer;
use crate::network::Network;
use crate::node::{SimulatedEnvironment, SimulatedHub};
use crate::operation::ClientRequest;
use crate::oracle::query_number;
use crate::perform::perform;
use crate::seeded_random::SeededRandom;
use crate::stage::open_privately;
use crate::template::{EPOCH, HOOK, Template, fast_dir};
use chorus_hub::{Clock, random};
use chorus_wire::ErrorCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

//
#[test]
fn the_outcome_of_a_webhook_is_stored_when_the_database_is_back() {
    let template = Arc::new(Template::build());
    random::seed_this_thread(Some(1));
    let dir = fast_dir();
    let file = dir.path().join("history.db");
    std::fs::copy(&template.file, &file).unwrap();
    let clock = Clock::manual_at(EPOCH);
    let server = DatabaseServer::new(
        file.clone(),
        Arc::default(),
        false,
        clock.clone(),
        SeededRandom::new(1, 2),
        0.0,
    );
    let environment = SimulatedEnvironment {
        dir: dir.path().to_owned(),
        seal_key_file: template.seal_key_file.clone(),
        clock: clock.clone(),
        server: Arc::new(server),
        network: Arc::new(Network::new(SeededRandom::new(1, 3), 0.0)),
        bus: None,
    };
    let node = SimulatedHub::start(&environment, 1);
    let tick = |millis| {
        node.tick(Duration::from_millis(millis));
        clock.advance(Duration::from_millis(millis));
    };
    while node.hub().is_none() {
        tick(10);
    }
    let answer = Arc::new(Mutex::new(None));
    let slot = answer.clone();
    let reachable = node.reachable_hub().unwrap();
    let request = ClientRequest::Send {
        sender: 0,
        receiver: HOOK,
        text: "text-1".into(),
        keyed: true,
    };
    node.spawn(async move {
        let answered = perform(reachable, template, request).await;
        *slot.lock().unwrap() = Some(answered);
    });
    while environment
        .network
        .record
        .lock()
        .unwrap()
        .arrivals
        .is_empty()
    {
        tick(1);
    }
    environment.server.begin_outage(Duration::from_secs(2));
    (0..100).for_each(|_| tick(100));
    let answered = answer.lock().unwrap().take();
    let error = answered.unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable, "the client asks again");
    let connection = open_privately(&file);
    let count = |via: &str| {
        let sql = format!("select count(*) from log where via = '{via}'");
        query_number(&connection, &sql)
    };
    assert_eq!((count("pending"), count("webhook")), (0, 1));
}
