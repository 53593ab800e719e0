//! The dictionaries of trees: which one a page is written with, which are in memory, and the work
//! that is due for others. Invariants: D1 to D5 at the head of the room.

use super::registry::{Due, GROWTH};
use crate::base::{sound, Epoch, ErrorKind, PageId, Result, TreeId};
use crate::format::image::{Dictionary, Primer};
use crate::format::page::{build_content, content_capacity, PageKind};
use crate::pool::trees::{TreeState, Version};
use crate::pool::{PageClass, Pool};
use std::collections::HashMap;
use std::sync::Arc;

/// The work on dictionaries that was due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DictionaryDue {
    /// Nothing.
    Nothing,
    /// Something that has been done.
    Done,
    /// The same, but another one had to go from memory: there is no room for all that are in use.
    Replaced,
    /// The tree has grown. Somebody who keeps it from being dropped should call
    /// [`Trial::run_due`](crate::pool::Trial::run_due); if nobody finds it,
    /// [`Trial::try_if_lent`](crate::pool::Trial::try_if_lent).
    Trial(TreeId),
}

impl Pool {
    /// The primer that images of that epoch are written with (D1, D4).
    pub(in crate::pool) fn primer_for(
        &self,
        tree: TreeId,
        state: &TreeState,
        epoch: Epoch,
    ) -> Option<Arc<Primer>> {
        let is_sound = sound!(true, "pool: name a dictionary of the next epoch");
        let page = state.dictionary_in(if is_sound { epoch } else { Epoch(u64::MAX) })?;
        let compression = state.def().map(|def| def.compression).filter(|wanted| Primer::suits(*wanted))?;
        let found = self.dictionaries.to_write.get(tree, page);
        let found = found.filter(|primer| primer.compression() == compression);
        if found.is_none() {
            self.counters.dictionary_misses.one();
            self.dictionaries.ask(Due::Load(tree, page));
        }
        found
    }

    /// The dictionary in a page of `tree`, from memory or by reading the page. `Corruption` when
    /// the page does not hold one, or is gone.
    pub(in crate::pool) fn dictionary(&self, tree: TreeId, page: PageId) -> Result<Arc<Dictionary>> {
        if let Some(found) = self.dictionaries.to_read.get(tree, page) {
            return Ok(found);
        }
        let _one = self.dictionaries.load(page);
        if let Some(found) = self.dictionaries.to_read.get(tree, page) {
            return Ok(found);
        }
        let content = self.dictionary_content(tree, page)?;
        let dictionary = Dictionary::new(page, &content)?;
        let bytes = dictionary.memory_bytes();
        self.counters.dictionary_loads.one();
        Ok(self.dictionaries.to_read.keep(tree, page, dictionary, bytes).0)
    }

    fn dictionary_content(&self, tree: TreeId, page: PageId) -> Result<Vec<u8>> {
        let gone =
            || crate::base::Error::corrupt(format!("dictionary {page} of tree {tree}"), "the page is gone");
        self.read_dictionary(tree, page)?.ok_or_else(gone)
    }

    /// Prepares a dictionary to be written with, unless its tree is not, or no longer, compressed
    /// in such a way. Also returns whether others had to go from memory for it.
    pub(in crate::pool) fn load_primer(
        &self,
        tree: TreeId,
        page: PageId,
    ) -> Result<(Option<Arc<Primer>>, bool)> {
        let compression = self.trees.known(tree).and_then(|state| Some(state.def()?.compression));
        let Some(compression) = compression.filter(|wanted| Primer::suits(*wanted)) else {
            return Ok((None, false));
        };
        let found = self.dictionaries.to_write.get(tree, page);
        if let Some(found) = found.filter(|primer| primer.compression() == compression) {
            return Ok((Some(found), false));
        }
        let made =
            self.dictionary_content(tree, page).and_then(|content| Primer::new(page, &content, compression));
        if matches!(&made, Err(error) if error.kind() == ErrorKind::Corruption) {
            self.trees.get(tree).give_up_dictionary(page);
        }
        let primer = made?;
        let bytes = primer.memory_bytes();
        self.counters.dictionary_loads.one();
        let (primer, is_crowded) = self.dictionaries.to_write.keep(tree, page, primer, bytes);
        Ok((Some(primer), is_crowded))
    }

    /// Prepares to write with the newest dictionaries of trees, as many as there is room for: after
    /// a startup nobody else does before pages are written. One that cannot be read is asked for
    /// again by those who write.
    pub fn load_primers(&self) {
        let newest: HashMap<_, _> = self.trees.dictionaries().into_iter().collect();
        for (tree, page) in newest {
            let loaded = self.load_primer(tree, page);
            let bytes = loaded.ok().and_then(|(primer, _)| Some(primer?.memory_bytes())).unwrap_or(0);
            if !self.dictionaries.to_write.has_room(bytes) {
                return;
            }
        }
    }

    /// All dictionaries, each tree's from the oldest to the newest: part of the state of an epoch.
    /// For the epoch switch, when no mini-transaction runs (D3).
    pub fn dictionaries(&self) -> Vec<(TreeId, PageId)> {
        self.trees.dictionaries()
    }

    /// Takes over the dictionaries that the state of the epoch lists. A tree that was being freed
    /// may have lost its own.
    pub fn adopt_dictionaries(&self, listed: &[(TreeId, PageId)]) {
        for &(tree, page) in listed.iter().filter(|&&(tree, page)| self.owner(page) == Some(tree)) {
            let state = self.trees.get(tree);
            state.add_dictionary(Version { page, made_in: Epoch(0), is_given_up: false });
            state.next_trial_at(GROWTH * state.bytes().pages);
        }
    }

    /// The pages of a tree's dictionaries, and how many pages it has at the same moment.
    pub fn dictionaries_and_pages(&self, tree: TreeId) -> (Vec<PageId>, u64) {
        let _making = self.dictionaries.make();
        let state = self.trees.get(tree);
        (state.dictionary_pages(), state.bytes().pages)
    }

    /// Reads a dictionary of a tree from disk, also if it is in memory. `Corruption` when its page
    /// does not hold one.
    pub fn check_dictionary(&self, tree: TreeId, page: PageId) -> Result<()> {
        self.check_image(page)?;
        self.dictionary(tree, page).map(drop)
    }

    /// Does one thing that is due: a primer that pages were written without is loaded, which
    /// blocks; a tree that has grown is returned.
    pub fn dictionary_due(&self) -> Result<DictionaryDue> {
        match self.dictionaries.take_due() {
            None => Ok(DictionaryDue::Nothing),
            Some(Due::Trial(tree)) => Ok(DictionaryDue::Trial(tree)),
            Some(Due::Load(tree, page)) => match self.load_primer(tree, page) {
                // It has gone with its tree.
                Err(_) if self.owner(page) != Some(tree) => Ok(DictionaryDue::Done),
                Ok((_, true)) => Ok(DictionaryDue::Replaced),
                loaded => loaded.map(|_| DictionaryDue::Done),
            },
        }
    }

    /// Gives the tree a page with that content, and its name to the images that follow (D1, D3).
    pub(in crate::pool) fn add_dictionary(
        &self,
        tree: TreeId,
        state: &TreeState,
        content: &[u8],
        primer: Primer,
    ) -> Result<()> {
        self.make_room(PageClass::Large.bytes(self.page_bytes) / self.page_bytes as usize)?;
        let class = PageClass::ALL
            .into_iter()
            .find(|class| content_capacity(class.bytes(self.page_bytes)) >= content.len())
            .expect("a dictionary fits the largest page");
        let _making = self.dictionaries.make();
        let mtr = self.enter();
        let page = self.allocate(&mtr, tree, class);
        {
            let mut bytes = page.write(&mtr);
            let mut built = build_content(&mut bytes, PageKind::Dictionary, tree, PageId::NONE, 0);
            built.append_content(content).expect("the class was chosen for it");
        }
        let bytes = primer.memory_bytes();
        self.dictionaries.to_write.keep(tree, page.pid(), primer.in_page(page.pid()), bytes);
        state.add_dictionary(Version { page: page.pid(), made_in: mtr.epoch(), is_given_up: false });
        Ok(())
    }

    /// Forgets what is in memory of a tree's dictionaries.
    pub(in crate::pool) fn forget_dictionaries(&self, tree: TreeId) {
        self.dictionaries.to_read.forget(tree);
        self.dictionaries.to_write.forget(tree);
    }
}
