//! Snapshots in the database's directory `snapshots` that a crash left unfinished (durability::Z9).

use super::target::DIRECTORIES;
use crate::base::sound;
use crate::page_map::CONTROL_PATH;
use cheetah_io::{Disk, SNAPSHOTS};

/// Removes the snapshots without CONTROL: they cannot be opened, and their links keep files that
/// the database has released. Leaves those it cannot remove to the next startup. Blocks for I/O.
pub fn remove_unfinished(disk: &dyn Disk) {
    for name in disk.list(SNAPSHOTS).unwrap_or_default() {
        let root = format!("{SNAPSHOTS}/{name}");
        let Ok(names) = disk.list(&root) else { continue };
        let is_unfinished = !names.iter().any(|name| name == CONTROL_PATH);
        if sound!(is_unfinished, "backup: leave what was not finished") {
            remove(disk, &root, &names);
        }
    }
}

/// A directory that contains anything else stays.
fn remove(disk: &dyn Disk, root: &str, names: &[String]) {
    for directory in DIRECTORIES.map(|directory| format!("{root}/{directory}")) {
        let names = disk.list(&directory).unwrap_or_default();
        let files =
            names.iter().filter(|name| [".seg", ".chg", ".log"].iter().any(|end| name.ends_with(end)));
        files.for_each(|name| drop(disk.unlink(&format!("{directory}/{name}"))));
        let _ = disk.remove_dir(&directory);
    }
    let maps = names.iter().filter(|name| name.starts_with("map-"));
    maps.for_each(|name| drop(disk.unlink(&format!("{root}/{name}"))));
    let _ = disk.remove_dir(root);
}
