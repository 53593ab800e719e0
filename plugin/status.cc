// SPDX-License-Identifier: GPL-2.0-only
#include "status.h"

#include <deque>
#include <string>
#include <vector>

#include "engine.h"

namespace cheetah {

// The server reads the names and values after `show_counters` has returned, in the same thread.
struct Counters {
  std::deque<std::string> names;
  std::deque<ulonglong> values;
  std::vector<st_mysql_show_var> variables;
};
static thread_local Counters counters;

static void add_counter(void *, CheetahBytes name, uint64_t value) {
  counters.names.push_back(text_of(name));
  counters.values.push_back(value);
  counters.variables.push_back({counters.names.back().c_str(), &counters.values.back(), SHOW_LONGLONG});
}

static int show_counters(MYSQL_THD, st_mysql_show_var *variable, void *, system_status_var *, enum_var_type) {
  counters = Counters();
  cheetah_status(engine.db, add_counter, nullptr);
  counters.variables.push_back({nullptr, nullptr, SHOW_UNDEF});
  variable->type = SHOW_ARRAY;
  variable->value = counters.variables.data();
  return 0;
}

st_mysql_show_var status_variables[] = {{"Cheetah", reinterpret_cast<void *>(show_counters), SHOW_FUNC},
                                        {nullptr, nullptr, SHOW_UNDEF}};

}  // namespace cheetah
