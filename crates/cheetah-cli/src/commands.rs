//! The commands of the tool. Each prints to standard output and returns whether it found no
//! problem.

use cheetah::server::{Db, Env, Locator};
use cheetah::{Config, KeySource, Read, RowView, SeekMode, Table};
use cheetah_io::posix::PosixDisk;
use cheetah_io::time::RealClock;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

pub(crate) struct Failure(pub(crate) String);

impl From<cheetah::Error> for Failure {
    fn from(error: cheetah::Error) -> Self {
        let advice = match error {
            cheetah::Error::Key { .. } => "; here keys come from a file: cheetah-cli --keys FILE ..",
            _ => "",
        };
        Failure(format!("{error}{advice}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure(format!("writing the output: {error}"))
    }
}

pub(crate) type Outcome = std::result::Result<bool, Failure>;

/// Fails if the directory has no control file: startup would create an empty database there.
fn open(dir: &Path, keys: &KeySource) -> std::result::Result<Db, Failure> {
    if !dir.join("CONTROL").is_file() {
        return Err(Failure(format!("{} has no Cheetah database (no file CONTROL)", dir.display())));
    }
    let disk = PosixDisk::open(dir).map_err(|error| Failure(format!("{}: {error}", dir.display())))?;
    let env = Env { disk: Arc::new(disk), clock: Arc::new(RealClock::default()) };
    Ok(Db::open(env, config(keys))?)
}

/// With keys, everything that is written to an encrypted database is encrypted, except tables whose
/// setting forbids it: the tool does not know the server's default, and the log has rows of all
/// tables.
fn config(keys: &KeySource) -> Config {
    let encrypts = keys.is_there();
    Config {
        keys: keys.clone(),
        encrypts_tables: encrypts,
        encrypts_log: encrypts,
        stays_plain: true,
        ..Config::default()
    }
}

fn tables(db: &Db, only: Option<&str>) -> std::result::Result<Vec<Arc<Table>>, Failure> {
    let names = match only {
        Some(name) => vec![name.to_string()],
        None => db.table_names(),
    };
    names.iter().map(|name| Ok(db.table(name)?)).collect()
}

pub(crate) fn describe(dir: &Path, keys: &KeySource) -> Outcome {
    let db = open(dir, keys)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for table in tables(&db, None)? {
        writeln!(out, "table {}  id {}  rows {}", table.name(), table.id(), table.row_count())?;
        let row_format = table.row_format();
        writeln!(
            out,
            "  row: {} fixed columns, {} variable ones",
            row_format.fixed.len(),
            row_format.var_count
        )?;
        for (index, stats) in table.indexes().iter().zip(table.stats()?) {
            writeln!(
                out,
                "  index {:<24} pages {:>8}  depth {}  bytes in memory {:>12}  bytes stored {:>12}  ratio {:.3}",
                index.name,
                stats.pages,
                stats.depth,
                stats.logical_bytes,
                stats.stored_bytes,
                stats.stored_bytes as f64 / (stats.logical_bytes as f64).max(1.0),
            )?;
        }
    }
    for (name, value) in db.status() {
        writeln!(out, "{name} = {value}")?;
    }
    drop(out);
    db.close()?;
    Ok(true)
}

/// Walks every index of the tables and cross-checks them.
pub(crate) fn check(dir: &Path, keys: &KeySource, only: Option<&str>) -> Outcome {
    let db = open(dir, keys)?;
    let mut sound = true;
    for table in tables(&db, only)? {
        let report = db.check_table(&table, true)?;
        if report.is_ok() {
            println!(
                "{}: ok, {} rows, {} entries, {} pages",
                table.name(),
                report.rows,
                report.entries,
                report.pages
            );
        }
        sound &= report.is_ok();
        for finding in &report.findings {
            println!("{}: {finding}", table.name());
        }
        let more = report.findings_count - report.findings.len() as u64;
        if more > 0 {
            println!("{}: and {more} more", table.name());
        }
    }
    db.close()?;
    Ok(sound)
}

pub(crate) fn dump(dir: &Path, keys: &KeySource, name: &str, rows_max: u64) -> Outcome {
    let db = open(dir, keys)?;
    let table = db.table(name)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut transaction = db.begin();
    let mut cursor = transaction.cursor(&table, 0, Read::Consistent)?;
    let mut found = cursor.seek(SeekMode::First, &[])?;
    let mut rows_count = 0;
    while found && rows_count < rows_max {
        write!(out, "{}", hex(cursor.key()))?;
        match RowView::parse(table.row_format(), cursor.row()) {
            Ok(row) => write_row(&mut out, &row)?,
            Err(defect) => write!(out, "  unreadable row: {defect:?}")?,
        }
        writeln!(out)?;
        rows_count += 1;
        found = cursor.next()?;
    }
    out.flush()?;
    drop(cursor);
    transaction.rollback()?;
    db.close()?;
    Ok(true)
}

/// Prints a stored row on one line: the null bitmap and the fixed part in hexadecimal, then each
/// variable column. For a large value, prints its length and page.
fn write_row(out: &mut impl Write, row: &RowView<'_>) -> io::Result<()> {
    write!(out, "  nulls {}  fixed {}", hex(row.nulls()), hex(row.fixed()))?;
    for value in row.values() {
        match (value.external, Locator::decode(value.bytes)) {
            (false, _) => write!(out, "  '{}'", value.bytes.escape_ascii())?,
            (true, Ok(at)) => write!(out, "  <{} bytes from page {}>", at.value_bytes, at.first_page)?,
            (true, Err(defect)) => write!(out, "  <bad locator: {defect:?}>")?,
        }
    }
    Ok(())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
