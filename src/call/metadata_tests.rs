//! The JSON forms are stable, keys and their order included.

use runner_wire::Programs;
use serde_json::json;

use super::*;
use crate::engine::docker::settings::tests as settings;
use crate::engine::plan::Protection as Planned;
use crate::exit::Status;
use crate::sandbox::kept::Kept;
use crate::sandbox::outcome::Verdict;

fn text(metadata: &Metadata) -> String {
    serde_json::to_string(metadata).unwrap()
}

fn outcome() -> Outcome {
    Outcome {
        verdict: Verdict::Completed,
        hits: Vec::new(),
        programs: Some(Programs { ran: Vec::new(), left_out: 2 }),
        left_running: 0,
        usage: None,
        stdout: Kept::new(1),
        stderr: Kept::new(1),
        phases: Phases { run: Duration::from_micros(1_500), ..Phases::default() },
        image_digest: Some("sha256:x".to_owned()),
        seen: None,
        waited: Some(Duration::from_millis(7)),
        discarded: 1,
        stage: None,
        stillness: crate::call::launch::outcome::Stillness::Still,
        farewell: None,
    }
}

#[test]
fn a_call_in_a_sandbox() {
    let mut plan = settings::plan(Isolation::Strict);
    plan.protections = vec![Planned {
        name: "network",
        enforced_by: "no device",
        status: ProtectionStatus::Absent("why"),
    }];
    plan.notes = vec![Note { code: "not_scanned", text: "t".to_owned() }];
    let mut metadata = Metadata::of_sandbox(&plan, "docker", &outcome());
    metadata.queued(Duration::from_millis(2));
    let expected = json!({
        "duration_ms": {
            "plan": 0.0, "prepare": 0.0, "claim": 0.0, "attach": 0.0, "create": 0.0, "start": 0.0,
            "check": 0.0, "run": 1.5, "end": 0.0, "apply": 0.0, "total": 2.0, "queued": 2.0,
        },
        "warm": true,
        "waited_ms": 7,
        "discarded": 1,
        "engine": "docker",
        "runtime": null,
        "image_digest": "sha256:x",
        "isolation": "strict",
        "user": { "uid": 1000, "gid": 1000, "why": plan.user.why.words() },
        "programs": [],
        "programs_left_out": 2,
        "limits": plan.limits,
        "limits_met": [],
        "usage": null,
        "protections": [
            { "name": "network", "enforced_by": "no device", "status": "absent", "why": "why" },
        ],
        "notes": [{ "code": "not_scanned", "text": "t" }],
    });
    assert_eq!(text(&metadata), expected.to_string());
}

#[test]
fn a_built_in_tool_and_its_record() {
    let limits = Limits::preset(Isolation::Basic);
    let mut metadata = Metadata::of_built_in(&limits, Duration::from_millis(3));
    let usage = BrokerUsage { calls: 1, ..BrokerUsage::default() };
    let request = Brokered {
        id: 1,
        method: "file.read",
        object: "a".to_owned(),
        refused: Some(Code::NotFound),
        message: None,
        rule: None,
        suggestion: None,
        approval: None,
        bytes_in: 0,
        bytes_out: 4,
        duration: Duration::from_micros(5),
        call: None,
    };
    let broker = OfBroker::new(&usage, &[request], &Redactor::new());
    metadata.broker = Some(Box::new(broker));
    metadata.attempts = Some(vec![Attempt {
        attempt: 1,
        status: Status::Failed,
        code: Some("X".to_owned()),
        source: None,
        message: None,
        waited_ms: 0,
        duration_ms: 1,
    }]);
    metadata.took(Duration::from_millis(9));
    let figures = HOLDING.map(|limit| {
        format!("\"{}\":\"{}\"", limit.row().key, limit.row().unit.show(limits.get(limit)))
    });
    let times = r#"{"duration_ms":{"run":3.0,"total":9.0},"engine":null,"isolation":null"#;
    let held = concat!(
        r#""protections":[{"name":"policy of each request","enforced_by":"the broker","status":"enforced","why":null},"#,
        r#"{"name":"limits of requests, bytes and time","enforced_by":"the broker","status":"enforced","why":null},"#,
        r#"{"name":"sandbox of the tool","enforced_by":null,"status":"absent","why":"the tool is part of runner"}],"#,
        r#""notes":[{"code":"built_in","text":"a built-in tool is part of runner and has no sandbox of its own; its commands have"}],"#,
    );
    let ran = format!("{times},\"limits\":{{{}}},{held}", figures.join(","));
    let used = r#""broker":{"usage":{"calls":1,"refused":0,"bytes_in":0,"bytes_out":0,"notes":0,"notes_dropped":0,"unlisted":0"#;
    let asked = r#"},"requests":[{"method":"file.read","object":"a","refused":"not_found","rule":null,"bytes_in":0,"bytes_out":4,"us":5,"call":null}]},"#;
    let tried =
        r#""attempts":[{"attempt":1,"status":"failed","code":"X","waited_ms":0,"duration_ms":1}]}"#;
    assert_eq!(text(&metadata), format!("{ran}{used}{asked}{tried}"));
    let recorded = text(&metadata.recorded(1));
    assert_eq!(recorded, format!("{ran}{used},\"recorded\":1}}}},{tried}"));
}

#[test]
fn a_tool_of_a_server_and_its_record() {
    let mut mcp = OfServer {
        server: "files".to_owned(),
        tool: "read".to_owned(),
        call: Some("c".to_owned()),
        says: None,
        attachments: Some(Attachments::Whole(vec![json!({ "type": "image" })])),
    };
    mcp.redact(&Redactor::new());
    let metadata = Metadata { mcp: Some(Box::new(mcp)), ..Metadata::default() };
    let told = r#"{"mcp":{"server":"files","tool":"read","call":"c","says":null,"attachments":"#;
    assert_eq!(text(&metadata), format!(r#"{told}[{{"type":"image"}}]}}}}"#));
    let counted = r#"{"count":1,"bytes":18}"#;
    assert_eq!(text(&metadata.recorded(0)), format!("{told}{counted}}}}}"));
}
