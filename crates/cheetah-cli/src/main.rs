//! `cheetah-cli`: looks at a Cheetah data directory while no server has it open.
//!
//! Opening recovers first, exactly as a server does, so what is shown is what a server would serve.
//! The directory is locked meanwhile; a running server is never disturbed, the tool refuses
//! instead. `salvage` writes nothing to the directory.

mod commands;
mod salvage;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage:
  cheetah-cli describe DIR              tables, indexes and their sizes
  cheetah-cli check DIR [TABLE]         walks every index and cross-checks them; exit status 1 when a problem is found
  cheetah-cli dump DIR TABLE [ROWS]     keys and rows of a table, in key order, as the engine stores them
  cheetah-cli salvage DIR NEW           copies what can be read of a damaged database into a new one, and tells what is
                                        lost; exit status 1 when something is; DIR is only read

DIR is the folder that holds CONTROL; with MariaDB that is '<datadir>/#cheetah'. Stop the server first.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["describe", dir] => commands::describe(Path::new(dir)),
        ["check", dir] => commands::check(Path::new(dir), None),
        ["check", dir, table] => commands::check(Path::new(dir), Some(table)),
        ["dump", dir, table] => commands::dump(Path::new(dir), table, u64::MAX),
        ["dump", dir, table, rows] => match rows.parse() {
            Ok(rows) => commands::dump(Path::new(dir), table, rows),
            Err(_) => Err(commands::Failure(format!("ROWS must be a number, not '{rows}'"))),
        },
        ["salvage", dir, new] => salvage::salvage(Path::new(dir), Path::new(new)),
        ["--help" | "-h" | "help"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("cheetah-cli: {}", failure.0);
            ExitCode::from(2)
        }
    }
}
