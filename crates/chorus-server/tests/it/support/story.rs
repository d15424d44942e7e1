//! The macros that turn one story into a test per engine: SQLite, PostgreSQL, and two hubs on one PostgreSQL.

/// `story!(name, |hub| async { … })` makes the tests `name::sqlite`, `name::postgres` and `name::cluster`;
/// `with(|settings| …)` in the middle changes how the hub is set up.
macro_rules! story {
    ($($rest:tt)*) => { define_story!([sqlite postgres cluster] $($rest)*); };
}

/// Without the cluster: for stories about a hub's directory, its locks or its own start and stop.
macro_rules! single_hub_story {
    ($($rest:tt)*) => { define_story!([sqlite postgres] $($rest)*); };
}

/// Without PostgreSQL alone: for state that is only in memory and differs on no engine.
macro_rules! memory_story {
    ($($rest:tt)*) => { define_story!([sqlite cluster] $($rest)*); };
}

/// On SQLite only: for the files in a hub's directory, or for what each hub counts on its own.
macro_rules! sqlite_story {
    ($($rest:tt)*) => { define_story!([sqlite] $($rest)*); };
}

macro_rules! define_story {
    ([$($engine:ident)*] $name:ident, |$hub:ident| async $story:block) => {
        define_story!([$($engine)*] $name, with(|_| ()), |$hub| async $story);
    };
    ([$($engine:ident)*] $name:ident, with($with:expr), |$hub:ident| async $story:block) => {
        mod $name {
            #[allow(unused_imports, reason = "a short story may need nothing from its file")]
            use super::*;

            #[allow(unused_mut, reason = "only stories that restart the hub change it")]
            async fn run_story(mut $hub: crate::support::hub::Hub) $story

            $(define_story!(on $engine, $with);)*
        }
    };
    (on sqlite, $with:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn sqlite() {
            run_story(crate::support::hub::Hub::sqlite($with).await).await;
        }
    };
    (on postgres, $with:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn postgres() {
            if let Some(hub) = crate::support::hub::Hub::postgres($with).await {
                run_story(hub).await;
            }
        }
    };
    (on cluster, $with:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn cluster() {
            if let Some(hub) = crate::support::hub::Hub::cluster($with).await {
                run_story(hub).await;
            }
        }
    };
}
