//! What only the workbench needs of the composition root.
//!
//! | file | does |
//! | --- | --- |
//! | `editor` | the person's editor |
//! | `folder` | changes of settings, keys and themes reach the screen |
//! | `statusline` | the command of the person's status line |

pub(crate) mod editor;
pub(crate) mod folder;
pub(crate) mod statusline;
