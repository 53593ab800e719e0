// SPDX-License-Identifier: GPL-2.0-only
#include "ddl/orphans.h"

#include "engine.h"
#include "errors.h"

namespace cheetah {

struct Search {
  const std::string *prefix;
  std::vector<std::string> names;
};

static void add_match(void *context, CheetahBytes name) {
  auto *search = static_cast<Search *>(context);
  std::string text = text_of(name);
  if (text.compare(0, search->prefix->size(), *search->prefix) == 0) search->names.push_back(text);
}

std::vector<std::string> table_names(const std::string &prefix) {
  Search search{&prefix, {}};
  cheetah_table_names(engine.db, add_match, &search);
  return search.names;
}

// Returns the start of the partition mark, after the name of the table.
static size_t find_partition(const std::string &name) {
  size_t partition = name.find("#P#");
  return partition != std::string::npos ? partition : name.find("#p#");
}

std::string siblings_of_partition(const std::string &name) {
  size_t partition = find_partition(name);
  return partition == std::string::npos ? "" : name.substr(0, partition + 3);
}

bool has_definition(const std::string &name) {
  std::string file = "./" + name;
  for (const char *mark : {"#P#", "#p#", vector_mark}) {
    size_t part = file.find(mark);
    if (part != std::string::npos) file.resize(part);
  }
  return access((file + reg_ext).c_str(), F_OK) == 0;
}

void drop_or_warn(const std::string &name) {
  if (cheetah_drop_table(engine.db, bytes_of(name), CHEETAH_REFERENCED_IGNORED) == CHEETAH_CODE_OK) return;
  String message = last_message();
  sql_print_warning("CHEETAH: '%s' could not be dropped: %s", name.c_str(), message.c_ptr_safe());
}

int rename_all_partitions(const std::string &source, const std::string &target) {
  std::vector<std::string> partitions = table_names(source + "#P#");
  // All partitions may have been renamed before the crash, but not the .par file.
  if (partitions.empty() && table_names(target + "#P#").empty()) return HA_ERR_NO_SUCH_TABLE;
  for (const std::string &partition : partitions) {
    std::string renamed = target + partition.substr(source.size());
    int error = handler_error(cheetah_rename_table(engine.db, bytes_of(partition), bytes_of(renamed), true), nullptr);
    if (error != 0) return error;
  }
  std::string from = "./" + source + ".par", to = "./" + target + ".par";
  if (access(from.c_str(), F_OK) == 0) my_rename(from.c_str(), to.c_str(), MYF(MY_SYNC_DIR));
  return 0;
}

void drop_temporary_tables() {
  for (const std::string &name : table_names("#tmp/")) drop_or_warn(name);
}

void drop_intermediate_tables() {
  for (const std::string &name : table_names("")) {
    size_t slash = name.find(FN_LIBCHAR);
    bool intermediate = slash != std::string::npos && name.compare(slash + 1, 5, "#sql-") == 0;
    if (!intermediate || has_definition(name)) continue;
    sql_print_information("CHEETAH: dropping '%s', left over from an interrupted statement", name.c_str());
    drop_or_warn(name);
  }
}

}  // namespace cheetah
