//! Reads tables from the pages of their trees, where SQLite cannot go on: below a page that is damaged, beside it and behind it.
//! Of a page that lost its place in a tree the rows are taken where only one damaged table can be theirs, and the page is known to be
//! in use: one that is not may have rows that a person removed.

use std::collections::HashSet;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};

use crate::damage::pages::{Kind, Pages, RowOf, Value};
use crate::error::Result;

/// Tables that give rights or start something: a row that was deleted and whose page is still there must not come back.
const ONLY_IN_PLACE: &[&str] =
    &["asks", "memory_runs", "meta", "pending", "queue", "rules", "running", "trust"];

/// Tables that give rights: what may be the tree of another table does not become one.
const RIGHTS: &[&str] = &["rules", "trust"];

/// The trees of a damaged database.
pub(crate) struct Trees<'a> {
    pages: Pages<'a>,
    /// The schema is that of the new database, whose tables may be in other places.
    guessed: bool,
    tables: Vec<TableTree>,
    /// Tables of which a part cannot be read in its place.
    broken: HashSet<u32>,
    /// Pages with rows that belong to no tree; none where it is not known which pages are in use.
    orphans: Vec<(u32, Kind)>,
}

/// The tree of a table.
struct TableTree {
    name: String,
    root: u32,
    kind: Kind,
    /// In the order of a record.
    columns: Vec<Column>,
}

struct Column {
    name: String,
    kind: String,
    required: bool,
    /// It is the number of the row.
    number: bool,
}

impl TableTree {
    /// Whether a row can be one of this table.
    fn fits(&self, (_, values): &RowOf) -> bool {
        values.len() <= self.columns.len()
            && values.iter().zip(&self.columns).all(|(value, column)| match (value, column.kind.as_str()) {
                (Value::Null, _) => column.number || !column.required,
                (Value::Int(_), "INTEGER" | "REAL" | "ANY")
                | (Value::Real(_), "REAL" | "ANY")
                | (Value::Text(_), "TEXT" | "ANY")
                | (Value::Blob(_), "BLOB" | "ANY") => true,
                _ => false,
            })
            && !values.is_empty()
    }
}

/// The result of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CopiedTable {
    /// Whether the table was readable from one end to the other.
    pub(crate) whole: bool,
    /// Readable rows that are damaged nevertheless.
    pub(crate) skipped: u64,
}

/// Whether the row of an insertion is there now, or was before. A row that violates a constraint of its table counts as damaged.
pub(crate) fn is_kept(inserted: rusqlite::Result<usize>) -> rusqlite::Result<bool> {
    use rusqlite::ErrorCode::{ConstraintViolation, TypeMismatch};
    use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID};
    match inserted {
        Ok(_) => Ok(true),
        Err(rusqlite::Error::SqliteFailure(code, _))
            if matches!(code.code, ConstraintViolation | TypeMismatch) =>
        {
            Ok([SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID].contains(&code.extended_code))
        }
        // Text that is none.
        Err(rusqlite::Error::Utf8Error(..)) => Ok(false),
        Err(error) => Err(error),
    }
}

impl<'a> Trees<'a> {
    /// Finds the trees by the schema of the damaged database; without one by that of the new one, if rows of sessions or entries,
    /// which `is_known` tells, are where it says.
    pub(crate) fn read(
        file: &'a [u8],
        log: &'a [u8],
        new: &Connection,
        is_known: fn(&RowOf) -> bool,
    ) -> Result<Self> {
        let pages = Pages::committed(file, log);
        let mut schema = Vec::new();
        pages.walk(1, Kind::Table, &mut HashSet::new(), &mut |(_, row)| schema.extend(SchemaRow::of(&row)));
        let guessed = !schema.iter().any(|row| row.table);
        if guessed {
            schema = SchemaRow::all(new)?;
            let there = schema.iter().any(|row| {
                let mut known = false;
                pages.walk(row.root, Kind::Table, &mut HashSet::new(), &mut |row| {
                    known |= is_known(&row);
                });
                known && ["entries", "sessions"].contains(&row.name.as_str())
            });
            if !there {
                schema.clear();
            }
        }
        let (mut seen, mut broken, mut tables) = (HashSet::from([1]), HashSet::new(), Vec::new());
        for row in schema {
            let tree = if row.table { row.tree(new) } else { None };
            let kind = tree.as_ref().map_or(Kind::Index, |tree| tree.kind);
            if !pages.walk(row.root, kind, &mut seen, &mut |_| {}) {
                broken.insert(row.root);
            }
            tables.extend(tree);
        }
        let lost = pages.free().into_iter().flat_map(|free| {
            let lost = |page: &u32| !seen.contains(page) && !free.contains(page);
            (2..=pages.count()).filter(lost).collect::<Vec<_>>()
        });
        let kinds = |page| {
            [Kind::Table, Kind::Index]
                .into_iter()
                .find(|kind| pages.rows_of(page, *kind).is_some())
                .map(|kind| (page, kind))
        };
        let orphans = lost.filter_map(kinds).collect();
        Ok(Self { pages, guessed, tables, broken, orphans })
    }

    /// Adds the rows of a table that `conn` does not have yet. `None`: its tree is not known.
    pub(crate) fn add_missing(&self, conn: &Connection, table: &str) -> Result<Option<CopiedTable>> {
        if self.guessed && RIGHTS.contains(&table) {
            return Ok(None);
        }
        let Some(tree) = self.tables.iter().find(|tree| tree.name == table) else { return Ok(None) };
        let mut rows = Vec::new();
        let whole = self.pages.walk(tree.root, tree.kind, &mut HashSet::new(), &mut |row| rows.push(row));
        if !whole && !ONLY_IN_PLACE.contains(&table) {
            for (page, _) in self.orphans.iter().filter(|(_, kind)| *kind == tree.kind) {
                rows.extend(
                    self.pages
                        .rows_of(*page, tree.kind)
                        .filter(|rows| self.only(tree, rows))
                        .into_iter()
                        .flatten(),
                );
            }
        }
        let read = rows.len();
        rows.retain(|row| tree.fits(row));
        let skipped = (read - rows.len()) as u64 + insert(conn, tree, &rows)?;
        Ok(Some(CopiedTable { whole, skipped }))
    }

    /// Whether rows fit this table, and no other damaged one.
    fn only(&self, tree: &TableTree, rows: &[RowOf]) -> bool {
        let fits = |tree: &TableTree| rows.iter().all(|row| tree.fits(row));
        let others = self.tables.iter().filter(|other| {
            other.root != tree.root && other.kind == tree.kind && self.broken.contains(&other.root)
        });
        !rows.is_empty() && fits(tree) && !others.into_iter().any(fits)
    }
}

/// Inserts rows, except those that are there; returns the number of those that violate a constraint.
fn insert(conn: &Connection, tree: &TableTree, rows: &[RowOf]) -> Result<u64> {
    let mut skipped = 0;
    let mut statement = conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let ours =
        statement.query_map([&tree.name], |r| r.get(0))?.collect::<rusqlite::Result<HashSet<String>>>()?;
    for (number, values) in rows {
        let (mut names, mut row) = (Vec::new(), Vec::new());
        for (value, column) in
            values.iter().zip(&tree.columns).filter(|(_, column)| ours.contains(&column.name))
        {
            names.push(format!("\"{}\"", column.name));
            row.push(match value {
                Value::Null if column.number => Sql::Integer(*number),
                Value::Null => Sql::Null,
                Value::Int(n) => Sql::Integer(*n),
                Value::Real(n) => Sql::Real(*n),
                Value::Text(text) => Sql::Text(text.clone()),
                Value::Blob(bytes) => Sql::Blob(bytes.clone()),
            });
        }
        let marks = vec!["?"; names.len()].join(", ");
        let sql = format!("INSERT INTO \"{}\"({}) VALUES({marks})", tree.name, names.join(", "));
        skipped += u64::from(!is_kept(conn.prepare_cached(&sql)?.execute(params_from_iter(row)))?);
    }
    Ok(skipped)
}

/// A row of the schema.
struct SchemaRow {
    /// A table; otherwise an index.
    table: bool,
    name: String,
    root: u32,
    sql: String,
}

impl SchemaRow {
    /// From a record: kind, name, table, root, text.
    fn of(row: &[Value]) -> Option<Self> {
        let table = match row.first()?.text()? {
            "table" => true,
            "index" => false,
            _ => return None,
        };
        Some(Self {
            table,
            name: row.get(1)?.text()?.to_owned(),
            root: u32::try_from(row.get(3)?.int()?).ok()?,
            sql: row.get(4)?.text().unwrap_or_default().to_owned(),
        })
    }

    /// The schema of a database.
    fn all(conn: &Connection) -> Result<Vec<Self>> {
        let mut statement = conn.prepare(
            "SELECT type = 'table', name, rootpage, coalesce(sql, '') FROM sqlite_schema WHERE rootpage > 0",
        )?;
        let rows = statement.query_map([], |r| {
            Ok(Self { table: r.get(0)?, name: r.get(1)?, root: r.get(2)?, sql: r.get(3)? })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The tree of a table. `None`: Tiller has no such table.
    fn tree(&self, new: &Connection) -> Option<TableTree> {
        let known: bool = new
            .query_row(
                "SELECT count(*) > 0 FROM sqlite_schema WHERE type = 'table' AND name = ?1",
                [&self.name],
                |r| r.get(0),
            )
            .ok()?;
        // The text is that of the damaged database: an older program's table has fewer columns.
        let scratch = Connection::open_in_memory().ok()?;
        let made = self.sql.starts_with("CREATE TABLE")
            && scratch.prepare(&self.sql).and_then(|mut create| create.execute([])).is_ok();
        let of = if made { &scratch } else { new };
        let keyed: bool = of
            .query_row(
                "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?1",
                [&self.name],
                |r| r.get(0),
            )
            .ok()?;
        // A record of a table without row numbers begins with the key.
        let order = if keyed { "pk = 0, pk, cid" } else { "cid" };
        let mut statement = of
            .prepare(&format!(
                "SELECT name, type, \"notnull\", pk FROM pragma_table_info(?1) ORDER BY {order}"
            ))
            .ok()?;
        let rows = statement.query_map([&self.name], |r| {
            let (kind, key): (String, i64) = (r.get(1)?, r.get(3)?);
            let number = !keyed && key > 0 && kind == "INTEGER";
            Ok(Column { name: r.get(0)?, required: r.get::<_, bool>(2)? || key > 0, number, kind })
        });
        let columns: Vec<Column> = rows.ok()?.collect::<rusqlite::Result<_>>().ok()?;
        let kind = if keyed { Kind::Index } else { Kind::Table };
        (known && !columns.is_empty()).then_some(TableTree {
            name: self.name.clone(),
            root: self.root,
            kind,
            columns,
        })
    }
}
