//! Frame scopes: which sessions a frame is for, and who may address them.

use crate::support::actors::{Agent, Session};

/// The sessions of one handle that the stories of scopes address.
async fn sessions(alice: &Agent) -> Vec<(&'static str, Session)> {
    let mut open = Vec::new();
    for (name, instrument, session) in [
        ("e1", "cc-editor", "s1"),
        ("e2", "cc-editor", "s2"),
        ("cli", "cc-cli", "s1"),
        ("vim", "vim", "s1"),
    ] {
        open.push((name, alice.open_session(instrument, session).await));
    }
    open
}

/// Sends an advisory to the scope and returns which sessions received it before the marker that all of them receive next.
async fn heard_by(
    from: &Agent,
    open: &mut [(&'static str, Session)],
    scope: &str,
) -> (u64, Vec<&'static str>) {
    let count = from.send_advisory(scope, scope).await;
    from.send_advisory(&crate::support::actors::scope_recipient(scope), "marker")
        .await;
    let mut heard = Vec::new();
    for (name, session) in open {
        let mut text = session.advisory_texts(1).await.remove(0);
        if text != "marker" {
            assert_eq!(text, scope);
            heard.push(*name);
            text = session.advisory_texts(1).await.remove(0);
        }
        assert_eq!(text, "marker", "{name}");
    }
    (count, heard)
}

story!(a_scope_names_all_sessions_some_or_one, |hub| async {
    // FRM-49…52, FRM-64, FRM-66
    let alice = hub.agent("alice").await;
    let mut open = sessions(&alice).await;
    for (scope, who) in [
        ("~alice", &["e1", "e2", "cli", "vim"][..]),
        ("~alice/*", &["e1", "e2", "cli", "vim"]),
        ("~alice/cc-*", &["e1", "e2", "cli"]),
        ("~alice/c*", &["e1", "e2", "cli"]),
        ("~alice/cc-editor*", &["e1", "e2"]),
        ("~alice/vim*", &["vim"]),
        ("~alice/cc-editor@s1", &["e1"]),
        ("~alice/vim@s1", &["vim"]),
        ("~alice/CC-*", &[]),
        ("~alice/cc-editors*", &[]),
        ("~alice/cc-editor@s3", &[]),
        ("~alice/cc-@s1", &[]),
        ("~alice/s1*", &[]),
    ] {
        assert_eq!(
            heard_by(&alice, &mut open, scope).await,
            (who.len() as u64, who.to_vec()),
            "{scope}"
        );
    }
});

memory_story!(
    streams_that_share_a_name_are_all_that_session,
    |hub| async {
        // FRM-52, R-52
        let alice = hub.agent("alice").await;
        let (mut one, mut two) = (
            alice.open_session("cc-editor", "s1").await,
            alice.open_session("cc-editor", "s1").await,
        );
        assert_eq!(alice.send_advisory("~alice/cc-editor@s1", "both").await, 2);
        assert_eq!(
            (one.advisory_texts(1).await, two.advisory_texts(1).await),
            (vec!["both".to_owned()], vec!["both".to_owned()])
        );
        drop(one);
        crate::support::hub::eventually("one of them is left", || async {
            alice.roster().await.len() == 1
        })
        .await;
        assert_eq!(
            alice
                .send_advisory("~alice/cc-editor@s1", "the other")
                .await,
            1
        );
        assert_eq!(two.advisory_texts(1).await, ["the other"]);
    }
);

memory_story!(
    a_session_is_addressed_from_when_it_opens_until_it_is_gone,
    |hub| async {
        // FRM-48, FRM-72: expansion is at delivery time; without an id nothing of before is shown
        let alice = hub.agent("alice").await;
        assert_eq!(alice.send_advisory("~alice", "too early").await, 0);
        let mut session = alice.open_session("cc-editor", "s1").await;
        assert_eq!(alice.send_advisory("~alice", "in time").await, 1);
        assert_eq!(session.advisory_texts(1).await, ["in time"]);
        drop(session);
        crate::support::hub::eventually("it is gone", || async {
            alice.send_advisory("~alice", "too late").await == 0
        })
        .await;
    }
);

story!(
    another_handle_is_addressed_only_with_its_grant,
    |hub| async {
        // FRM-56, FRM-91, FRM-95, R-46; the answer does not reveal whether the handle exists
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut session = bob.open_session("vim", "s1").await;
        alice.grant(&bob).await;
        let mut told = Vec::new();
        for handle in ["~bob", "~absent"] {
            for scope in [
                handle.to_owned(),
                format!("{handle}/*"),
                format!("{handle}/v*"),
                format!("{handle}/vim@s1"),
            ] {
                let frame = alice.advisory_to(&scope, "uninvited");
                let answer = alice.submit(&scope, &frame).await;
                told.push(
                    answer
                        .frame_refused(403, "scope-unauthorised", Some("scope"))
                        .replace(handle, "~x"),
                );
            }
        }
        let (known, unknown) = told.split_at(4);
        assert_eq!(known, unknown);
        bob.grant(&alice).await;
        assert_eq!(alice.send_advisory("~bob/vim@s1", "invited").await, 1);
        assert_eq!(session.advisory_texts(1).await, ["invited"]);
    }
);

memory_story!(the_scope_and_the_recipient_are_one_handle, |hub| async {
    // FRM-08, FRM-57, R-46
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    bob.grant(&alice).await;
    alice.found_organisation("~acme").await;
    let (mut mine, mut his) = (
        alice.open_session("vim", "s1").await,
        bob.open_session("vim", "s1").await,
    );
    for (recipient, scope) in [
        ("~bob", "~alice"),
        ("~alice", "~bob"),
        ("~alice", "~bob/vim@s1"),
        ("~alice", "org:acme/members/*"),
        ("~acme", "~alice"),
        ("~alice", "accord:acme/grant:ops"),
    ] {
        let frame = alice.advisory_to(recipient, "at cross purposes");
        alice
            .submit(scope, &frame)
            .await
            .frame_refused(403, "scope-unauthorised", Some("scope"));
    }
    alice.send_advisory("~alice", "marker").await;
    alice.send_advisory("~bob", "marker").await;
    assert_eq!(
        (mine.advisory_texts(1).await, his.advisory_texts(1).await),
        (vec!["marker".to_owned()], vec!["marker".to_owned()])
    );
});

memory_story!(an_organisation_answers_to_its_members_only, |hub| async {
    // FRM-53, FRM-54, FRM-58…61, FRM-92, R-46, R-47: with or without `~`; the answer does not reveal whether it exists
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    alice.found_organisation("~acme").await;
    let mut session = alice.open_session("vim", "s1").await;
    for (place, scope) in [
        "org:acme/members/*",
        "org:~acme/members/*",
        "org:acme/members/owner/*",
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(
            alice.send_advisory(scope, &format!("{place}")).await,
            1,
            "{scope}"
        );
        assert_eq!(session.advisory_texts(1).await, [format!("{place}")]);
    }
    assert_eq!(
        alice
            .send_advisory("org:acme/members/reviewer/*", "no member has that role")
            .await,
        0
    );
    for scope in [
        "org:acme/members/*",
        "org:acme/members/owner/*",
        "org:absent/members/*",
        "accord:acme/grant:ops",
    ] {
        let frame = bob.advisory_to(scope, "from outside");
        bob.submit(scope, &frame)
            .await
            .frame_refused(403, "scope-unauthorised", Some("scope"));
    }
    alice.send_advisory("~alice", "marker").await;
    assert_eq!(session.advisory_texts(1).await, ["marker"]);
});

memory_story!(towards_others_the_count_is_coarse, |hub| async {
    // FRM-108, R-50
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    bob.grant(&alice).await;
    let mut open = Vec::new();
    for sessions in 0..=12_u64 {
        let told = match sessions {
            0 => 0,
            1..=9 => 1,
            10.. => 10,
        };
        assert_eq!(
            alice.send_advisory("~bob", "how many are you?").await,
            told,
            "{sessions}"
        );
        assert_eq!(
            bob.send_advisory("~bob", "how many are we?").await,
            sessions
        );
        open.push(bob.open_session("vim", &format!("s{sessions}")).await);
    }
});
