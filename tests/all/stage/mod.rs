//! What writing commands leave behind, through the real program: attacks, deaths, projects, review.

mod attacks;
mod edit;
mod front;
mod generator;
mod harness;
mod killed;
mod meanwhile;
mod projects;
