//! The nodes of a session for the tree browser: read from the index alone, never from the payloads.

pub(crate) mod append;
pub(crate) mod branches;
pub(crate) mod divergence;
pub(crate) mod entries;
pub(crate) mod find;
pub(crate) mod heads;
pub(crate) mod path;
pub(crate) mod tags;
pub(crate) mod whose;
pub(crate) mod words;

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use tiller_protocol::tree::{NodeKind, SessionTree, TreeHead, TreeNode, TreeSpawned, TreeTag};
use tiller_protocol::{AgentId, Cost, EntryId, SessionId, Time};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::handles::Tree;
use crate::tree::entries::uncount;

/// The columns of the index `entries_session`; any other column would read the payloads' pages.
pub(crate) const NODES: &str =
    "SELECT seq, id, parent, kind, time, agent, model, input, output, cache_read, cache_write, cost
   FROM entries WHERE session = ?1 ORDER BY seq";

/// Indices of names and entries.
#[derive(Default)]
struct Places {
    names: Vec<String>,
}

impl Places {
    /// The index of a name; a new name is added. There are few.
    fn of(&mut self, name: &str) -> u16 {
        let at = self.names.iter().position(|n| n == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }
}

/// Nodes while they are read: most parents come directly before their child.
#[derive(Default)]
struct Nodes {
    all: Vec<TreeNode>,
    /// Created on first use.
    by_id: HashMap<Uuid, u32>,
}

impl Nodes {
    fn place(&mut self, id: Uuid) -> Option<u32> {
        if self.all.last().is_some_and(|n| n.id.0 == id) {
            return u32::try_from(self.all.len() - 1).ok();
        }
        for (n, node) in self.all.iter().enumerate().skip(self.by_id.len()) {
            self.by_id.insert(node.id.0, u32::try_from(n).unwrap_or(u32::MAX));
        }
        self.by_id.get(&id).copied()
    }
}

fn nodes(conn: &Connection, session: SessionId, tree: &mut SessionTree) -> Result<Nodes> {
    let (mut nodes, mut agents, mut models) = (Nodes::default(), Places::default(), Places::default());
    let mut statement = conn.prepare_cached(NODES)?;
    let mut rows = statement.query(params![session.0])?;
    while let Some(row) = rows.next()? {
        let parent: Option<Uuid> = row.get(2)?;
        let parent = parent.and_then(|id| nodes.place(id));
        let text = |n: usize| row.get_ref(n)?.as_str().map_err(rusqlite::Error::from);
        let tokens = |n: usize| row.get::<_, Option<i64>>(n).map(|c| c.map_or(0, uncount));
        let model = row.get_ref(6)?.as_str_or_null().map_err(rusqlite::Error::from)?;
        let mut sum = 0_u64;
        for n in 7..11 {
            sum = sum.saturating_add(tokens(n)?);
        }
        let node = TreeNode {
            seq: row.get(0)?,
            id: EntryId(row.get(1)?),
            parent,
            kind: NodeKind::of(text(3)?),
            time: Time(row.get(4)?),
            agent: agents.of(text(5)?),
            model: model.map(|m| models.of(m)),
            tokens: sum,
            cost: row.get::<_, Option<i64>>(11)?.map(|c| Cost(uncount(c))),
        };
        nodes.all.push(node);
    }
    (tree.agents, tree.models) = (agents.names, models.names);
    Ok(nodes)
}

/// Sessions that were started in this one, each with its agent. A session that was started before the first entry is
/// attached to that entry.
fn spawned(conn: &Connection, session: SessionId, nodes: &mut Nodes) -> Result<Vec<TreeSpawned>> {
    let mut statement = conn.prepare_cached(
        "SELECT s.id, s.spawned_by, s.title, s.preview, s.entries, s.cost, s.used, a.name, a.state
         FROM sessions s JOIN entries e ON e.id = s.spawned_by LEFT JOIN agents a ON a.session = s.id
         WHERE s.spawned_by IS NOT NULL AND s.trashed IS NULL AND e.session = ?1
         UNION ALL
         SELECT s.id, NULL, s.title, s.preview, s.entries, s.cost, s.used, a.name, a.state
         FROM agents a JOIN sessions s ON s.id = a.session
         WHERE a.root = ?1 AND s.spawned_by IS NULL AND s.trashed IS NULL ORDER BY 1",
    )?;
    let mut rows = statement.query(params![session.0])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let node = match row.get::<_, Option<Uuid>>(1)? {
            Some(by) => nodes.place(by),
            None => (!nodes.all.is_empty()).then_some(0),
        };
        let Some(node) = node else { continue };
        let (id, title): (Uuid, String) = (row.get(0)?, row.get(2)?);
        found.push(TreeSpawned {
            session: SessionId(id),
            node,
            title: if title.is_empty() { row.get(3)? } else { title },
            agent: row.get::<_, Option<String>>(7)?.map(AgentId),
            state: row.get::<_, Option<String>>(8)?.map(crate::session::agents::state),
            time: Some(Time(row.get(6)?)),
            entries: uncount(row.get(4)?),
            tokens: conn.prepare_cached(TOKENS)?.query_row(params![id], |r| r.get(0).map(uncount))?,
            cost: row.get::<_, Option<i64>>(5)?.map(|c| Cost(uncount(c))),
            files: conn.prepare_cached(FILES)?.query_row(params![id], |r| r.get(0))?,
        });
    }
    // By the numbers in their names. The order of ids within a millisecond is arbitrary.
    found.sort_by(|a, b| {
        let key = |s: &TreeSpawned| s.agent.as_ref().map(|a| (a.0.len(), a.0.clone()));
        key(a).cmp(&key(b))
    });
    Ok(found)
}

/// Tokens of all replies of a session.
const TOKENS: &str =
    "SELECT coalesce(sum(input), 0) + coalesce(sum(output), 0) + coalesce(sum(cache_read), 0)
   + coalesce(sum(cache_write), 0) FROM entries WHERE session = ?1";
/// Number of files that its calls changed.
const FILES: &str =
    "SELECT count(DISTINCT json_extract(f.value, '$.path')) FROM steps s, json_each(s.files) f
   WHERE s.session = ?1 AND s.kind = 'call'";

impl Tree<'_> {
    /// A session as a tree, without its texts. Takes about a microsecond for each entry.
    ///
    /// # Errors
    /// [`StoreError::NoSession`], or when the database cannot be read.
    pub fn load(&self, session: SessionId) -> Result<SessionTree> {
        let (branches, tags) = (self.store.branches().list(session)?, self.store.tags().list(session)?);
        self.store.read(|conn| {
            let (title, project, current): (String, String, String) = conn
                .prepare_cached("SELECT title, project, head FROM sessions WHERE id = ?1")?
                .query_row(params![session.0], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
                .optional()?
                .ok_or(StoreError::NoSession(session))?;
            let mut tree = SessionTree {
                session,
                title,
                project,
                agents: Vec::new(),
                models: Vec::new(),
                nodes: Vec::new(),
                heads: Vec::new(),
                tags: Vec::new(),
                spawned: Vec::new(),
            };
            let mut nodes = nodes(conn, session, &mut tree)?;
            for b in &branches {
                let node = b.entry.and_then(|e| nodes.place(e.0));
                tree.heads.push(TreeHead {
                    current: b.name == current,
                    name: b.name.clone(),
                    label: b.label.clone(),
                    node,
                    archived: b.archived,
                    open_in: b.open_in,
                });
            }
            for t in &tags {
                // A tag that was set after the nodes were read is shown next time.
                tree.tags.extend(nodes.place(t.entry.0).map(|node| TreeTag { name: t.name.clone(), node }));
            }
            tree.spawned = spawned(conn, session, &mut nodes)?;
            tree.nodes = nodes.all;
            Ok(tree)
        })
    }
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
