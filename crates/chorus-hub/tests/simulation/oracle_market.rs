//! The ledger is conserved, and every payment happens once.

use crate::history::History;
use crate::operation::ClientRequest;
use crate::oracle::query_number;
use crate::oracle_messages::check_count;
use rusqlite::Connection;

/// Accounts sum to zero, each is the sum of its postings, and no owner owes (invariant 7).
pub fn check_ledger(connection: &Connection, violations: &mut Vec<String>) {
    let sum = query_number(connection, "select sum(balance) from accounts");
    if sum != 0 {
        violations.push(format!("ledger: all accounts sum to {sum} hundredths"));
    }
    let unexplained = "select count(*) from accounts a where balance <>
        coalesce((select sum(amount) from postings where credit = a.id), 0)
        - coalesce((select sum(amount) from postings where debit = a.id), 0)";
    let negative = "select count(*) from accounts where id <> 0 and balance < 0";
    for (sql, problem) in [
        (unexplained, "accounts differ from their postings"),
        (negative, "accounts are below zero"),
    ] {
        let count = query_number(connection, sql);
        if count > 0 {
            violations.push(format!("ledger: {count} {problem}"));
        }
    }
    let held = query_number(connection, "select held from market");
    let holds = query_number(
        connection,
        "select sum(balance) from accounts where id % 2 = 1",
    );
    if held != holds {
        violations.push(format!(
            "ledger: {held} hundredths are said to be held, not {holds}"
        ));
    }
}

pub fn check_payments(connection: &Connection, history: &History, violations: &mut Vec<String>) {
    for operation in &history.operations {
        let ClientRequest::Pay {
            transfer_id, cents, ..
        } = &operation.request
        else {
            continue;
        };
        let of = format!("from postings where kind = 'transfer' and note = '{transfer_id}'");
        let count = query_number(connection, &format!("select count(*) {of}"));
        check_count(operation, count as usize, violations);
        let moved = query_number(connection, &format!("select sum(amount) {of}"));
        if count == 1 && moved != *cents {
            violations.push(format!("{transfer_id} moved {moved}, not {cents}"));
        }
        let replies: Vec<_> = operation.acknowledgements.iter().collect();
        if replies.windows(2).any(|pair| pair[0] != pair[1]) {
            violations.push(format!("{transfer_id} has two replies: {replies:?}"));
        }
    }
}

/// The totals of the market are those of the rows.
pub fn check_totals(connection: &Connection, violations: &mut Vec<String>) {
    for (column, state) in [
        ("open_jobs", "open"),
        ("held_jobs", "held"),
        ("dispatched", "dispatched"),
        ("input_required", "input-required"),
        ("delivered", "delivered"),
        ("done", "done"),
        ("failed", "failed"),
        ("cancelled", "cancelled"),
        ("expired", "expired"),
    ] {
        let counted = query_number(connection, &format!("select {column} from market"));
        let actual = query_number(
            connection,
            &format!("select count(*) from jobs where state = '{state}'"),
        );
        if counted != actual {
            violations.push(format!("totals: {column} is {counted}, not {actual}"));
        }
    }
}
