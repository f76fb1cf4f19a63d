//! The one SQLite database behind audit, approvals, limits and caches.
//!
//! Duty: where it is, how it is opened, its schema. What is written in it belongs to the parts that use
//! it. Many short-lived processes write at once: WAL, a busy timeout, short transactions. Trust
//! boundary: the file is readable by the caller alone; sandboxes never see its folder.

mod approvals;
mod changes;
mod descriptions;
mod log;
mod offers;
mod open;
mod tool_calls;

pub use approvals::{ApprovalRow, ApprovalRows};
pub use descriptions::Descriptions;
pub use offers::Offers;
pub use open::{Store, StoreError};
pub use tool_calls::{BreakerRow, ToolCalls};
