//! One run of the doctor, from its record's start to its end.

use serde_json::{Value, json};

use super::error::DoctorError;
use super::examine::examine;
use super::machine;
use super::report::Report;
use crate::audit::Started;
use crate::call::{Context, record};
use crate::codes::Code;
use crate::engine::EngineName;
use crate::error::Failure as _;
use crate::exit::{Ending, Kind};
use crate::policy_files::Places;
use crate::sandbox::cancel::Cancel;

/// Examines these engines and the machine, and records what was found.
///
/// # Errors
/// There is no place for trials, no record, or the doctor was told to end.
pub async fn recorded(
    engines: &[EngineName],
    context: &Context,
    cancel: &mut Cancel,
    tell: &mut (dyn FnMut(&str) + Send),
) -> Result<(Report, Ending), DoctorError> {
    let places = Places::of(&context.environment, None);
    let opened = record::Unrecorded::new(&places, context)?.open()?;
    let record = opened.start(&Started::of_doctor(&context.caller))?;
    let examined = examine_all(engines, context, &record, cancel, tell).await;
    let (ending, detail) = match &examined {
        Ok(report) => (ending(report), summary(report)),
        Err(error) => (Ending::of_kind(error.kind(), error.code()), Value::Null),
    };
    let code = ending.code;
    let end = record::End {
        ending: ending.clone(),
        code,
        rule: None,
        cost: None,
        detail,
        requests: Vec::new(),
    };
    record.end(end)?;
    examined.map(|report| (report, ending))
}

async fn examine_all(
    engines: &[EngineName],
    context: &Context,
    record: &record::Record,
    cancel: &mut Cancel,
    tell: &mut (dyn FnMut(&str) + Send),
) -> Result<Report, DoctorError> {
    let mut examined = Vec::new();
    for engine in engines {
        tell(&format!("{engine}: whether it can be used"));
        examined.push(examine(*engine, context, cancel, tell).await?);
    }
    tell("this machine");
    let rows = machine::look(record.ledger(), &examined, context).await;
    Ok(Report {
        passed: Report::judge(&examined, &rows),
        runner: env!("CARGO_PKG_VERSION"),
        kernel: machine::release(),
        engines: examined,
        machine: rows,
    })
}

fn ending(report: &Report) -> Ending {
    let mut unusable = report.engines.iter().map(|engine| engine.unusable.as_ref());
    match unusable.next() {
        _ if report.passed => Ending::ok(),
        // None of them can be used: the first says why.
        Some(Some(first)) if unusable.all(|it| it.is_some()) => {
            Ending::of_kind(Kind::Broken, first.code)
        }
        _ => Ending::of_kind(Kind::Broken, Code::ProtectionFails),
    }
}

/// What the record keeps: each row's result, without its words.
fn summary(report: &Report) -> Value {
    let rows = |rows: &[super::report::Row]| {
        rows.iter()
            .map(|row| (row.name.clone(), json!(row.result)))
            .collect::<serde_json::Map<_, _>>()
    };
    let engines = report.engines.iter().map(|engine| {
        let unusable = engine.unusable.as_ref().map(|it| it.code);
        (engine.engine.to_string(), json!({ "unusable": unusable, "rows": rows(&engine.rows) }))
    });
    json!({
        "passed": report.passed,
        "kernel": report.kernel,
        "engines": engines.collect::<serde_json::Map<_, _>>(),
        "machine": rows(&report.machine),
    })
}
