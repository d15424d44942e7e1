//! The market's crash story: a hub is killed among transfers and jobs, again and again, and every credit is where it belongs
//! (R-62, R-64, failure 21).

use crate::actors::Hub;
use crate::crash::{join, reach};
use crate::postgres::Database;
use chorus_client::market::{JobRequest, random_id};
use chorus_client::{Error, HubClient};
use chorus_wire::market::credits::Credits;
use chorus_wire::market::skill::SkillOffer;
use chorus_wire::market::transfer::CreditTransfer;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

const TRADERS: usize = 4;
const CRASHES: usize = 3;
/// Rounds between one crash and the next; a round is a transfer, a job and its result.
const BETWEEN: usize = 40;
const SENT: i64 = 7;
const PAID: i64 = 10;

#[tokio::test(flavor = "multi_thread")]
async fn every_credit_is_where_it_belongs_after_kill_9_on_sqlite() {
    story(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_credit_is_where_it_belongs_after_kill_9_on_postgresql() {
    if let Some(database) = Database::fresh().await {
        story(Some(&database.url)).await;
    }
}

async fn story(database: Option<&str>) {
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
        let client = join(&hub.url, &format!("trader{number}")).await;
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
        reach(&mut counted, crash * BETWEEN).await;
        hub.process.signal("KILL");
        hub.process.await_end();
        hub = start(&address);
    }
    reach(&mut counted, (CRASHES + 1) * BETWEEN).await;
    stop.store(true, Ordering::SeqCst);
    let mut rounds = Vec::new();
    for trader in trading {
        rounds.push(trader.await.unwrap());
    }
    judge(&traders, &rounds).await;
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

/// Whatever was not answered is asked again under its own id until it is; how many rounds were made.
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
        answered(|| payer.transfer_credits(&transfer)).await;
        let hire = JobRequest::new(
            &format!("skill{next}"),
            json!({}),
            Credits::from_hundredths(2 * PAID),
        );
        answered(|| payer.request_job(&hire)).await;
        let result = json!({"status": "SUCCESS", "output_data": rounds, "execution_cost": 0.10});
        answered(|| payee.deliver_result(&hire.job_id, &result)).await;
        rounds += 1;
        count.send_modify(|count| *count += 1);
    }
    rounds
}

async fn answered<T, F: Future<Output = Result<T, Error>>>(ask: impl Fn() -> F) {
    for _ in 0..2_000 {
        match ask().await {
            Ok(_) => return,
            // The result was taken, and the crash swallowed the answer.
            Err(error)
                if error
                    .error_response()
                    .is_some_and(|refusal| refusal.code == "ERR_JOB_CLOSED") =>
            {
                return;
            }
            Err(error) => assert!(error.is_transient(), "{error:?}"),
        }
        // The hub is away: it takes a moment to come back.
        let _ = tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>()).await;
    }
    panic!("the hub never came back");
}

/// What each has is what it began with, less what it gave, and what it got; and its postings say the same.
async fn judge(traders: &[HubClient], rounds: &[i64]) {
    for (number, trader) in traders.iter().enumerate() {
        let owner = format!("trader{number}@chorus");
        let (gave, got) = (rounds[number], rounds[(number + TRADERS - 1) % TRADERS]);
        let account = trader.fetch_account(&owner).await.unwrap();
        assert_eq!(account.held, Credits::ZERO, "{owner}");
        let expected = 100_000 + (got - gave) * (SENT + PAID);
        assert_eq!(
            account.balance,
            Credits::from_hundredths(expected),
            "{owner} after {rounds:?}"
        );
        let postings = trader
            .fetch_audit(&owner, None, 1_000)
            .await
            .unwrap()
            .postings;
        let entries = postings.iter().flat_map(|posting| &posting.entries);
        let mine = entries
            .filter(|entry| entry.account == "owner" && entry.owner_id.as_ref() == Some(&owner));
        assert_eq!(
            mine.map(|entry| entry.amount).sum::<Credits>(),
            account.balance,
            "{owner}"
        );
    }
}
