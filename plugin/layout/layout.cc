// SPDX-License-Identifier: GPL-2.0-only
#include "layout/layout.h"

#include <dlfcn.h>
#include <link.h>

// The server exports these functions, but no header for plugins declares them.
MYSQL_THD create_background_thd();
void destroy_background_thd(MYSQL_THD thd);

namespace cheetah {

// Returns the size of one of the server's symbols; 0 if it is unknown.
static size_t bytes_in_server(const char *symbol) {
  void *address = dlsym(RTLD_DEFAULT, symbol);
  Dl_info object;
  void *entry = nullptr;
  if (address == nullptr || dladdr1(address, &object, &entry, RTLD_DL_SYMENT) == 0) return 0;
  return entry == nullptr ? 0 : static_cast<const ElfW(Sym) *>(entry)->st_size;
}

// Adds one virtual function after those of the class. Its index is the number of the class's
// virtual functions.
template <class Class>
struct Next : Class {
  virtual void next() = 0;
};

// Returns the size of the class's virtual table according to the headers. In the C++ ABI of Linux a
// pointer to a virtual member function holds its offset in the table plus 1, and two words precede
// offset 0.
template <class Class>
static size_t virtual_table_bytes() {
  void (Next<Class>::*next)() = &Next<Class>::next;
  size_t offset;
  static_assert(sizeof(next) >= sizeof(offset), "a pointer to a member function");
  memcpy(&offset, &next, sizeof(offset));
  return offset - 1 + 2 * sizeof(void *);
}

// Checks members that the server sets before it calls the plugin. Some are near the end of the
// structure.
static bool is_handlerton(const handlerton *hton) {
  return hton->tablefile_extensions == hton_no_exts && hton->discover_table_names != nullptr &&
         hton->drop_table != nullptr && hton->slot == HA_SLOT_UNDEF;
}

// Compares members of a connection as read by the server's functions and by the headers.
static bool is_connection(const THD *thd) {
  return thd_get_thread_id(thd) == thd->thread_id &&
         thd_query_id(thd) == static_cast<unsigned long long>(thd->query_id) &&
         thd_tx_isolation(thd) == static_cast<int>(thd->tx_isolation) &&
         thd_test_options(thd, -1) == static_cast<long long>(thd->variables.option_bits);
}

static bool connections_agree() {
  if (current_thd != nullptr) return is_connection(current_thd);
  THD *thd = create_background_thd();
  bool agree = is_connection(thd);
  destroy_background_thd(thd);
  return agree;
}

const char *layout_difference(const handlerton *hton) {
  // These two structures make up most of THD.
  if (bytes_in_server("global_system_variables") != sizeof(system_variables)) return "the size of its session variables";
  if (bytes_in_server("global_status_var") != sizeof(system_status_var)) return "the size of its status variables";
  if (bytes_in_server("_ZTV7handler") != virtual_table_bytes<handler>()) return "the functions of its class handler";
  if (bytes_in_server("_ZTV5Field") != virtual_table_bytes<Field>()) return "the functions of its class Field";
  if (!is_handlerton(hton)) return "its structure handlerton";
  if (!connections_agree()) return "its class THD";
  return nullptr;
}

}  // namespace cheetah
