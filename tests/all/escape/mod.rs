//! What a sandbox must survive. Each test tries one forbidden thing in a real container, beside a control
//! that succeeds. `DOCKER_HOST` names the engine.

mod environment;
mod harness;
mod launch;
mod mounts;
mod probes;
mod protected;
