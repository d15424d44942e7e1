//! Readiness: `/ready` is 503 while the hub cannot keep what it acknowledges (R-24, TRN-37).

use crate::support::actors::WriteFault;
use crate::support::hub::eventually;

story!(
    a_hub_whose_database_takes_no_writes_is_not_ready,
    |hub| async {
        // Reads go on, so only a write can tell.
        let stranger = hub.anonymous();
        let fault = WriteFault::begin(&hub).await;
        stranger.get("/ready").await.refused(503, "ERR_UNAVAILABLE");
        fault.end().await;
        eventually("it is ready again", || async {
            stranger.get("/ready").await.status == 200
        })
        .await;
    }
);

sqlite_story!(
    a_hub_whose_data_directory_was_moved_is_not_ready,
    with(|set| set.hub.data_dir.push("data")),
    |hub| async {
        // What it writes is lost to every later start.
        let stranger = hub.anonymous();
        assert_eq!(stranger.get("/ready").await.status, 200);
        let moved = hub.dir.path().join("moved");
        std::fs::rename(&hub.settings.hub.data_dir, moved).unwrap();
        stranger.get("/ready").await.refused(503, "ERR_UNAVAILABLE");
        // A second hub on the path has a lock file of its own.
        let second = hub.start_second().await.expect("the path is free");
        stranger.get("/ready").await.refused(503, "ERR_UNAVAILABLE");
        second.stop().await;
    }
);
