//! Code shared by the decoders of several formats.

use std::collections::VecDeque;

use tiller_protocol::Usage;

use crate::codec::chunk::Chunk;

/// The kind of an open block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    Text,
    Thought,
}

/// Assigns indices to blocks, for formats whose deltas have none: text and thoughts extend the open block until another
/// kind arrives.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    next: usize,
    running: Option<(BlockKind, usize)>,
}

impl Blocks {
    /// The index of a new block.
    pub(crate) fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    /// Whether any block began.
    pub(crate) fn any(&self) -> bool {
        self.next > 0
    }

    /// The open block, if it is of this kind.
    pub(crate) fn running(&self, kind: BlockKind) -> Option<usize> {
        self.running.filter(|(k, _)| *k == kind).map(|(_, index)| index)
    }

    /// The open block of this kind; a new one begins when another kind was open. The flag: it is new.
    pub(crate) fn run(&mut self, kind: BlockKind, out: &mut VecDeque<Chunk>) -> (usize, bool) {
        if let Some(index) = self.running(kind) {
            return (index, false);
        }
        self.end(out);
        let index = self.fresh();
        self.running = Some((kind, index));
        (index, true)
    }

    /// Ends the open block.
    pub(crate) fn end(&mut self, out: &mut VecDeque<Chunk>) {
        if let Some((_, index)) = self.running.take() {
            out.push_back(Chunk::BlockEnd { index });
        }
    }
}

/// Token counts for a format that includes cached tokens in the prompt, and reasoning in the output. Parts never exceed
/// the whole: other ways of counting must not give a negative rest.
pub(crate) fn usage(prompt: u64, cache_read: u64, cache_write: u64, output: u64, reasoning: u64) -> Usage {
    let cache_read = cache_read.min(prompt);
    let cache_write = cache_write.min(prompt - cache_read);
    Usage {
        input: prompt - cache_read - cache_write,
        output,
        cache_read,
        cache_write,
        reasoning: reasoning.min(output),
        estimated: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_go_on_until_another_kind_comes() {
        let (mut b, mut out) = (Blocks::default(), VecDeque::new());
        assert!(!b.any());
        assert_eq!(b.run(BlockKind::Thought, &mut out), (0, true));
        assert_eq!(b.run(BlockKind::Thought, &mut out), (0, false));
        assert!(out.is_empty());
        assert_eq!(b.run(BlockKind::Text, &mut out), (1, true));
        assert_eq!(Vec::from(std::mem::take(&mut out)), [Chunk::BlockEnd { index: 0 }]);
        b.end(&mut out);
        b.end(&mut out);
        assert_eq!(Vec::from(out), [Chunk::BlockEnd { index: 1 }]);
        assert_eq!((b.running(BlockKind::Text), b.fresh(), b.any()), (None, 2, true));
    }

    #[test]
    fn parts_are_never_more_than_the_whole() {
        let u = usage(10, 7, 9, 4, 99);
        assert_eq!((u.input, u.cache_read, u.cache_write, u.output, u.reasoning), (0, 7, 3, 4, 4));
        let u = usage(10, 99, 1, 0, 0);
        assert_eq!((u.input, u.cache_read, u.cache_write), (0, 10, 0));
    }
}
