//! When dictionaries are tried, and by whom: a tree's own pages show whether one pays (`payoff`).
//!
//! A tree that has grown is noted for the background. The background makes the trial when it can
//! keep the tree from being dropped (D3): the table is in use, or the builder of the tree has lent
//! it. A caller that needs the outcome finishes the trial itself.
//!
//! Invariants
//!   T1  No trial of a lent tree outlives its [`LentTree`].
//!   T2  The builder of a tree does not leave before the tree's first trial.
//! Locks     that of a lent tree, then that of trials; then as the head of the room says.

use super::payoff::{split_sample, Payoff, TrialDictionary, SAMPLE_PAGES, SAMPLE_PAGES_MIN};
use super::registry::{Due, Lent, GROWTH};
use crate::base::{sound, ErrorKind, Result, TreeId, TxnId};
use crate::format::image::{Compression, Primer};
use crate::format::page::{is_built, PageView};
use crate::pool::trees::{TreeDef, TreeState, PAGES_MIN};
use crate::pool::Pool;
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;

/// Dictionaries of one tree at most. Old ones stay (D2).
const VERSIONS_MAX: usize = 8;
/// A sample is taken from the `NEWEST_PAGES` newest pages of the tree, and has at most
/// [`SAMPLE_BYTES_MAX`] bytes of content.
const NEWEST_PAGES: usize = 512;
/// Page numbers looked at for them, some 20 ms: a tree that nobody has added to for long may get no
/// trial in a huge database.
const NEWEST_LOOKS_MAX: usize = 1_000_000;
const SAMPLE_BYTES_MAX: usize = 2 << 20;
/// The newest pages are gone through in `SAMPLE_ROUNDS` rounds, each all over them: one of the
/// largest pages is enough.
const SAMPLE_ROUNDS: usize = 16;

/// A load goes this number of pages ahead of the first trial of its tree.
const EARLY_PAGES_MAX: u64 = 1024;

/// A tree of which the background may make trials although nobody finds it, because somebody is
/// building it. Dropping this takes it back, and waits for a trial that is being made: some 10 ms,
/// more if memory is full.
#[derive(Debug)]
pub struct LentTree {
    pool: Arc<Pool>,
    lent: Arc<Lent>,
}

impl LentTree {
    /// Lets the background make trials of a tree until what this returns is dropped. `keeper` keeps
    /// it from being dropped (D3), and goes then. Drop that outside of mini-transactions and
    /// without latches.
    pub fn lend(pool: &Arc<Pool>, tree: TreeId, keeper: Arc<dyn Any + Send + Sync>) -> Self {
        let lent = Arc::new(Mutex::new(Some(keeper)));
        pool.dictionaries.lend(tree, &lent);
        Self { pool: Arc::clone(pool), lent }
    }

    #[cfg(test)]
    /// The guard that the background locks.
    pub(in crate::pool) fn lent(&self) -> Arc<Lent> {
        Arc::clone(&self.lent)
    }
}

impl Drop for LentTree {
    fn drop(&mut self) {
        if !sound!(true, "pool: keep a tree that was taken back") {
            return;
        }
        let kept = self.lent.lock().take();
        self.pool.dictionaries.return_lent(&self.lent);
        drop(kept);
    }
}

/// The trials of one tree.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'p> {
    pool: &'p Pool,
    tree: TreeId,
}

impl Pool {
    /// The trials of a tree.
    pub fn trial(&self, tree: TreeId) -> Trial<'_> {
        Trial { pool: self, tree }
    }
}

impl<'p> Trial<'p> {
    /// Makes a trial that is due of a tree that is lent; whether it did, or none if nobody lends
    /// it. Blocks, and reads up to 96 pages.
    pub fn try_if_lent(&self) -> Result<Option<bool>> {
        let Some(lent) = self.pool.dictionaries.lent(self.tree) else { return Ok(None) };
        let kept = lent.lock();
        match kept.is_some() {
            true if self.is_due() => self.run_due().map(Some),
            true => Ok(Some(false)),
            false => Ok(None),
        }
    }

    /// Notes when a tree has grown to where a dictionary may pay. Those that a database has for
    /// itself get none.
    pub(in crate::pool) fn note_growth(&self, state: &TreeState) {
        if self.tree >= TreeId::FIRST_USER && state.note_growth() {
            self.pool.dictionaries.ask(Due::Trial(self.tree));
        }
    }

    /// Whether the tree has grown since a dictionary was last tried.
    pub fn is_due(&self) -> bool {
        self.pool.trees.get(self.tree).is_trial_due()
    }

    /// Whether a dictionary has been tried for the tree since the database was opened, or it has
    /// one.
    pub fn has_been_made(&self) -> bool {
        self.pool.trees.get(self.tree).has_tried()
    }

    /// Whether the tree is large enough for a dictionary, or one has been tried: its pages may be
    /// [noted](Pool::note_finished) to be written.
    pub fn may_write_early(&self) -> bool {
        let state = self.pool.trees.get(self.tree);
        state.has_tried() || state.awaits_first_trial()
    }

    /// As [`finish`](Self::finish), for who has built a tree, unless a trial
    /// has been made.
    pub fn finish_first(&self) -> Result<()> {
        match self.pool.trees.get(self.tree).awaits_first_trial() {
            true => self.finish(),
            false => Ok(()),
        }
    }

    /// As [`finish_first`](Self::finish_first), for who is building one, but
    /// only when it is far ahead of its first trial; else it goes on.
    pub fn finish_late(&self) -> Result<()> {
        match self.pool.trees.get(self.tree).bytes().pages > EARLY_PAGES_MAX {
            true => self.finish_first(),
            false => Ok(()),
        }
    }

    /// As [`run`](Self::run), for those who have other things to do: they do
    /// not wait for a trial that others make, and only an error that stops the engine is theirs.
    pub fn run_in_passing(&self) -> Result<()> {
        self.unless_fatal(self.run_unless_busy())
    }

    /// Makes the trial that is due before pages are written at once, or waits for who is making it.
    /// Errors: those of [`run_in_passing`](Self::run_in_passing).
    pub fn finish(&self) -> Result<()> {
        let _one = self.lock().lock();
        match self.is_due() {
            true => self.unless_fatal(self.try_now()),
            false => Ok(()),
        }
    }

    fn unless_fatal(&self, tried: Result<bool>) -> Result<()> {
        match tried {
            Err(error) if error.kind() == ErrorKind::Stopped => Err(error),
            Err(error) => {
                self.pool.health.background_errors().note("making dictionaries", &error);
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }

    /// As [`run`](Self::run), but `false` when others are making a trial,
    /// which may be of another tree.
    fn run_unless_busy(&self) -> Result<bool> {
        let Some(_one) = self.lock().try_lock() else { return Ok(false) };
        self.try_now().map(|_| true)
    }

    /// Makes a trial that was due; `false` when it is put off because others are making one.
    pub fn run_due(&self) -> Result<bool> {
        let is_done = self.run_unless_busy()?;
        if !is_done {
            self.pool.dictionaries.ask(Due::Trial(self.tree));
        }
        Ok(is_done)
    }

    pub(in crate::pool) fn lock(&self) -> &'p Mutex<()> {
        self.pool.dictionaries.trial_of(self.tree)
    }

    /// Makes a dictionary of the tree's own pages, if others of them show that it pays; whether it
    /// did. The caller keeps the tree from being dropped (D3). Outside of mini-transactions and
    /// without latches; reads up to 96 pages, one trial of a tree at a time.
    pub fn run(&self) -> Result<bool> {
        let _one = self.lock().lock();
        self.try_now()
    }

    fn try_now(&self) -> Result<bool> {
        let state = self.pool.trees.get(self.tree);
        let pages = state.bytes().pages;
        state.put_trial_off(pages + PAGES_MIN);
        let versions = state.dictionary_pages().len();
        let def = state.def().filter(|def| Primer::suits(def.compression));
        let def = def.filter(|_| pages >= PAGES_MIN && versions < VERSIONS_MAX);
        let made = def.map_or(Ok(false), |def| self.trial(&def, &state, pages));
        state.next_trial_at(match made {
            Ok(made) => pages * if made || versions > 0 { GROWTH } else { 2 },
            // It is not tried again with every page.
            Err(_) => pages + PAGES_MIN,
        });
        made
    }

    /// Contents, before compression, of pages from all over the newest of a tree.
    fn sample(&self, def: &TreeDef) -> Result<Vec<Vec<u8>>> {
        let newest = self.pool.newest_pages_of(def.id, NEWEST_PAGES, NEWEST_LOOKS_MAX);
        let rounds = (0..SAMPLE_ROUNDS).flat_map(|round| newest.iter().skip(round).step_by(SAMPLE_ROUNDS));
        let (mut contents, mut bytes_count) = (Vec::new(), 0);
        for pid in rounds.take(SAMPLE_PAGES) {
            let page = match self.pool.fetch_for_scan(*pid) {
                Ok(Some(page)) => page,
                Err(error) if error.kind() == ErrorKind::Stopped => return Err(error),
                // It is gone, or the next reader of it meets the error.
                Ok(None) | Err(_) => continue,
            };
            let bytes = page.read();
            if is_built(&bytes) && Primer::serves(PageView::new(&bytes).kind()) {
                let content = self.pool.scratch.with_workspace(|workspace| {
                    workspace.content(&bytes, &def.row_format, TxnId(u64::MAX)).to_vec()
                });
                bytes_count += content.len();
                contents.push(content);
            }
            if bytes_count > SAMPLE_BYTES_MAX {
                break;
            }
        }
        Ok(contents)
    }

    /// Makes a dictionary if it pays for a tree of `pages` pages.
    fn trial(&self, def: &TreeDef, state: &TreeState, pages: u64) -> Result<bool> {
        let contents = self.sample(def)?;
        if contents.len() < SAMPLE_PAGES_MIN {
            return Ok(false);
        }
        let sampled_bytes = contents.iter().map(Vec::len).sum();
        let (sources, tested) = split_sample(contents.iter().map(Vec::as_slice));
        let new = TrialDictionary::of(&sources, sampled_bytes, def.compression, self.pool.page_bytes)?;
        let now = state.dictionary_in(self.pool.epoch()).map(|page| self.pool.load_primer(def.id, page));
        // A dictionary that cannot be read is of no use; the next reader of it meets the error.
        let now = now.and_then(|loaded| loaded.ok()?.0);
        let outcome = Payoff {
            before: self.images_bytes(&tested, def.compression, now.as_deref()),
            after: self.images_bytes(&tested, def.compression, Some(&new.primer)),
            pages: tested.len(),
            own: self.images_bytes(&[&new.content], def.compression, None),
        };
        let pays = outcome.pays(pages, def.compression);
        if pays {
            self.pool.add_dictionary(def.id, state, &new.content, new.primer)?;
        }
        Ok(pays)
    }

    fn images_bytes(&self, contents: &[&[u8]], compression: Compression, primer: Option<&Primer>) -> usize {
        let bytes_of = |content: &&[u8]| {
            self.pool.scratch.with_workspace(|workspace| workspace.image_bytes(content, compression, primer))
        };
        contents.iter().map(bytes_of).sum()
    }
}
