//! The macro `string_enum!`: an enum whose variants are the only texts that a field may hold.

/// Defines an enum with one wire text per variant, written once beside it. The enum is printed, parsed,
/// serialised and deserialised by exactly that text, without allocation.
///
/// The one macro for such tables, on the wire and in the store (D-130). The text is matched as `tt`: utoipa overlooks a
/// `rename` whose value is a `literal` fragment.
#[macro_export]
macro_rules! string_enum {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $text:tt,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The wire texts, in the order of [`Self::ALL`].
            pub const TEXTS: &'static [&'static str] = &[$($text),+];

            /// The wire text.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Accepts exactly the wire text: no trimming, no case folding.
            pub fn parse(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use string_enum;
