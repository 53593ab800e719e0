// SPDX-License-Identifier: GPL-2.0-only
#include "constraints/refusals.h"

#include "constraints/foreign_keys.h"
#include "engine.h"

#include <sql_show.h>

namespace cheetah {

// Limits on the length of the statement, and of each value of a key, in the status.
static constexpr size_t query_bytes_max = 1024;
static constexpr size_t value_chars_max = 100;

static void append_statement(THD *thd, String *out) {
  char buffer[2 * query_bytes_max];
  const char *text = thd_get_error_context_description(thd, buffer, sizeof(buffer), query_bytes_max);
  out->append(text, strlen(text), thd->charset());
  out->append('\n');
}

static void append_hex(const char *bytes, size_t count, String *out) {
  out->append(STRING_WITH_LEN("0x"));
  for (size_t i = 0; i < count; i++) {
    out->append(_dig_vec_upper[static_cast<uchar>(bytes[i]) >> 4]);
    out->append(_dig_vec_upper[static_cast<uchar>(bytes[i]) & 15]);
  }
}

static void append_text(const String &value, String *out) {
  CHARSET_INFO *cs = value.charset();
  size_t bytes = Well_formed_prefix(cs, value.ptr(), value.length(), value_chars_max).length();
  if (cs == &my_charset_bin) {
    append_hex(value.ptr(), bytes, out);
  } else {
    out->append('\'');
    out->append_for_single_quote_opt_convert(value.ptr(), bytes, cs);
    out->append('\'');
  }
  if (bytes < value.length()) out->append(STRING_WITH_LEN(".."));
}

// Appends the value in the format of the column.
static void append_value(const KeyPart &part, const uchar *record, String *out) {
  if (part.is_null(record)) {
    out->append(STRING_WITH_LEN("NULL"));
    return;
  }
  Field *field = part.field();
  my_ptrdiff_t offset = record - field->table->record[0];
  MY_BITMAP *read_set = dbug_tmp_use_all_columns(field->table, &field->table->read_set);
  StringBuffer<MAX_FIELD_WIDTH> value;
  field->move_field_offset(offset);
  field->val_str(&value);
  field->move_field_offset(-offset);
  dbug_tmp_restore_column_map(&field->table->read_set, read_set);
  if (field->cmp_type() == STRING_RESULT) append_text(value, out);
  else out->append(value.ptr(), value.length(), value.charset());
}

void append_values(const std::vector<KeyPart> &parts, size_t count, const uchar *record, String *out) {
  out->append('(');
  for (size_t i = 0; i < count; i++) {
    if (i > 0) out->append(STRING_WITH_LEN(", "));
    append_value(parts[i], record, out);
  }
  out->append(')');
}

void append_key(THD *thd, const std::vector<KeyPart> &parts, size_t count, const uchar *record, String *out) {
  for (size_t i = 0; i < count; i++) {
    const LEX_CSTRING &name = parts[i].field()->field_name;
    out->append(i == 0 ? '(' : ',');
    if (i > 0) out->append(' ');
    append_identifier(thd, out, name.str, name.length);
  }
  out->append(STRING_WITH_LEN(") = "));
  append_values(parts, count, record, out);
}

static void append_row(THD *thd, const CheetahForeignKey &constraint, const Refusal &refusal, String *out) {
  bool is_child = refusal.role == CHEETAH_ROLE_CHILD;
  const CheetahKeySide &side = is_child ? constraint.child_key : constraint.parent_key;
  if (is_child) out->append(STRING_WITH_LEN("A row of the child table"));
  else out->append(STRING_WITH_LEN("A row of the parent table"));
  if (refusal.record != nullptr && side.columns != nullptr) {
    out->append(STRING_WITH_LEN(" with "));
    append_key(thd, refusal.codec->key_at(side.index_no).parts(), constraint.column_count, refusal.record, out);
  }
  out->append(STRING_WITH_LEN(": "));
  out->append(refusal.reason, strlen(refusal.reason));
}

static void note(const String &text) {
  cheetah_note_refused_by_constraint(engine.db, CheetahBytes{reinterpret_cast<const uint8_t *>(text.ptr()), text.length()});
}

void note_refused_row(THD *thd, const CheetahForeignKey &constraint, const Refusal &refusal) {
  String text;
  text.set_charset(&my_charset_utf8mb4_bin);
  append_statement(thd, &text);
  text.append(STRING_WITH_LEN("Foreign key constraint fails for table "));
  append_table_and_constraint(thd, constraint, &text);
  text.append('\n');
  append_row(thd, constraint, refusal, &text);
  note(text);
}

void note_refused_definition(THD *thd, CheetahBytes reason) {
  String text;
  text.set_charset(&my_charset_utf8mb4_bin);
  append_statement(thd, &text);
  text.append(STRING_WITH_LEN("Refused because of a foreign key constraint: "));
  text.append(reinterpret_cast<const char *>(reason.data), reason.len, &my_charset_utf8mb4_bin);
  note(text);
}

}  // namespace cheetah
