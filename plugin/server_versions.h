// SPDX-License-Identifier: GPL-2.0-only
// All code that depends on the release of the server. Included by server.h.
#pragma once

#include <string>

namespace cheetah {

// The server's calls when a copy of a table begins, ends, or is abandoned: for ALTER TABLE and
// CREATE TABLE .. SELECT.
#if MYSQL_VERSION_ID >= 110800 && MYSQL_VERSION_ID < 110808
constexpr ha_extra_function begin_copy = HA_EXTRA_BEGIN_ALTER_COPY;
constexpr ha_extra_function end_copy = HA_EXTRA_END_ALTER_COPY;
constexpr ha_extra_function abort_copy = HA_EXTRA_ABORT_ALTER_COPY;
#else
constexpr ha_extra_function begin_copy = HA_EXTRA_BEGIN_COPY;
constexpr ha_extra_function end_copy = HA_EXTRA_END_COPY;
constexpr ha_extra_function abort_copy = HA_EXTRA_ABORT_COPY;
#endif

#if MYSQL_VERSION_ID >= 110800

// Transaction functions of the handlerton need no wrapper in these releases.
template <auto function>
constexpr auto of_transaction = function;

// Sets the optimizer's costs: milliseconds per row or key, as measured for InnoDB, so that plans
// are the same. The optimizer computes the other costs from these.
inline void set_costs(handlerton *hton) {
  hton->update_optimizer_costs = [](OPTIMIZER_COSTS *costs) {
    costs->row_next_find_cost = 0.00007013;
    costs->row_lookup_cost = 0.00076597;
    costs->key_next_find_cost = 0.00009900;
    costs->key_lookup_cost = 0.00079112;
    costs->row_copy_cost = 0.00006087;
  };
}

class CostedHandler : public handler {
 public:
  using handler::handler;

  // The server passes the result of records(), even if that is HA_POS_ERROR.
  IO_AND_CPU_COST keyread_time(uint key_no, ulong ranges, ha_rows rows, ulonglong blocks) override {
    return handler::keyread_time(key_no, ranges, rows == HA_POS_ERROR ? stats.records : rows, blocks);
  }

  // Returns to the optimizer the server's way and cost of reading many ranges.
  ha_rows multi_range_read_info_const(uint key_no, RANGE_SEQ_IF *ranges, void *context, uint count, uint *bytes,
                                      uint *mode, ha_rows wanted, Cost_estimate *cost) override {
    prepare_ranges(mode);
    return ranges_.dsmrr_info_const(key_no, ranges, context, count, bytes, mode, wanted, cost);
  }

 protected:
  // Returns the pages of the clustered index, at least one; 0 if unknown.
  virtual double clustered_pages() const = 0;

  // Prepares `ranges_` before the server plans how to read many ranges, and restricts `mode` to
  // what is allowed.
  virtual void prepare_ranges(uint *mode) = 0;

  // The server's implementation of reading many ranges in row or key order.
  DsMrr_impl ranges_;
};

// The default of cheetah_snapshot_isolation is that of innodb_snapshot_isolation.
constexpr bool snapshot_isolation_default = true;

// The engine locks the source of a copy against writes, so an online copy is not possible.
constexpr handler::Table_flags copies_offline = HA_NO_ONLINE_ALTER;

// Returns whether two column names are equal.
inline bool is_same_column(const char *name, const char *other) {
  return Lex_ident_column::streq({name, strlen(name)}, {other, strlen(other)});
}

inline std::string lower_case(const std::string &name) {
  std::string result(name.size() * system_charset_info->casedn_multiply(), '\0');
  result.resize(system_charset_info->casedn(name.data(), name.size(), &result[0], result.size()));
  return result;
}

inline bool is_fulltext(const KEY &key) { return key.algorithm == HA_KEY_ALG_FULLTEXT; }
inline bool is_spatial(const KEY &key) { return key.algorithm == HA_KEY_ALG_RTREE; }

// Returns whether the table has a vector index. The server stores it in a separate table, which it
// updates with each row.
inline bool has_vector_index(TABLE_SHARE *share) { return share->hlindexes() != 0; }

#else

// In these releases transaction functions of the handlerton also receive the handlerton as an
// argument.
template <auto function>
struct OfTransaction;
template <typename Result, typename... Arguments, Result (*function)(Arguments...)>
struct OfTransaction<function> {
  static Result call(handlerton *, Arguments... arguments) { return function(arguments...); }
};
template <auto function>
constexpr auto of_transaction = OfTransaction<function>::call;

// Sets nothing: the optimizer's costs are in pages, as for InnoDB (`CostedHandler`).
inline void set_costs(handlerton *) {}

class CostedHandler : public handler {
 public:
  using handler::handler;

  double scan_time() override {
    double pages = clustered_pages();
    return pages == 0 ? handler::scan_time() : pages;
  }

  // The server passes the result of records(), even if that is HA_POS_ERROR.
  double keyread_time(uint key_no, uint ranges, ha_rows rows) override {
    return handler::keyread_time(key_no, ranges, rows == HA_POS_ERROR ? stats.records : rows);
  }

  double read_time(uint key_no, uint ranges, ha_rows rows) override {
    if (key_no != table->s->primary_key) return handler::read_time(key_no, ranges, rows);
    ha_rows total = estimate_rows_upper_bound();
    if (total < rows) return scan_time();
    return ranges + static_cast<double>(rows) / static_cast<double>(total) * scan_time();
  }

  // Returns to the optimizer the server's way and cost of reading many ranges.
  ha_rows multi_range_read_info_const(uint key_no, RANGE_SEQ_IF *ranges, void *context, uint count, uint *bytes,
                                      uint *mode, Cost_estimate *cost) override {
    prepare_ranges(mode);
    return ranges_.dsmrr_info_const(key_no, ranges, context, count, bytes, mode, cost);
  }

 protected:
  // Returns the pages of the clustered index, at least one; 0 if unknown.
  virtual double clustered_pages() const = 0;

  // Prepares `ranges_` before the server plans how to read many ranges, and restricts `mode` to
  // what is allowed.
  virtual void prepare_ranges(uint *mode) = 0;

  // The server's implementation of reading many ranges in row or key order.
  DsMrr_impl ranges_;
};

constexpr bool snapshot_isolation_default = false;

constexpr handler::Table_flags copies_offline = 0;  // these releases have no online copies

inline bool is_same_column(const char *name, const char *other) {
  return my_strcasecmp(system_charset_info, name, other) == 0;
}

inline std::string lower_case(const std::string &name) {
  std::string result(name);
  my_casedn_str(system_charset_info, &result[0]);
  return result;
}

inline bool is_fulltext(const KEY &key) { return key.flags & HA_FULLTEXT; }
inline bool is_spatial(const KEY &key) { return key.flags & HA_SPATIAL; }

inline bool has_vector_index(TABLE_SHARE *) { return false; }

#endif

}  // namespace cheetah
