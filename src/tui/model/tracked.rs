//! Revision numbers of the model's slices. A frame compares them with those of the frame before, and draws only the
//! panels that read a slice with another number.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of one state of one value. Two states of any values never share a number in one process, so that equal
/// numbers mean an unchanged value, also after values were swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(u64);

impl Revision {
    /// A number that no value has had, higher than all before.
    pub fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for Revision {
    fn default() -> Self {
        Self::fresh()
    }
}

/// A value with the number of its state: each mutable access gives it a new one.
#[derive(Debug)]
pub struct Tracked<T> {
    value: T,
    revision: Revision,
}

impl<T> Tracked<T> {
    pub fn new(value: T) -> Self {
        Self { value, revision: Revision::fresh() }
    }

    /// The number of the present state.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Gives the value another number, as a change of it does.
    pub fn touch(&mut self) {
        self.revision = Revision::fresh();
    }

    /// The value alone.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Mutable access to what does not show, such as caches: the number stays.
    pub fn untracked(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T: PartialEq> Tracked<T> {
    /// Replaces the value; the number stays when both are equal.
    pub fn set(&mut self, value: T) {
        if self.value != value {
            **self = value;
        }
    }
}

impl<T: Default> Default for Tracked<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Deref for Tracked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Tracked<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.touch();
        &mut self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_changes_with_the_value_and_goes_with_it() {
        let (mut a, mut b) = (Tracked::new(vec![1]), Tracked::new(vec![1]));
        let (first, second) = (a.revision(), b.revision());
        assert_ne!(first, second, "equal values of two slices are two states");
        assert_eq!(a.len(), 1);
        assert_eq!(a.revision(), first, "reading changes nothing");
        std::mem::swap(&mut a, &mut b);
        assert_eq!((a.revision(), b.revision()), (second, first));
        a.push(2);
        assert_ne!(a.revision(), second);
        let pushed = a.revision();
        a.set(vec![1, 2]);
        a.untracked().reserve(8);
        assert_eq!(a.revision(), pushed);
        a.set(Vec::new());
        assert_ne!(a.revision(), pushed);
    }
}
