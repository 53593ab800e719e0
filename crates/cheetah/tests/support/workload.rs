//! A random workload on a database, and a model of its allowed states after a power cut.
//!
//! The model is a list of versions, in order: the contents of the database after each commit and
//! each change of the catalog, and the prepared transactions after each prepare. The workload
//! acknowledges to the disk the number of the last durable version. After a power cut, the database
//! must be equal to the acknowledged version or a later one: it has a prefix of the commits, and
//! nothing else. Every decision about a prepared transaction must work.

use super::*;
use cheetah::testing::base::{Error, Xid};
use cheetah::testing::db::{LockMode, Read, Savepoint};
use cheetah_io::Rng;

/// The contents of all tables.
pub type Contents = BTreeMap<String, Rows>;

/// The contents after a step.
#[derive(Clone, Default)]
pub struct Version {
    /// The committed contents.
    contents: Contents,
    /// The prepared transactions by number. Each has the tables that it has changed, with their
    /// contents after its commit.
    prepared: BTreeMap<u64, Contents>,
}

impl Version {
    /// A version without prepared transactions.
    pub fn of(contents: Contents) -> Self {
        Self { contents, ..Self::default() }
    }

    /// The version after a rollback of the prepared transactions for which `withdrawn` returns
    /// true.
    pub fn without(&self, withdrawn: impl Fn(u64) -> bool) -> Self {
        let numbers = self.prepared.keys().filter(|no| withdrawn(**no));
        numbers.fold(self.clone(), |version, no| version.after(*no, false))
    }

    /// The version after a prepared transaction has ended.
    fn after(&self, no: u64, commits: bool) -> Self {
        let mut version = self.clone();
        if let Some(changed) = version.prepared.remove(&no).filter(|_| commits) {
            version.contents.extend(changed);
        }
        version
    }

    /// The contents after all prepared transactions have ended, as `commits` says.
    pub fn settled(&self, commits: impl Fn(u64) -> bool) -> Contents {
        let numbers = self.prepared.keys();
        numbers.fold(self.clone(), |version, no| version.after(*no, commits(*no))).contents
    }
}

/// The name of a prepared transaction with this number.
fn xid(no: u64) -> Xid {
    Xid::new(1, &no.to_be_bytes(), b"").unwrap()
}

/// The number in the name of a prepared transaction.
pub fn number(xid: &Xid) -> u64 {
    u64::from_be_bytes(xid.global().try_into().unwrap())
}

/// The parameters of a workload.
#[derive(Clone, Debug)]
pub struct Shape {
    pub seed: u64,
    pub steps: u64,
    /// The number of transactions that are open at a time.
    pub sessions: usize,
    /// Whether tables are created, dropped, renamed and emptied.
    pub ddl: bool,
}

struct Session {
    txn: Transaction,
    /// The tables that the session's transaction has changed, with the rows that it sees.
    changed: Contents,
    savepoints: Vec<(Savepoint, Contents)>,
    /// The transaction's number once it is prepared.
    prepared: Option<u64>,
}

/// A workload in progress.
pub struct Workload<'d> {
    db: Db,
    disk: &'d SimDisk,
    clock: SimClock,
    rng: Rng,
    sessions: Vec<Option<Session>>,
    /// The versions so far. The last one is the current version.
    pub versions: Vec<Version>,
    /// The last version that is known to be durable.
    pub acknowledged: u64,
    names: u64,
    promises: u64,
    /// Prepared transactions that were detached from their clients.
    detached: Vec<u64>,
    mode: u8,
}

impl<'d> Workload<'d> {
    /// Opens the database of `disk`, which holds `contents`.
    pub fn open(disk: &'d SimDisk, shape: &Shape, contents: Contents) -> Result<Self> {
        let clock = SimClock::default();
        let env = Env { disk: Arc::new(disk.clone()), clock: Arc::new(clock.clone()) };
        let db = Db::open(env, Config::tiny())?;
        let sessions = (0..shape.sessions).map(|_| None).collect();
        let rng = Rng::new(shape.seed);
        Ok(Self {
            db,
            disk,
            clock,
            rng,
            sessions,
            versions: vec![Version::of(contents)],
            acknowledged: 0,
            names: 0,
            promises: 0,
            detached: Vec::new(),
            mode: 1,
        })
    }

    /// Runs all steps. Open transactions remain open at the end.
    pub fn run(&mut self, shape: &Shape) -> Result<()> {
        for _ in 0..shape.steps {
            self.clock.advance_ns(self.rng.below(400_000_000));
            match self.rng.below(100) {
                0..=4 if shape.ddl => self.ddl()?,
                0..=9 => drop(self.db.run_background()?),
                10..=12 => self.db.checkpoint()?,
                13 => self.change_mode()?,
                14..=16 if !self.detached.is_empty() => self.decide_detached()?,
                _ => self.session_step()?,
            }
        }
        Ok(())
    }

    /// The current version.
    pub fn version(&self) -> &Version {
        self.versions.last().unwrap()
    }

    /// The database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    fn committed(&self) -> &Contents {
        &self.version().contents
    }

    /// Records a version with these committed contents, before the commit.
    fn announce(&mut self, contents: Contents) {
        let version = Version { contents, ..self.version().clone() };
        self.versions.push(version);
    }

    /// Records a version without this prepared transaction, before it ends.
    fn announce_end(&mut self, no: u64, commits: bool) {
        let version = self.version().after(no, commits);
        self.versions.push(version);
    }

    /// Acknowledges the newest version if the log was synced for it.
    fn acknowledge_if_synced(&mut self) {
        if self.mode == 1 {
            self.acknowledge();
        }
    }

    /// Acknowledges the newest version.
    fn acknowledge(&mut self) {
        self.acknowledged = self.versions.len() as u64 - 1;
        self.disk.acknowledge(self.acknowledged);
    }

    /// Returns the reason why the engine has stopped, if it has stopped.
    pub fn stopped(&self) -> Option<String> {
        self.db.stopped()
    }

    /// Rolls back all open transactions.
    pub fn roll_back_all(&mut self) -> Result<()> {
        let promised = self.sessions.iter().flatten().filter_map(|session| session.prepared);
        promised.collect::<Vec<_>>().into_iter().for_each(|no| self.announce_end(no, false));
        self.sessions.iter_mut().flatten().try_for_each(|session| session.txn.rollback())
    }

    fn change_mode(&mut self) -> Result<()> {
        self.mode = self.rng.below(3) as u8;
        self.db.set_flush_log_at_commit(self.mode);
        if self.mode == 1 {
            self.db.checkpoint()?;
            self.acknowledge();
        }
        Ok(())
    }

    fn ddl(&mut self) -> Result<()> {
        let mut contents = self.committed().clone();
        let tables = contents.keys().cloned().collect::<Vec<_>>();
        self.names += 1;
        let new = format!("t{}", self.names);
        let chosen = tables.get(self.rng.below(tables.len() as u64) as usize).cloned();
        let used = |name: &String| {
            let prepared = &self.versions.last().unwrap().prepared;
            let promised = prepared.values().any(|changed| changed.contains_key(name));
            promised
                || self.sessions.iter().flatten().any(|session| {
                    let seen = session.savepoints.iter().any(|(_, contents)| contents.contains_key(name));
                    seen || session.changed.contains_key(name)
                })
        };
        match (self.rng.below(4), chosen.filter(|name| !used(name))) {
            (0, Some(name)) if tables.len() > 1 => {
                contents.remove(&name);
                self.announce(contents);
                self.db.drop_table(&name)?;
            }
            (1, Some(name)) => {
                let rows = contents.remove(&name).unwrap();
                contents.insert(new.clone(), rows);
                self.announce(contents);
                self.db.rename_table(&name, &new)?;
            }
            (2, Some(name)) => {
                contents.insert(name.clone(), Rows::new());
                self.announce(contents);
                self.db.truncate_table(&name)?;
            }
            _ if tables.len() < 4 => {
                contents.insert(new.clone(), Rows::new());
                self.announce(contents);
                self.db.create_table(&spec(&new))?;
            }
            _ => return Ok(()),
        }
        self.acknowledge();
        Ok(())
    }

    fn session_step(&mut self) -> Result<()> {
        let no = self.rng.below(self.sessions.len() as u64) as usize;
        let mut session = self.sessions[no].take().unwrap_or_else(|| {
            let mut txn = self.db.begin();
            txn.set_lock_wait(0);
            Session { txn, changed: Contents::new(), savepoints: Vec::new(), prepared: None }
        });
        if session.prepared.is_some() {
            return self.decide(no, session);
        }
        match self.rng.below(100) {
            0..=9 => return self.commit(session),
            10..=13 => return session.txn.rollback(),
            14..=19 => session.savepoints.push((session.txn.savepoint(), session.changed.clone())),
            20..=25 => {
                if let Some((savepoint, changed)) = session.savepoints.pop() {
                    session.txn.rollback_to(savepoint)?;
                    // The locks are kept, so the committed contents of these tables cannot have
                    // changed.
                    for (name, _) in std::mem::replace(&mut session.changed, changed) {
                        let rows = self.committed()[&name].clone();
                        session.changed.entry(name).or_insert(rows);
                    }
                }
            }
            26..=30 => self.prepare(&mut session)?,
            _ => self.row_step(&mut session)?,
        }
        self.sessions[no] = Some(session);
        Ok(())
    }

    fn prepare(&mut self, session: &mut Session) -> Result<()> {
        if session.txn.id().is_none() {
            return session.txn.prepare(xid(0));
        }
        self.promises += 1;
        let mut version = self.version().clone();
        version.prepared.insert(self.promises, session.changed.clone());
        self.versions.push(version);
        session.txn.prepare(xid(self.promises))?;
        if session.txn.is_prepared() {
            session.prepared = Some(self.promises);
            self.acknowledge_if_synced();
        } else {
            // The log has no record of the transaction, so there is no version to acknowledge.
            self.versions.pop();
        }
        Ok(())
    }

    /// Ends a prepared session, detaches it, or leaves it unchanged.
    fn decide(&mut self, at: usize, mut session: Session) -> Result<()> {
        let no = session.prepared.unwrap();
        match self.rng.below(6) {
            0 => {
                self.announce_end(no, true);
                session.txn.commit()?;
                self.acknowledge_if_synced();
            }
            1 => {
                // The commit is not synced: the coordinator repeats it.
                self.announce_end(no, true);
                session.txn.commit_ordered();
                session.txn.commit()?;
            }
            2 => {
                self.announce_end(no, false);
                session.txn.rollback()?;
                self.acknowledge_if_synced();
            }
            3 => self.detached.push(no),
            _ => self.sessions[at] = Some(session),
        }
        Ok(())
    }

    fn decide_detached(&mut self) -> Result<()> {
        let at = self.rng.below(self.detached.len() as u64) as usize;
        let (no, commits) = (self.detached.swap_remove(at), self.rng.chance(0.5));
        self.announce_end(no, commits);
        match commits {
            true => self.db.commit_prepared(&xid(no))?,
            false => self.db.rollback_prepared(&xid(no))?,
        }
        self.acknowledge_if_synced();
        Ok(())
    }

    fn commit(&mut self, mut session: Session) -> Result<()> {
        let mut contents = self.committed().clone();
        contents.extend(std::mem::take(&mut session.changed));
        self.announce(contents);
        let commits = self.commits_count();
        session.txn.commit()?;
        // If there was nothing to commit, there was no sync.
        if self.commits_count() > commits {
            self.acknowledge_if_synced();
        }
        Ok(())
    }

    fn commits_count(&self) -> u64 {
        let commits = self.db.status().into_iter().find(|(name, _)| *name == "commits");
        commits.expect("commits are counted").1
    }

    fn row_step(&mut self, session: &mut Session) -> Result<()> {
        let names = self.committed().keys().cloned().collect::<Vec<_>>();
        let Some(name) = names.get(self.rng.below(names.len() as u64) as usize) else { return Ok(()) };
        let table = self.db.table(name)?;
        match session.txn.lock_table(&table, LockMode::Exclusive) {
            Err(Error::LockTimeout | Error::Deadlock) => return Ok(()),
            other => other?,
        }
        let committed = &self.versions.last().unwrap().contents[name];
        let rows = session.changed.entry(name.clone()).or_insert_with(|| committed.clone());
        let key = self.rng.below(30);
        let new_key = if self.rng.chance(0.3) { self.rng.below(30) } else { key };
        let bytes = match self.rng.below(60) {
            0 => 30_000 + self.rng.below(40_000),
            1..=3 => 2000 + self.rng.below(8000),
            4..=12 => 200 + self.rng.below(1500),
            _ => self.rng.below(40),
        };
        let new = Row::new(self.rng.below(60), bytes as usize);
        match rows.get(&key).cloned() {
            None => {
                let done = insert(&mut session.txn, &table, key, &new);
                expect_unique(rows, None, key, &new, done)?;
            }
            Some(old) if self.rng.chance(0.4) => {
                delete(&mut session.txn, &table, key, &old)?;
                rows.remove(&key);
            }
            Some(old) => {
                let (new, stored) =
                    self.maybe_keep_text(session_txn(&mut session.txn), &table, key, &old, new)?;
                let done = update_stored(&mut session.txn, &table, key, &old, new_key, &new, &stored);
                expect_unique(rows, Some(key), new_key, &new, done)?;
            }
        }
        if self.rng.chance(0.1) {
            let found = read_as(&mut session.txn, &table, key, Read::Exclusive)?;
            assert_eq!(found, rows.get(&key).cloned(), "key {key}");
        }
        Ok(())
    }

    /// The new row and its stored form, which sometimes keeps the text of the old row.
    fn maybe_keep_text(
        &mut self,
        txn: &mut Transaction,
        table: &Arc<Table>,
        key: u64,
        old: &Row,
        new: Row,
    ) -> Result<(Row, Vec<u8>)> {
        let mut stored = Vec::new();
        txn.get(table, &key.to_be_bytes(), Read::Exclusive, &mut stored)?;
        let (present, external) = Row::parse(&stored);
        if external && self.rng.chance(0.6) {
            let kept = Row { text: old.text.clone(), ..new };
            let stored = kept.stored_keeping_text(&present.text);
            return Ok((kept, stored));
        }
        let stored = new.stored();
        Ok((new, stored))
    }
}

fn session_txn(txn: &mut Transaction) -> &mut Transaction {
    txn
}

/// Checks that the engine's answer to an insert or update agrees with the model. Updates the model
/// on success.
fn expect_unique(rows: &mut Rows, old_key: Option<u64>, key: u64, new: &Row, done: Result<()>) -> Result<()> {
    let others = || rows.iter().filter(|(other, _)| Some(**other) != old_key);
    let same_key = others().any(|(other, _)| *other == key);
    let same_number = others().find(|(_, row)| row.number == new.number).map(|(other, _)| *other);
    match done {
        Err(Error::DuplicateKey { index_no: 0, .. }) => {
            assert!(same_key, "{key} was wrongly refused as a duplicate")
        }
        Err(Error::DuplicateKey { index_no: 2, existing }) => {
            assert_eq!(same_number.map(|key| key.to_be_bytes().to_vec()), Some(existing));
        }
        other => {
            other?;
            assert!(!same_key && same_number.is_none(), "a duplicate was accepted");
            old_key.map(|old_key| rows.remove(&old_key));
            rows.insert(key, new.clone());
        }
    }
    Ok(())
}

/// After a startup no transaction remains, there is nothing to purge, and the undo log has shrunk
/// to its last page.
fn check_undo_is_empty(db: &Db) -> std::result::Result<(), String> {
    let status = db.status();
    for (name, most) in [("transactions_listed", 0), ("transactions_to_purge", 0), ("undo_pages", 1)] {
        match status.iter().find(|(other, _)| *other == name) {
            Some((_, value)) if *value <= most => {}
            other => return Err(format!("after a startup, {name} is {other:?}")),
        }
    }
    Ok(())
}

/// Opens an image, commits or rolls back the prepared transactions, and compares the database with
/// the versions from `acknowledged` on. Returns the version found.
pub fn verify(
    disk: &SimDisk,
    versions: &[Version],
    acknowledged: u64,
    early: bool,
) -> std::result::Result<usize, String> {
    let opened = if early { opened_early(disk) } else { open(disk).map_err(|error| error.to_string()) };
    let db = opened.map_err(|error| format!("the database does not open: {error}"))?;
    let commits = |no: u64| (no + acknowledged) % 2 == 0;
    let prepared = db.prepared().iter().map(number).collect::<BTreeSet<_>>();
    if prepared.is_empty() {
        check_undo_is_empty(&db)?;
    }
    for &no in &prepared {
        let ended = if commits(no) { db.commit_prepared(&xid(no)) } else { db.rollback_prepared(&xid(no)) };
        ended.map_err(|error| format!("the end of prepared transaction {no}: {error}"))?;
    }
    let mut contents = Contents::new();
    for name in db.table_names() {
        let mut txn = db.begin();
        let table = db.table(&name).map_err(|error| error.to_string())?;
        let rows = all_rows(&mut txn, &table).map_err(|error| format!("table {name}: {error}"))?;
        let checked = check(&db, &table).map_err(|error| format!("CHECK of {name}: {error}"))?;
        let counted = checked.map_err(|findings| format!("CHECK of {name}: {findings:?}"))?;
        if counted != rows.len() as u64 {
            return Err(format!("table {name} has {} rows, but counts {counted}", rows.len()));
        }
        contents.insert(name, rows);
    }
    let from = acknowledged as usize;
    let is_it =
        |version: &Version| version.prepared.keys().eq(&prepared) && version.settled(commits) == contents;
    let found = versions.iter().skip(from).position(is_it);
    found.map(|at| from + at).ok_or_else(|| {
        let same = versions.iter().map(|version| version.settled(commits)).collect::<Vec<_>>();
        let expected = versions.get(from).map(|version| version.prepared.keys().collect::<Vec<_>>());
        format!("{}; prepared {prepared:?}, wanted {expected:?}", describe(&contents, &same, from))
    })
}

/// Opens a database like the server, with redo threads, before open transactions are rolled back.
/// Then lets the background roll them back. Consistent reads must not see a difference.
fn opened_early(disk: &SimDisk) -> std::result::Result<Db, String> {
    let go_on = || {
        let db = Db::open_early(env(disk), Config { redo_threads: 3, ..Config::tiny() })?;
        let at_once = contents_of(&db)?;
        while db.run_background()? {}
        Ok((contents_of(&db)? == at_once, db))
    };
    match go_on() {
        Ok((true, db)) => Ok(db),
        Ok((false, _)) => Err("a read saw rows that were still to be rolled back".into()),
        Err(error) => Err(Error::to_string(&error)),
    }
}

fn contents_of(db: &Db) -> Result<Contents> {
    let table = |name: String| {
        let rows = all_rows(&mut db.begin(), &db.table(&name)?)?;
        Ok((name, rows))
    };
    db.table_names().into_iter().map(table).collect()
}

fn describe(contents: &Contents, versions: &[Contents], from: usize) -> String {
    if let Some(at) = versions.iter().position(|version| version == contents) {
        return format!("version {at} was found, but {from} had been acknowledged");
    }
    let Some(expected) = versions.get(from) else { return "no version was acknowledged".into() };
    let names = |contents: &Contents| contents.keys().cloned().collect::<Vec<_>>();
    let differs = |name: &&String| contents.get(*name) != expected.get(*name);
    let rows = expected.keys().filter(differs).map(|name| {
        let (there, wanted) = (contents.get(name).cloned().unwrap_or_default(), &expected[name]);
        let missing = wanted.iter().filter(|(key, row)| there.get(key) != Some(row)).map(|(key, _)| *key);
        let extra = there.iter().filter(|(key, row)| wanted.get(key) != Some(row)).map(|(key, _)| *key);
        format!(
            "{name}: wrong or missing {:?}, unexpected {:?}",
            missing.collect::<Vec<_>>(),
            extra.collect::<Vec<_>>()
        )
    });
    let rows = rows.collect::<Vec<_>>();
    format!(
        "no version from {from} of {}: tables {:?} instead of {:?}; {rows:?}",
        versions.len(),
        names(contents),
        names(expected)
    )
}
