//! `cheetah-cli`: inspects a Cheetah data directory while no server has it open.
//!
//! Opening the database performs startup recovery, as in a server, so the output shows the data
//! that a server would serve. The tool locks the directory while it runs, and fails if a server has
//! the directory open. `salvage` does not write to the directory.

mod commands;
mod keys;
mod salvage;

use cheetah::KeySource;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cheetah-cli [--keys FILE] COMMAND ..
  cheetah-cli describe DIR              tables, indexes and their sizes
  cheetah-cli check DIR [TABLE]         walks every index and cross-checks them; exit status 1 if a problem is found
  cheetah-cli dump DIR TABLE [ROWS]     keys and rows of a table, in key order, as the engine stores them
  cheetah-cli salvage DIR NEW           copies the readable part of a damaged database into a new one, and reports what
                                        is lost; exit status 1 if data is lost; DIR is only read

--keys FILE is needed for a database with anything encrypted: a line 'number;key' for each key, the key in hexadecimal
digits, as the server's plugin file_key_management reads it. Written data is encrypted then: the copy that salvage makes,
and the changes that the other commands redo from the log after a crash.

DIR is the folder that holds CONTROL; with MariaDB that is '<datadir>/#cheetah'. Stop the server first.
TABLE is a name that describe shows; with MariaDB that is DATABASE/TABLE.";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (key_file, words) = match words.as_slice() {
        ["--keys", file, words @ ..] => (Some(Path::new(*file)), words),
        words => (None, words),
    };
    if let ["--help" | "-h" | "help"] = words {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let outcome = match key_file.map_or_else(|| Ok(KeySource::default()), keys::read) {
        Ok(keys) => run(words, &keys),
        Err(failure) => Some(Err(failure)),
    };
    let Some(outcome) = outcome else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
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

fn run(words: &[&str], keys: &KeySource) -> Option<commands::Outcome> {
    Some(match words {
        ["describe", dir] => commands::describe(Path::new(dir), keys),
        ["check", dir] => commands::check(Path::new(dir), keys, None),
        ["check", dir, table] => commands::check(Path::new(dir), keys, Some(table)),
        ["dump", dir, table] => commands::dump(Path::new(dir), keys, table, u64::MAX),
        ["dump", dir, table, rows] => match rows.parse() {
            Ok(rows) => commands::dump(Path::new(dir), keys, table, rows),
            Err(_) => Err(commands::Failure(format!("ROWS must be a number, not '{rows}'"))),
        },
        ["salvage", dir, new] => salvage::salvage(Path::new(dir), keys, Path::new(new)),
        _ => return None,
    })
}
