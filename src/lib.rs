//! # Tiller: the house and its rooms
//!
//! A full-screen terminal workbench for pair programming with AI agents. This page is the map; each room's
//! own page says more.
//!
//! ```text
//!            keys                                         tokens
//!              |                                             |
//!   tui ---- Command ---->  engine  ----- Request ---->  provider
//!   exec  <--- Event -----  bus, turn,  <--- Chunk ----  (one file per wire format)
//!   agents --- CrewHost ->  context
//!                          /    |    \
//!                    permit   tool   store    snapshot        watch, external
//!                    may it?  do it  keep it  keep the files  files change; programs of others
//! ```
//!
//! | room | job | may use |
//! | --- | --- | --- |
//! | [`protocol`] | the vocabulary of the bus; plain data | no other room |
//! | `shell` | the shell's grammar: a command line, taken apart | no other room |
//! | `text` | what may reach a terminal: cleaning, width, wrapping, Markdown | no other room |
//! | `fs` | opening what was judged; attributes, access lists and second names of files; lock files; folders and archives of strangers | no other room |
//! | `http` | HTTP for servers that the settings name: one request with a key, an answer of bounded size | no other room |
//! | `rpc` | JSON-RPC, one message a line, for clients and servers | protocol |
//! | [`config`] | layered settings with line-numbered errors | protocol, fs |
//! | [`store`] | SQLite: an append-only tree of entries, one writer | protocol |
//! | [`provider`] | model servers, and the built-in demo model | protocol, http, config |
//! | [`tool`] | what the model can do, one file each | protocol, text, fs, http |
//! | `seccomp` | system calls that wait for a supervisor, the heap's arenas: the one place with unsafe code | no other room |
//! | [`sandbox`] | commands confined by the kernel: policy, launcher, supervisor, self-test | protocol, fs, shell, tool, seccomp |
//! | [`terminals`] | terminals elsewhere: containers, other machines, and the files there | protocol, config, tool |
//! | [`permit`] | what may be done: rules, decisions, trust, redaction | protocol, fs, shell |
//! | `hooks` | commands of the settings that run when something happens, and what they decide | protocol, fs, config, tool, permit |
//! | `plugins` | folders that bring hooks, tools, agents, skills, themes: what they are, whether they are trusted | protocol, fs, config, tool, permit, hooks |
//! | [`snapshot`] | states of the workspace's files, kept outside of it; restore without loss | protocol, fs |
//! | [`watch`] | files and git: what changed, and who did it | protocol, fs, permit, tool |
//! | [`external`] | agent programs of other vendors, over three transports | fs, protocol, tool, rpc |
//! | [`mcp`] | MCP servers: connections, their life, the tools that reach them | protocol, http, config, tool |
//! | `mcp-server` | Tiller as an MCP server: its sessions, agents and todo lists for other agents, to read | protocol, permit, rpc, store, text |
//! | `memory` | memory files, rules shown with the calls that they concern, learnings | protocol, text, fs, config, shell, store, tool |
//! | `search` | keywords and vectors over sessions, memory, learnings and skills | protocol, http, config, store |
//! | `skills` | folders that say how a kind of task is done, and packs of them | protocol, text, fs, config, store, tool |
//! | [`engine`] | bus, turn, context, sessions of one agent | protocol, text, fs, config, store, provider, tool, skills, permit, hooks, snapshot, watch, external, memory, search |
//! | [`agents`] | the agents of a session, on top of the engine: roster, start, end, delegated tasks, workflows | engine, protocol, config, store, provider, tool, external |
//! | [`tui`] | the screen | protocol, config, text |
//! | `main`, [`commands`] | arguments to a command, one file or folder per subcommand | all |
//! | [`app`] | the composition root: makes the parts and hands them over | all |
//! | `detach` | leaving the screen at work and coming back: fork, connection, terminal owner | protocol, text, tui |
//!
//! `tests/engine` drives whole turns of the engine, `tests/it` the program on a terminal; `tests/kit` is what both share.
//! `tests/battery` holds escapes from sandboxes and everyday jobs inside them, as data, and runs them. `tests/fuzz` holds
//! what must hold of any input, for everything that reads hostile bytes, and the inputs that were kept. `src/xtask` is the
//! project's own tools (`cargo xtask`), and no part of the program.
//!
//! Each room above `main` is a crate of its own under `src/`, so this table is enforced by the compiler: its manifest is the
//! list of what it may use (`cargo xtask tidy` compares both).
//!
//! # Invariants
//! 1. The TUI knows the protocol, never the engine. Whatever the TUI can do, headless can do.
//! 2. `protocol` types are plain values: a session can be replayed from a file of events.
//! 3. A turn decides; the driver acts. Nothing in `engine/turn/machine` waits, reads a clock or touches a file.
//! 4. Entries and operations are only ever added. Undo is an operation like any other.
//! 5. Every tool call passes `permit` with the access that *this* call declared.
//! 6. Drawing changes nothing. State changes in `apply` and `act` only, on one thread.
//! 7. Every channel is bounded and says in a comment who holds each end and what closing it means.
//! 8. Every task has an owner that stops it; dropping the owner is enough.
//! 9. An error goes to the model, to the person (as a `Notice`) or to the log; never to the screen directly.
//! 10. Between two compactions each request is its predecessor plus new material at the end, byte for byte.
//!
//! # Adding things
//! A new file, and the place that lists it; `CONTRIBUTING.md` has the steps where there are more.
//!
//! | to add a | new file | the line |
//! | --- | --- | --- |
//! | tool | `src/tool/<group>/x.rs` with its `INFO`, and `x.md` | `mod x;` in its group and a line of `Registry::built_in` in `src/tool/registry.rs` |
//! | API format | `src/provider/x/` with its `FORMAT` | `mod x;` in `src/provider/lib.rs` and a line of `ApiFormats::built_in` in `src/provider/registry/formats.rs` |
//! | dialog | `src/tui/dialog/<group>/x.rs` with its `DIALOG` | `mod x;` and a line of `DIALOGS` in its group's `mod.rs` |
//! | panel | `src/tui/panel/x.rs` with its `PANEL` | `mod x;` and a line of `PANELS` in `src/tui/panel/views.rs`; a view of its own is a variant of `View` |
//! | slash command | `src/tui/slash/<group>/x.rs` | `mod x;` and a line of `src/tui/slash/list.rs`; a command that does what a key does is only the line |
//! | look of an entry | `src/tui/cell/x.rs` | the match in `src/tui/cell/mod.rs` |
//! | theme, keymap | `themes/x.toml`, `keymaps/x.toml` | the built-in list (user folders need none) |
//! | agent program of another vendor | `assets/adapters/x.toml` | `BUILT_IN` in `src/external/adapter/load.rs` (user folders need none) |
//! | kind of agent, program of another vendor | `assets/agents/x.md`, `assets/adapters/x.toml` | the built-in list (user folders need none) |
//! | subcommand | `src/commands/x.rs` | `src/commands/mod.rs` |
//! | transcript to import | `src/commands/transcript/import/x.rs` | `FORMATS` in its `mod.rs` |
//! | kind of terminal | `src/terminals/kinds/x.rs` | `mod x;` and a line of `make` in its `mod.rs`; a variant of `TerminalKind` |
//! | migration | `src/store/schema/000N_x.sql` | the list in `src/store/open/migrate.rs`; old ones never change |
//! | fuzz target | `tests/fuzz/targets/x.rs` with its `TARGET` | `mod x;` and a line of `TARGETS` in its `mod.rs` |
//! | driven test | `tests/it/<subject>/x.rs` | `mod x;` in that folder's `mod.rs` (`cargo xtask tidy` fails if forgotten) |

pub use tiller_agents as agents;
pub use tiller_config as config;
pub use tiller_engine as engine;
pub use tiller_external as external;
pub use tiller_mcp as mcp;
pub use tiller_permit as permit;
pub use tiller_protocol as protocol;
pub use tiller_provider as provider;
pub use tiller_sandbox as sandbox;
pub use tiller_snapshot as snapshot;
pub use tiller_store as store;
pub use tiller_terminals as terminals;
pub use tiller_tool as tool;
pub use tiller_tui as tui;
pub use tiller_watch as watch;

pub mod app;
pub mod commands;
mod detach;
