//! Crash story of the market: a hub is killed repeatedly among transfers and jobs, and all balances are correct (R-62,
//! R-64, failure 21).

use crate::actors::Hub;
use crate::crash::{register_client, wait_for_count};
use crate::postgres::Database;
use chorus_client::market::{JobRequest, random_id};
use chorus_client::{Error, HubClient};
use chorus_wire::credits::Credits;
use chorus_wire::market::skill::SkillOffer;
use chorus_wire::market::transfer::CreditTransfer;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

const TRADERS: usize = 4;
const CRASHES: usize = 3;
/// Rounds between two crashes; a round is a transfer, a job and its result. Every second job is on the board, with a question and
/// approval.
const ROUNDS_PER_CRASH: usize = 40;
const SENT: i64 = 7;
const PAID: i64 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn all_balances_are_correct_after_kill_9_on_sqlite() {
    run_crash_story(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_balances_are_correct_after_kill_9_on_postgresql() {
    if let Some(database) = Database::fresh().await {
        run_crash_story(Some(&database.url)).await;
    }
}

async fn run_crash_story(database: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let start = |listen: &str| {
        let mut options = vec!["--listen", listen, "--opening-grant", "1000.00"];
        options.extend(database.iter().flat_map(|url| ["--database", url]));
        Hub::start(folder.path(), &options)
    };
    let mut hub = start("127.0.0.1:0");
    let address = hub.url.strip_prefix("http://").unwrap().to_owned();
    let mut traders = Vec::new();
    for number in 0..TRADERS {
        let client = register_client(&hub.url, &format!("trader{number}")).await;
        client.publish_skill(&skill(number)).await.unwrap();
        traders.push(client);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (count, mut counted) = watch::channel(0);
    let count = Arc::new(count);
    let mut trading = Vec::new();
    for number in 0..TRADERS {
        let pair = (
            traders[number].clone(),
            traders[(number + 1) % TRADERS].clone(),
        );
        trading.push(tokio::spawn(trade(
            pair,
            number,
            count.clone(),
            stop.clone(),
        )));
    }
    for crash in 1..=CRASHES {
        wait_for_count(&mut counted, crash * ROUNDS_PER_CRASH).await;
        hub.process.send_signal("KILL");
        hub.process.await_exit();
        hub = start(&address);
    }
    wait_for_count(&mut counted, (CRASHES + 1) * ROUNDS_PER_CRASH).await;
    stop.store(true, Ordering::SeqCst);
    let mut rounds = Vec::new();
    for trader in trading {
        rounds.push(trader.await.unwrap());
    }
    check_balances(&traders, &rounds).await;
}

fn skill(number: usize) -> SkillOffer {
    SkillOffer {
        skill_name: format!("skill{number}"),
        description: None,
        cost_per_call: Credits::from_hundredths(PAID),
        input_schema: None,
        output_schema: None,
    }
}

/// Trades until `stop` is set, retrying each request with its id until it is answered; returns the number of rounds.
async fn trade(
    (payer, payee): (HubClient, HubClient),
    number: usize,
    count: Arc<watch::Sender<usize>>,
    stop: Arc<AtomicBool>,
) -> i64 {
    let next = (number + 1) % TRADERS;
    let mut rounds = 0;
    while !stop.load(Ordering::SeqCst) {
        let transfer = CreditTransfer {
            transfer_id: random_id(),
            from_owner: format!("trader{number}@chorus"),
            to_owner: format!("trader{next}@chorus"),
            amount: Credits::from_hundredths(SENT),
            job_id: None,
            timestamp_utc: None,
        };
        retry_until_answered(|| payer.transfer_credits(&transfer)).await;
        let mut request = JobRequest::new(
            &format!("skill{next}"),
            json!({}),
            Credits::from_hundredths(2 * PAID),
        );
        let is_on_board = rounds % 2 == 1;
        if is_on_board {
            request = request.on_board(Some(Duration::from_secs(3_600)));
        }
        retry_until_answered(|| payer.request_job(&request)).await;
        let id = &request.job_id;
        if is_on_board {
            retry_until_answered(|| payee.claim_job(id)).await;
            let question = json!({"status": "PENDING", "question": "Which?"});
            retry_until_answered(|| payee.deliver_result(id, &question)).await;
            retry_until_answered(|| payer.answer_job(id, "This.")).await;
        }
        let result = json!({"status": "SUCCESS", "output_data": rounds, "execution_cost": 0.10});
        retry_until_answered(|| payee.deliver_result(id, &result)).await;
        if is_on_board {
            retry_until_answered(|| payer.approve_job(id)).await;
        }
        rounds += 1;
        count.send_modify(|count| *count += 1);
    }
    rounds
}

async fn retry_until_answered<T, F: Future<Output = Result<T, Error>>>(request: impl Fn() -> F) {
    for _ in 0..2_000 {
        match request().await {
            Ok(_) => return,
            // The result was accepted, but the answer was lost in the crash.
            Err(error)
                if error
                    .error_response()
                    .is_some_and(|refusal| refusal.code == "ERR_JOB_CLOSED") =>
            {
                return;
            }
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
        // The hub is restarting.
        let _ = tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>()).await;
    }
    panic!("the hub never came back");
}

/// Each balance is the opening grant minus payments plus income, and equals the sum of the postings.
async fn check_balances(traders: &[HubClient], rounds: &[i64]) {
    for (number, trader) in traders.iter().enumerate() {
        let owner = format!("trader{number}@chorus");
        let gave = rounds[number];
        let got = rounds[(number + TRADERS - 1) % TRADERS];
        let account = trader.fetch_account(&owner).await.unwrap();
        assert_eq!(account.held, Credits::ZERO, "{owner}");
        let expected = 100_000 + (got - gave) * (SENT + PAID);
        assert_eq!(
            account.balance,
            Credits::from_hundredths(expected),
            "{owner} after {rounds:?}"
        );
        let postings = trader
            .fetch_audit(Some(&owner), None, 1_000)
            .await
            .unwrap()
            .postings;
        let entries = postings.iter().flat_map(|posting| &posting.entries);
        let own_entries = entries
            .filter(|entry| entry.account == "owner" && entry.owner_id.as_ref() == Some(&owner));
        assert_eq!(
            own_entries.map(|entry| entry.amount).sum::<Credits>(),
            account.balance,
            "{owner}"
        );
    }
}
