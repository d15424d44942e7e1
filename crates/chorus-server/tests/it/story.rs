//! One story, two databases, and two hubs that share one; or less, where that has no part in it.

/// `story!(name, |hub| async { … })` makes the tests `name::sqlite`, `name::postgres` and `name::cluster`;
/// `with(|settings| …)` in the middle changes how the hub is set up.
macro_rules! story {
    ($($told:tt)*) => { telling!([sqlite postgres cluster] $($told)*); };
}

/// To one hub only: what is about its directory, its locks or its own life.
macro_rules! alone_story {
    ($($told:tt)*) => { telling!([sqlite postgres] $($told)*); };
}

/// What is only in memory, and differs on no engine.
macro_rules! live_story {
    ($($told:tt)*) => { telling!([sqlite cluster] $($told)*); };
}

/// What is in the directory of a hub, or what each hub counts for itself.
macro_rules! file_story {
    ($($told:tt)*) => { telling!([sqlite] $($told)*); };
}

macro_rules! telling {
    ([$($to:ident)*] $name:ident, |$hub:ident| async $story:block) => {
        telling!([$($to)*] $name, with(|_| ()), |$hub| async $story);
    };
    ([$($to:ident)*] $name:ident, with($with:expr), |$hub:ident| async $story:block) => {
        mod $name {
            #[allow(unused_imports, reason = "a short story may need nothing from its file")]
            use super::*;

            #[allow(unused_mut, reason = "only stories that restart the hub change it")]
            async fn tell(mut $hub: crate::hub::Hub) $story

            $(telling!(to $to, $with);)*
        }
    };
    (to sqlite, $with:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn sqlite() {
            tell(crate::hub::Hub::sqlite($with).await).await;
        }
    };
    (to postgres, $with:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn postgres() {
            if let Some(hub) = crate::hub::Hub::postgres($with).await {
                tell(hub).await;
            }
        }
    };
    (to cluster, $with:expr) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn cluster() {
            if let Some(hub) = crate::hub::Hub::cluster($with).await {
                tell(hub).await;
            }
        }
    };
}
