//! The escape suite: each test tries one forbidden thing in a real container, beside a control that succeeds.
//!
//! A module is a row of the threats that `runner` must survive; its number is in its name. What each
//! runtime promises of a row, and why not the rest, stands in one table, in `promises`; an attack is a
//! function that takes the runtime, and `attack!` makes a test of it for each. `mounts` holds what
//! the mounts of a workspace promise beyond any single row.
//!
//! | row | class | module |
//! | --- | --- | --- |
//! | 1 | links out of the workspace | `row01_links` |
//! | 3 | shell syntax | `row03_shell` |
//! | 4 | our own files as target | `row04_own_files` |
//! | 5 | launch configuration | `row05_launch` |
//! | 7 | environment | `row07_environment` |
//! | 10 | weakening by policy | `row10_weakening` |
//! | 11 | program identity | `row11_identity` |
//! | 12 | wrappers | `row12_wrappers` |
//! | 15 | secrets | `row15_secrets` |
//! | 16 | forged results | `row16_forged` |
//! | 18 | ignoring the end | `row18_end` |
//! | 19 | fork, thread, descriptor bombs | `row19_bombs` |
//! | 20 | memory bombs | `row20_memory` |
//! | 21 | disk and inode fill | `row21_disk` |
//! | 22 | output flood | `row22_output` |
//! | 24 | escape probes | `row24_probes` |
//! | 26 | floods and slow peers | `row26_floods` |
//! | 31 | tool changed after approval | `row31_changed` |
//! | 35 | terminal and log injection | `row35_terminal` |
//! | 41 | the workspace changes under a sandbox | `row41_moved`; while it waits, in `pool::changed` |
//! | 42 | files that make the host run things later | `row42_later` |
//! | 43 | covers | `row43_covers` |
//! | 44 | words that are not known before they run | `row44_words` |

mod harness;
mod mounts;
mod promises;
mod row01_links;
mod row03_shell;
mod row04_own_files;
mod row05_launch;
mod row07_environment;
mod row10_weakening;
mod row11_identity;
mod row12_wrappers;
mod row15_secrets;
mod row16_forged;
mod row18_end;
mod row19_bombs;
mod row20_memory;
mod row21_disk;
mod row22_output;
mod row24_probes;
mod row26_floods;
mod row31_changed;
mod row35_terminal;
mod row41_moved;
mod row42_later;
mod row43_covers;
mod row44_words;
mod seat;
