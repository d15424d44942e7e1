//! From a checked tree to typed fields: what a field holds, one rule per type.

use super::read::Node;
use super::scope::Scope;
use crate::{identity::Handle, time::Micros};
use uuid::Uuid;

/// A field's type. After the checks of [`super::shape`] nothing here comes out as `None`, but the types do not know that.
pub trait Held: Sized {
    fn held(node: Option<&Node<'_>>) -> Option<Self>;

    /// Whether printing leaves it out.
    fn absent(&self) -> bool {
        false
    }
}

impl<T: Held> Held for Option<T> {
    fn held(node: Option<&Node<'_>>) -> Option<Self> {
        match node {
            None => Some(None),
            Some(_) => T::held(node).map(Some),
        }
    }

    fn absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Held> Held for Vec<T> {
    fn held(node: Option<&Node<'_>>) -> Option<Self> {
        node?
            .list()?
            .iter()
            .map(|item| T::held(Some(item)))
            .collect()
    }
}

impl Held for String {
    fn held(node: Option<&Node<'_>>) -> Option<Self> {
        node?.text().map(str::to_owned)
    }
}

impl Held for bool {
    fn held(node: Option<&Node<'_>>) -> Option<Self> {
        match node? {
            Node::Flag(flag) => Some(*flag),
            Node::Null
            | Node::Whole(_)
            | Node::Number
            | Node::Text(_)
            | Node::List(_)
            | Node::Object(_) => None,
        }
    }
}

impl Held for u64 {
    fn held(node: Option<&Node<'_>>) -> Option<Self> {
        match node? {
            Node::Whole(number) => Some(*number),
            Node::Null
            | Node::Flag(_)
            | Node::Number
            | Node::Text(_)
            | Node::List(_)
            | Node::Object(_) => None,
        }
    }
}

impl Held for Uuid {
    fn held(node: Option<&Node<'_>>) -> Option<Self> {
        uuid4(node?.text()?)
    }
}

impl Held for Micros {
    fn held(node: Option<&Node<'_>>) -> Option<Self> {
        Micros::parse(node?.text()?)
    }
}

impl Held for Handle {
    fn held(node: Option<&Node<'_>>) -> Option<Self> {
        Handle::parse(node?.text()?)
    }
}

impl Held for Scope {
    fn held(node: Option<&Node<'_>>) -> Option<Self> {
        Scope::parse(node?.text()?)
    }
}

/// Hyphenated, in any letter case, of version 4 and of the variant in which versions mean anything.
pub fn uuid4(text: &str) -> Option<Uuid> {
    let id = if text.len() == 36 {
        Uuid::try_parse(text).ok()?
    } else {
        return None;
    };
    let random = id.get_version_num() == 4 && id.get_variant() == uuid::Variant::RFC4122;
    random.then_some(id)
}
