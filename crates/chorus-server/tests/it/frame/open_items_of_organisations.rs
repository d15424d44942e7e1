//! Open items that were said to an organisation or through an accord stand under its handle, for its members.

use super::accords::{agrees, proposes, two_orgs};
use super::open_items::frame_ids;
use super::organisations::{good, put, takes_in};
use crate::support::actors::{frame_id, rows};
use serde_json::json;

story!(
    what_is_said_to_an_organisation_stands_under_it_for_its_members,
    |hub| async {
        // R-83, FRM-53, FRM-54
        let alice = hub.agent("alice").await;
        let (bob, carol) = (hub.agent("bob").await, hub.agent("carol").await);
        let outsider = hub.agent("dave").await;
        alice.found_organisation("~acme").await;
        takes_in(&alice, "~acme", &bob, &["ops"]).await;
        takes_in(&alice, "~acme", &carol, &[]).await;
        let (all, said) = alice
            .claim("org:~acme/members/*", "deploy", &frame_id())
            .await;
        assert_eq!(said["kept"], true);
        let (ops, _) = alice
            .hand_over("org:~acme/members/ops/*", "the pager")
            .await;
        for (reader, expected) in [
            (&alice, vec![ops.as_str(), all.as_str()]),
            (&bob, vec![ops.as_str(), all.as_str()]),
            (&carol, vec![all.as_str()]),
        ] {
            assert_eq!(frame_ids(&reader.open_under("~acme").await), expected);
            let own = reader.open_under(&reader.handle()).await;
            assert_eq!(frame_ids(&own), expected, "beside its own");
            assert_eq!(own[0]["handle"], "~acme");
            let session = reader.open_session("vim", "s1").await;
            let told = rows(session.open_items.data["items"].clone());
            assert_eq!(frame_ids(&told), expected);
        }
        outsider
            .get("/handles/~acme/open")
            .await
            .frame_refused(403, "forbidden", None);
        carol
            .take("~acme", &ops, "s1")
            .await
            .frame_refused(404, "not-found", None);
        good(&bob.take("~acme", &ops, "s1").await, 200);
        assert_eq!(frame_ids(&alice.open_under("~acme").await), [all.as_str()]);
        good(&alice.withdraw("~acme", &all).await, 200);
        assert!(bob.open_under("~bob").await.is_empty());
    }
);

story!(
    what_is_said_through_an_accord_stands_under_the_organisation_that_granted_it,
    |hub| async {
        // R-83, FRM-55
        let (alice, bob) = two_orgs(&hub).await;
        let (carol, dave) = (hub.agent("carol").await, hub.agent("dave").await);
        takes_in(&alice, "~acme", &carol, &["ops"]).await;
        takes_in(&alice, "~acme", &dave, &[]).await;
        let body = json!({"grantee": "~peer", "grant": "ops", "reaches": "ops"});
        let accord = proposes(&alice, "~acme", &body).await;
        good(&agrees(&bob, "~peer", &accord).await, 200);
        let (id, said) = bob.hand_over("accord:~acme/grant:ops", "our part").await;
        assert_eq!(said["kept"], true);
        assert_eq!(frame_ids(&carol.open_under("~acme").await), [id.as_str()]);
        assert!(dave.open_under("~acme").await.is_empty());
        assert!(bob.open_under("~bob").await.is_empty());
        bob.get("/handles/~acme/open")
            .await
            .frame_refused(403, "forbidden", None);
        good(&carol.take("~acme", &id, "s1").await, 200);
        assert!(carol.open_under("~acme").await.is_empty());
    }
);

story!(
    a_member_does_not_read_what_an_agent_that_it_blocks_said_to_the_organisation,
    |hub| async {
        // for the other members it stays open
        let alice = hub.agent("alice").await;
        let (bob, eve) = (hub.agent("bob").await, hub.agent("eve").await);
        alice.found_organisation("~acme").await;
        takes_in(&alice, "~acme", &bob, &[]).await;
        takes_in(&alice, "~acme", &eve, &[]).await;
        let (before, _) = eve.hand_over("org:~acme/members/*", "the first part").await;
        assert_eq!(frame_ids(&bob.open_under("~acme").await), [before.as_str()]);
        put(&bob, "/agent/blocks/~eve", &json!({})).await.data(200);
        let (after, said) = eve
            .hand_over("org:~acme/members/*", "the second part")
            .await;
        assert_eq!(said["kept"], true);
        let both = [after.as_str(), before.as_str()];
        for reader in [&alice, &eve] {
            assert_eq!(frame_ids(&reader.open_under("~acme").await), both);
        }
        for handle in ["~acme", "~bob"] {
            assert!(bob.open_under(handle).await.is_empty(), "{handle}");
        }
        let session = bob.open_session("vim", "s1").await;
        assert_eq!(session.open_items.data["items"], json!([]));
        bob.delete("/agent/blocks/~eve").await.data(200);
        assert_eq!(frame_ids(&bob.open_under("~acme").await), both);
    }
);
