// SPDX-License-Identifier: GPL-2.0-only
// Where the releases of the server differ: all that depends on one is here. Comes with server.h.
#pragma once

#include <string>

namespace cheetah {

// A copy of a table begins, ends, or is given up: ALTER TABLE, and CREATE TABLE .. SELECT.
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

// The functions of the handlerton that concern transactions: as they are.
template <auto function>
constexpr auto of_transaction = function;

// The costs that the optimizer is told: those that it works out itself. Milliseconds that a row or
// a key takes, as measured for InnoDB, so that plans should be the same.
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

  // The server asks with the answer of records(), whatever that is.
  IO_AND_CPU_COST keyread_time(uint key_no, ulong ranges, ha_rows rows, ulonglong blocks) override {
    return handler::keyread_time(key_no, ranges, rows == HA_POS_ERROR ? stats.records : rows, blocks);
  }

  // Tells the optimizer how the server would read many ranges.
  ha_rows multi_range_read_info_const(uint key_no, RANGE_SEQ_IF *ranges, void *context, uint count, uint *bytes,
                                      uint *mode, ha_rows wanted, Cost_estimate *cost) override {
    prepare_ranges(mode);
    return ranges_.dsmrr_info_const(key_no, ranges, context, count, bytes, mode, wanted, cost);
  }

 protected:
  // Pages of the clustered index, at least one; 0 if not known.
  virtual double clustered_pages() const = 0;

  // Makes `ranges_` ready before the server plans how to read many ranges; forbids in `mode` what
  // must not be.
  virtual void prepare_ranges(uint *mode) = 0;

  // The server's way to read many ranges in the order of rows or keys.
  DsMrr_impl ranges_;
};

// The default of cheetah_snapshot_isolation is that of innodb_snapshot_isolation.
constexpr bool snapshot_isolation_default = true;

// The engine locks the source of a copy, so that it stays as it is: nobody writes to it meanwhile.
constexpr handler::Table_flags copies_offline = HA_NO_ONLINE_ALTER;

// Whether two columns have the same name.
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

// Whether the server keeps a table beside it, for a vector index, and changes that for each row.
inline bool has_vector_index(TABLE_SHARE *share) { return share->hlindexes() != 0; }

#else

// The functions of the handlerton that concern transactions get the handlerton, too.
template <auto function>
struct OfTransaction;
template <typename Result, typename... Arguments, Result (*function)(Arguments...)>
struct OfTransaction<function> {
  static Result call(handlerton *, Arguments... arguments) { return function(arguments...); }
};
template <auto function>
constexpr auto of_transaction = OfTransaction<function>::call;

// The costs that the optimizer is told: pages, with InnoDB's numbers.
inline void set_costs(handlerton *) {}

class CostedHandler : public handler {
 public:
  using handler::handler;

  double scan_time() override {
    double pages = clustered_pages();
    return pages == 0 ? handler::scan_time() : pages;
  }

  // The server asks with the answer of records(), whatever that is.
  double keyread_time(uint key_no, uint ranges, ha_rows rows) override {
    return handler::keyread_time(key_no, ranges, rows == HA_POS_ERROR ? stats.records : rows);
  }

  double read_time(uint key_no, uint ranges, ha_rows rows) override {
    if (key_no != table->s->primary_key) return handler::read_time(key_no, ranges, rows);
    ha_rows total = estimate_rows_upper_bound();
    if (total < rows) return scan_time();
    return ranges + static_cast<double>(rows) / static_cast<double>(total) * scan_time();
  }

  // Tells the optimizer how the server would read many ranges.
  ha_rows multi_range_read_info_const(uint key_no, RANGE_SEQ_IF *ranges, void *context, uint count, uint *bytes,
                                      uint *mode, Cost_estimate *cost) override {
    prepare_ranges(mode);
    return ranges_.dsmrr_info_const(key_no, ranges, context, count, bytes, mode, cost);
  }

 protected:
  // Pages of the clustered index, at least one; 0 if not known.
  virtual double clustered_pages() const = 0;

  // Makes `ranges_` ready before the server plans how to read many ranges; forbids in `mode` what
  // must not be.
  virtual void prepare_ranges(uint *mode) = 0;

  // The server's way to read many ranges in the order of rows or keys.
  DsMrr_impl ranges_;
};

constexpr bool snapshot_isolation_default = false;

constexpr handler::Table_flags copies_offline = 0;  // as all copies

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
