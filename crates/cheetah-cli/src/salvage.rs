//! `salvage`: copies the readable part of a damaged database into a new one.

use crate::commands::{hex, Failure, Outcome};
use cheetah::server::salvage::{salvage as copy, Disks, Report, TableReport};
use cheetah::{Config, KeySource};
use cheetah_io::posix::PosixDisk;
use cheetah_io::time::RealClock;
use cheetah_io::{Clock, Disk};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Further ranges of keys of a table are only counted.
const GAPS_MAX: usize = 20;

/// Copies the readable part of the database in `damaged` into a new database in `new`, which must
/// not exist yet.
pub(crate) fn salvage(damaged: &Path, keys: &KeySource, new: &Path) -> Outcome {
    if !damaged.is_dir() {
        return Err(Failure(format!("{} is not a folder", damaged.display())));
    }
    if new.exists() {
        return Err(Failure(format!("{} exists; name a folder that does not", new.display())));
    }
    let scratch = beside(new, ".scratch");
    if scratch.exists() {
        let left = "is left over from an interrupted salvage; remove it";
        return Err(Failure(format!("{} {left}", scratch.display())));
    }
    let disks = Disks { damaged: open(damaged)?, scratch: open(&scratch)?, new: open(new)? };
    let clock: Arc<dyn Clock> = Arc::new(RealClock::default());
    let copied = copy(&disks, &clock, &Config { keys: keys.clone(), ..Config::default() }, &mut tell_table);
    drop(disks);
    // If the directory is not empty, the next salvage reports it.
    let _ = fs::remove_dir(&scratch);
    match copied {
        Ok(report) => Ok(tell_all(&report, new)),
        Err(error) => {
            let is_empty = fs::remove_dir(new).is_ok();
            let left = if is_empty { String::new() } else { format!("; remove {}", new.display()) };
            Err(Failure(format!("{error}{left}")))
        }
    }
}

fn beside(folder: &Path, ending: &str) -> PathBuf {
    let mut name: OsString = folder.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn open(folder: &Path) -> Result<Arc<dyn Disk>, Failure> {
    match PosixDisk::open(folder) {
        Ok(disk) => Ok(Arc::new(disk)),
        Err(error) => Err(Failure(format!("{}: {error}", folder.display()))),
    }
}

fn tell_table(table: &TableReport) {
    println!("{}: {} rows saved", table.name, table.rows);
    if table.rows_lost > 0 {
        println!("  lost: {} rows that cannot be read; the first: {}", table.rows_lost, table.row_lost_why);
    }
    for gap in table.gaps.iter().take(GAPS_MAX) {
        let low = if gap.low.is_empty() { "the beginning".into() } else { hex(&gap.low) };
        let high = gap.high.as_ref().map_or("the end".into(), |high| hex(high));
        println!("  lost: all rows with keys from {low} up to {high}: {}", gap.why);
    }
    if table.gaps.len() > GAPS_MAX {
        println!("  lost: the rows of {} more ranges of keys", table.gaps.len() - GAPS_MAX);
    }
    if table.changes_lost > 0 {
        println!(
            "  lost: {} or more changes that were not in their pages yet, so some rows may be older versions; the first: {}",
            table.changes_lost, table.change_lost_why
        );
    }
    if let Some(why) = &table.quarantine {
        println!("  lost: changes committed since the table was quarantined, because of {why}");
        println!("  some rows may be older versions, or of transactions that were rolled back since");
    }
    if let Some(why) = &table.failure {
        println!("  lost: the table was not copied: {why}");
    }
    if table.lacks_postings {
        println!("  lost: a part of its full-text indexes; drop and recreate them");
    }
}

/// Returns whether no data is lost.
fn tell_all(report: &Report, new: &Path) -> bool {
    for note in &report.notes {
        println!("lost: {note}");
    }
    let rows: u64 = report.tables.iter().map(|table| table.rows).sum();
    let damaged = report.tables.iter().filter(|table| !table.is_whole()).count();
    println!("{} tables with {rows} rows are in {}", report.tables.len(), new.display());
    match report.is_whole() {
        true => println!("nothing is lost"),
        false if damaged == 0 => println!("some data is lost, see above"),
        false => println!("{damaged} tables have lost data"),
    }
    if report.tables.iter().any(|table| table.disabled_indexes > 0) {
        println!(
            "next: replace the damaged folder with the new one, start the server, and for each table with"
        );
        println!(
            "secondary indexes: ALTER TABLE .. ENABLE KEYS; until then unique keys do not refuse duplicates"
        );
    }
    report.is_whole()
}
