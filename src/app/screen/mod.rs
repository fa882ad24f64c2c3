//! Parts of the composition root for the workbench only.
//!
//! | file | does |
//! | --- | --- |
//! | `editor` | the person's editor |
//! | `folder` | reports changes of settings, keys and themes |
//! | `statusline` | the command of the person's status line |

pub(crate) mod editor;
pub(crate) mod folder;
pub(crate) mod statusline;
