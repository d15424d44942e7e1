//! `chorus admin activity`: prints what happened on the hub, and follows it live.

use crate::stop_signal::StopSignal;
use crate::table::{TableCell, TableColumns, TableRow};
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_client::HubClient;
use chorus_wire::cursor::Cursor;
use chorus_wire::reply::ActivityRow;
use serde_json::{Map, Value};

const TITLES: [&str; 4] = ["TIME", "WHAT", "WHO", "DETAIL"];

/// Prints the activity after an id and then, if asked, what comes live.
pub async fn follow_activity(
    common: &CommonArgs,
    client: HubClient,
    since: u64,
    follow: bool,
) -> Result<(), Fail> {
    let mut printer = ActivityPrinter::new(common);
    let mut last_id = since;
    loop {
        let page = client.fetch_activity(last_id).await?;
        let Some(last) = page.last() else { break };
        last_id = last.id;
        printer.print_entries(&page);
    }
    if !follow {
        if last_id == since {
            output::print_aside(common.json, "nothing has happened on the hub since then");
        }
        return Ok(());
    }
    let mut stop = StopSignal::watch()?;
    let mut stream = client
        .open_events(Some(Cursor::from_log_seq(last_id)))
        .await;
    loop {
        let event = tokio::select! {
            event = stream.next() => event?,
            () = stop.wait_requested() => return Ok(()),
        };
        if let Ok(entry) = serde_json::from_str::<ActivityRow>(&event.data) {
            printer.print_entries(&[entry]);
        }
    }
}

/// Keeps the columns from one page to the next, so that the lines stay under each other.
struct ActivityPrinter<'a> {
    common: &'a CommonArgs,
    columns: TableColumns<4>,
    has_titles: bool,
}

impl<'a> ActivityPrinter<'a> {
    fn new(common: &'a CommonArgs) -> Self {
        Self {
            common,
            columns: TableColumns::of_titles(TITLES),
            has_titles: false,
        }
    }

    fn print_entries(&mut self, entries: &[ActivityRow]) {
        if self.common.json {
            return entries
                .iter()
                .for_each(|entry| output::print_result(true, entry, String::new));
        }
        let rows: Vec<TableRow<4>> = entries.iter().map(entry_row).collect();
        self.columns.fit_rows(&rows);
        if !std::mem::replace(&mut self.has_titles, true) {
            self.columns.print_titles();
        }
        for row in &rows {
            output::print_line(&self.columns.format_row(row));
        }
    }
}

fn entry_row(entry: &ActivityRow) -> TableRow<4> {
    let time = crate::local_time::date_time(&entry.timestamp.to_string());
    let mut fields = entry.data.as_object().cloned().unwrap_or_default();
    let (kind, subject) = match fields.remove("act") {
        Some(Value::String(act)) => (act, take_operator(&mut fields)),
        Some(_) | None => (entry.kind.clone(), take_subject(&mut fields)),
    };
    TableRow::of_cells([
        TableCell::styled(output::FAINT_STYLE, &time),
        TableCell::styled(output::STRONG_STYLE, &describe_kind(&kind)),
        TableCell::from(subject),
        TableCell::from(describe_fields(fields)),
    ])
}

/// The kind in the words of the console.
fn describe_kind(kind: &str) -> String {
    match kind {
        "agent_self_registered" => "agent registered".to_owned(),
        "message_delivered_sse" => "message delivered".to_owned(),
        "message_forward_started" => "sent to the endpoint".to_owned(),
        other => other.replace('_', " "),
    }
}

/// The operator of an act, by the label of its key.
fn take_operator(fields: &mut Map<String, Value>) -> String {
    match fields.remove("label") {
        Some(Value::String(label)) => format!("operator {label}"),
        Some(_) | None => "operator".to_owned(),
    }
}

/// Fields that name whom an entry is about, the first one that is there.
const SUBJECT_FIELDS: [&str; 3] = ["agent_id", "owner", "name"];

/// Whom an entry is about: the two sides of a message, an agent, or a member of a channel.
fn take_subject(fields: &mut Map<String, Value>) -> String {
    let mut take = |name: &str| match fields.remove(name) {
        Some(Value::String(text)) => Some(text),
        Some(_) | None => None,
    };
    if let Some(sender) = take("sender_id") {
        return match take("receiver_id") {
            Some(receiver) => format!("{sender} → {receiver}"),
            None => sender,
        };
    }
    SUBJECT_FIELDS
        .into_iter()
        .find_map(take)
        .unwrap_or_else(|| "-".to_owned())
}

/// Fields that are sentences or codes: printed first, and without their names.
const DETAIL_FIELDS: [&str; 4] = ["target", "error_code", "detail", "reason"];

/// The other fields: `ERR_… no route to host  trace 01a1…`. What is false or null says nothing.
fn describe_fields(mut fields: Map<String, Value>) -> String {
    let mut words: Vec<String> = DETAIL_FIELDS
        .into_iter()
        .filter_map(|name| fields.remove(name)?.as_str().map(str::to_owned))
        .collect();
    for (name, value) in &fields {
        let name = match name.as_str() {
            "address" => "from".to_owned(),
            name => name.trim_end_matches("_id").replace('_', " "),
        };
        match value {
            Value::Null | Value::Bool(false) => {}
            Value::Bool(true) => words.push(name),
            Value::String(text) => words.push(format!("{name} {text}")),
            Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                words.push(format!("{name} {value}"));
            }
        }
    }
    words.join("  ")
}
