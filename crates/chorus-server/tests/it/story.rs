//! One story, two databases, and two hubs that share one; or less, where that has no part in it.

/// `story!(name, |hub| async { … })` makes the tests `name::sqlite`, `name::postgres` and `name::cluster`;
/// `with(|settings| …)` in the middle changes how the hub is set up. Stories of one hub alone, about its directory or its
/// locks, are told as `alone_story!`.
macro_rules! story {
    ($name:ident, |$hub:ident| async $story:block) => {
        story!($name, with(|_| ()), |$hub| async $story);
    };
    ($name:ident, with($with:expr), |$hub:ident| async $story:block) => {
        mod $name {
            #[allow(unused_imports, reason = "a short story may need nothing from its file")]
            use super::*;

            #[allow(unused_mut, reason = "only stories that restart the hub change it")]
            async fn tell(mut $hub: crate::hub::Hub) $story

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                tell(crate::hub::Hub::sqlite($with).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(hub) = crate::hub::Hub::postgres($with).await {
                    tell(hub).await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[cfg(feature = "cluster")]
            async fn cluster() {
                if let Some(hub) = crate::hub::Hub::cluster($with).await {
                    tell(hub).await;
                }
            }
        }
    };
}

/// The same on one hub only.
macro_rules! alone_story {
    ($name:ident, |$hub:ident| async $story:block) => {
        alone_story!($name, with(|_| ()), |$hub| async $story);
    };
    ($name:ident, with($with:expr), |$hub:ident| async $story:block) => {
        mod $name {
            #[allow(unused_imports, reason = "a short story may need nothing from its file")]
            use super::*;

            #[allow(unused_mut, reason = "only stories that restart the hub change it")]
            async fn tell(mut $hub: crate::hub::Hub) $story

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                tell(crate::hub::Hub::sqlite($with).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                if let Some(hub) = crate::hub::Hub::postgres($with).await {
                    tell(hub).await;
                }
            }
        }
    };
}

/// The same on the embedded database alone, and on two hubs: for what is only in memory, and differs on no engine.
macro_rules! live_story {
    ($name:ident, |$hub:ident| async $story:block) => {
        live_story!($name, with(|_| ()), |$hub| async $story);
    };
    ($name:ident, with($with:expr), |$hub:ident| async $story:block) => {
        mod $name {
            #[allow(unused_imports, reason = "a short story may need nothing from its file")]
            use super::*;

            #[allow(unused_mut, reason = "only stories that restart the hub change it")]
            async fn tell(mut $hub: crate::hub::Hub) $story

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                tell(crate::hub::Hub::sqlite($with).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[cfg(feature = "cluster")]
            async fn cluster() {
                if let Some(hub) = crate::hub::Hub::cluster($with).await {
                    tell(hub).await;
                }
            }
        }
    };
}

/// The same on the embedded database and one hub: for what is in its directory, or what each hub counts for itself.
macro_rules! file_story {
    ($name:ident, |$hub:ident| async $story:block) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            #[allow(unused_mut, reason = "only stories that restart the hub change it")]
            let mut $hub = crate::hub::Hub::sqlite(|_| ()).await;
            $story
        }
    };
}
