//! The crew: the tree of agents that work for one session.
//!
//! Each child of Tiller's own is a [`crate::core::Core`] like the main one, on a task of its own, with a session of
//! its own that hangs off the entry which started it. So whatever works for the main agent works for a child:
//! steering, interrupting, compaction, branches, restore. The main agent's task keeps the books.

mod command;
