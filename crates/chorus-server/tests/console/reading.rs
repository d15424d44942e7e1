//! Reading and answering: shown and acknowledged, the mark of new messages, drafts, long texts and notifications.

use crate::stage::Stage;
use crate::support::hub::eventually;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reading_marks_a_message_as_shown_and_answering_acknowledges_it() {
    // R-81, R-84
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let sent = bob.send_expecting("alice", "Shall we?", "queued").await;
    stage.sign_in(&alice.key).await;
    let badge = "document.querySelector('nav a[data-view=conversations] .badge')";
    stage
        .browser
        .eventually(&format!("{badge}.textContent === '1' && !{badge}.hidden"))
        .await;
    stage
        .browser
        .eventually("document.title === '(1) Chorus'")
        .await;
    // A delivered message that is not in sight is not shown.
    let status = bob.delivery_status(&sent["trace_id"]).await;
    assert_eq!(status.get("shown_at"), None, "{status}");
    stage.view("conversations/bob%40chorus").await;
    stage
        .browser
        .eventually("document.querySelector('[data-mark=new]')?.textContent === 'New messages'")
        .await;
    stage.browser.eventually(&format!("{badge}.hidden")).await;
    stage
        .browser
        .eventually("document.title === 'Chorus'")
        .await;
    let status = bob.delivery_status(&sent["trace_id"]).await;
    assert!(status["shown_at"].is_string(), "{status}");
    assert_ne!(status["status"], "acknowledged");
    stage.browser.write(".composer textarea", "Yes.").await;
    stage.browser.click(".composer button").await;
    eventually("the message is acknowledged", || async {
        bob.delivery_status(&sent["trace_id"]).await["status"] == "acknowledged"
    })
    .await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_that_opened_unasked_is_shown_only_when_the_person_acts_in_it() {
    // R-81
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let carol = stage.hub.agent("carol").await;
    carol
        .send_expecting("alice", "The older one", "queued")
        .await;
    let sent = bob.send_expecting("alice", "Shall we?", "queued").await;
    stage.sign_in(&alice.key).await;
    stage
        .browser
        .run(
            "window.told = 0; const ask = window.fetch; window.fetch = (...of) => { \
             if (String(of[0]).endsWith('/shown')) window.told += 1; return ask(...of); }",
        )
        .await;
    // On a phone the list has the page to itself.
    stage.set_screen(390, 844).await;
    stage.view("conversations").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.picks a').length === 2")
        .await;
    let is_alone = "return document.querySelector('.thread') === null";
    assert_eq!(stage.browser.run(is_alone).await, true);
    stage.view("overview").await;
    stage.set_screen(1280, 800).await;
    stage.view("conversations").await;
    let texts =
        "[...document.querySelectorAll('.bubble .said')].map((one) => one.textContent).join()";
    stage
        .browser
        .eventually(&format!("{texts} === 'Shall we?'"))
        .await;
    stage
        .browser
        .eventually(
            "document.querySelector('.picks a.is-open')?.textContent.includes('bob@chorus')",
        )
        .await;
    // What is in sight is reported with a picture, so after two of them it would have been.
    let pictures =
        "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(arguments[0])))";
    stage.browser.run_async(pictures).await;
    assert_eq!(stage.browser.run("return window.told").await, 0);
    stage.browser.click(".thread").await;
    let badge = "document.querySelector('nav a[data-view=conversations] .badge')";
    stage
        .browser
        .eventually(&format!("{badge}.textContent === '1'"))
        .await;
    let status = bob.delivery_status(&sent["trace_id"]).await;
    assert!(status["shown_at"].is_string(), "{status}");
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sent_message_shows_its_four_states_with_their_times() {
    // R-81
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.view("conversations/bob%40chorus").await;
    stage.browser.write(".composer textarea", "Shall we?").await;
    stage.browser.click(".composer button").await;
    let state = |word: &str| {
        format!("document.querySelector('.bubble.mine .stand')?.dataset.state === '{word}'")
    };
    stage.browser.eventually(&state("queued")).await;
    let mut inbox = bob.inbox_after("0").await;
    let message = inbox.next("message").await;
    stage.browser.eventually(&state("delivered")).await;
    bob.mark_shown(&message.data["trace_id"]).await.data(200);
    stage.browser.eventually(&state("shown")).await;
    bob.respond(&message.data["trace_id"], &json!({"status": "ok"}))
        .await
        .data(200);
    stage.browser.eventually(&state("acknowledged")).await;
    stage.browser.click(".bubble.mine .steps summary").await;
    let times = "[...document.querySelectorAll('.steps[open] [data-step]')].map((step) => \
         [step.dataset.step, /\\d\\d:\\d\\d/.test(step.textContent)])";
    let all = json!([
        ["queued", true],
        ["delivered", true],
        ["shown", true],
        ["acknowledged", true]
    ]);
    let complete = format!("JSON.stringify({times}) === {}", json!(all.to_string()));
    stage.browser.eventually(&complete).await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_scrolled_up_stays_there_and_is_told_of_new_messages() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    for number in 0..30 {
        alice
            .send_expecting("bob", &format!("line {number}"), "queued")
            .await;
    }
    stage.sign_in(&alice.key).await;
    stage.view("conversations/bob%40chorus").await;
    stage
        .browser
        .eventually("document.querySelectorAll('.bubble').length === 30")
        .await;
    // The log scrolls to its end once more in the picture after its first one.
    stage
        .browser
        .run_async(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => { \
             document.querySelector('.thread').scrollTop = 0; done(); }))",
        )
        .await;
    bob.send_expecting("alice", "news", "delivered_sse").await;
    stage
        .browser
        .eventually("!document.querySelector('.jump').hidden")
        .await;
    let top = "return document.querySelector('.thread').scrollTop";
    assert_eq!(stage.browser.run(top).await, 0);
    stage.browser.click(".jump").await;
    stage
        .browser
        .eventually("document.querySelector('.jump').hidden")
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_outlives_navigation_and_a_change_of_language() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, _bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    stage.view("conversations/bob%40chorus").await;
    stage
        .browser
        .write(".composer textarea", "Half a thou")
        .await;
    stage.view("market").await;
    stage.view("conversations/bob%40chorus").await;
    let draft = "document.querySelector('.composer textarea')?.value === 'Half a thou'";
    stage.browser.eventually(draft).await;
    stage.browser.click("[data-do=language]").await;
    stage.browser.shows("对话").await;
    stage.browser.eventually(draft).await;
    // It is the draft of this conversation alone, and is gone when it is sent.
    stage.view("conversations/alice%40chorus").await;
    stage
        .browser
        .eventually("document.querySelector('.composer textarea')?.value === ''")
        .await;
    stage.view("conversations/bob%40chorus").await;
    stage.browser.eventually(draft).await;
    stage.browser.click(".composer button").await;
    stage
        .browser
        .eventually("document.querySelector('.bubble.mine')")
        .await;
    let gone = "!Object.keys(sessionStorage).some((key) => key.startsWith('chorus.draft'))";
    stage.browser.eventually(gone).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_text_is_folded_until_it_is_asked_for() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    bob.send_expecting("alice", &"word ".repeat(1_800), "queued")
        .await;
    stage.sign_in(&alice.key).await;
    stage.view("conversations/bob%40chorus").await;
    let height = "document.querySelector('.said')?.offsetHeight";
    stage
        .browser
        .eventually(&format!("{height} > 0 && {height} < 320"))
        .await;
    stage.browser.click(".unfold").await;
    stage.browser.eventually(&format!("{height} > 320")).await;
}

// However long the conversation is: what is read is the page around the message, and not the way back to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_opens_a_conversation_at_any_message() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    for number in 0..130 {
        let text = format!("m{number:03}");
        bob.send_expecting("alice", &text, "queued").await;
    }
    let history = alice.get("/agent/messages").await.data(200);
    let target = history[3]["id"].as_u64().unwrap();
    stage.sign_in(&alice.key).await;
    stage
        .view(&format!("conversations/bob%40chorus//{target}"))
        .await;
    let browser = &stage.browser;
    browser
        .eventually("document.querySelector('.is-found')?.textContent.includes('m003')")
        .await;
    let has = |text: &str| {
        format!("document.querySelector('.thread-rows').textContent.includes('{text}')")
    };
    browser.eventually(&has("m050")).await;
    assert_eq!(browser.run(&format!("return {}", has("m129"))).await, false);
    // What comes meanwhile leaves no gap; later pages lead to it.
    bob.send_expecting("alice", "m130", "delivered_sse").await;
    browser.click("[data-key=later]").await;
    browser.eventually(&has("m130")).await;
    browser
        .eventually("document.querySelector('[data-key=later]').hidden")
        .await;
    // An answer that is written beside old rows leads to the newest.
    stage.view("conversations/bob%40chorus").await;
    stage
        .view(&format!("conversations/bob%40chorus//{target}"))
        .await;
    browser
        .eventually(
            "document.querySelector('.is-found') && !document.querySelector('.jump').hidden",
        )
        .await;
    browser.write("textarea", "the answer").await;
    browser.click("form.composer button[type=submit]").await;
    browser.eventually(&has("the answer")).await;
    browser.eventually(&has("m130")).await;
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_and_notifications_show_a_text_without_its_marks() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let text = "## Plan\n- **first** `cargo test`, then [the page](https://a.example/x)\n```sh\nsnake_case 2 * 3\n```\n<b>no markup</b>\n\
         | a | b |\n|---|---|\n| 1 | 2 |";
    bob.send_expecting("alice", text, "queued").await;
    stage.sign_in(&alice.key).await;
    let plain = "Plan first cargo test, then the page snake_case 2 * 3 <b>no markup</b> a b 1 2";
    for view in ["overview", "conversations"] {
        stage.view(view).await;
        let preview = format!(
            "[...document.querySelectorAll('.picks bdi')].some((one) => one.textContent === {})",
            json!(plain)
        );
        stage.browser.eventually(&preview).await;
    }
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_says_whether_the_reader_wrote_the_last_text() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.hub.agent("carol").await;
    alice.send_expecting("carol", "Shall we?", "queued").await;
    bob.send_expecting("alice", "Are you there?", "queued")
        .await;
    stage.sign_in(&alice.key).await;
    stage.view("conversations").await;
    for (peer, preview) in [("carol", "You: Shall we?"), ("bob", "Are you there?")] {
        let row = format!("document.querySelector('.picks a[data-key=\"{peer}@chorus \"] .cut')");
        let is_shown = format!("{row}?.textContent === '{preview}'");
        stage.browser.eventually(&is_shown).await;
    }
    stage.is_clean().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asked_for_it_is_notified_while_the_page_is_hidden() {
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    stage.sign_in(&alice.key).await;
    // A headless browser shows no notifications, so the test stands in for the part that shows them.
    stage
        .browser
        .run(
            "window.noted = []; window.Notification = class extends EventTarget { \
               static permission = 'default'; \
               static async requestPermission() { return Notification.permission = 'granted'; } \
               constructor(title, {body}) { super(); window.noted.push([title, body]); } close() {} }; \
             Object.defineProperty(document, 'hidden', {get: () => window.away ?? false});",
        )
        .await;
    stage.browser.run("window.away = true").await;
    bob.send_expecting("alice", "one", "delivered_sse").await;
    stage
        .browser
        .eventually("document.title === '(1) Chorus'")
        .await;
    let noted = "return window.noted";
    assert_eq!(stage.browser.run(noted).await, json!([]), "not asked for");
    stage.browser.run("window.away = false").await;
    stage.browser.click("[data-do=notify]").await;
    stage
        .browser
        .eventually("document.querySelector('[data-do=notify]').ariaPressed === 'true'")
        .await;
    bob.send_expecting("alice", "in sight", "delivered_sse")
        .await;
    stage
        .browser
        .eventually("document.title === '(2) Chorus'")
        .await;
    stage.browser.run("window.away = true").await;
    bob.send_expecting("alice", "*while* `away`", "delivered_sse")
        .await;
    stage.browser.eventually("window.noted.length === 1").await;
    assert_eq!(
        stage.browser.run(noted).await,
        json!([["bob@chorus", "while away"]])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledged_message_counts_as_read() {
    // R-81: an agent's own session acknowledges without a screen, so nothing was shown.
    let Some(stage) = Stage::open().await else {
        return;
    };
    let (alice, bob) = (stage.hub.agent("alice").await, stage.hub.agent("bob").await);
    let first = bob.send_expecting("alice", "done already", "queued").await;
    bob.send_expecting("alice", "still open", "queued").await;
    let acknowledged = alice
        .respond(&first["trace_id"], &json!({"status": "ok"}))
        .await;
    acknowledged.data(200);
    stage.sign_in(&alice.key).await;
    let badge = "document.querySelector('nav a[data-view=conversations] .badge')";
    stage
        .browser
        .eventually(&format!("{badge}.textContent === '1' && !{badge}.hidden"))
        .await;
    // The mark stands above the first message that is unread.
    stage.view("conversations/bob%40chorus").await;
    stage
        .browser
        .eventually("document.querySelector('[data-mark=new]')")
        .await;
    let marked =
        "return document.querySelector('.thread-row:has([data-mark=new]) .said').textContent";
    assert_eq!(stage.browser.run(marked).await, "still open");
    stage.browser.eventually(&format!("{badge}.hidden")).await;
    // Both were on the screen.
    let seen = bob.delivery_status(&first["trace_id"]).await;
    assert!(seen["shown_at"].is_string(), "{seen}");
    stage.is_clean().await;
}
