// SPDX-License-Identifier: GPL-2.0-only
#include "codec/row_codec.h"

#include "codec/columns.h"

#include <algorithm>

namespace cheetah {

// CHAR with single-byte characters and BINARY columns up to these widths are stored with a fixed
// width, because their values mostly fill them.
static constexpr uint fixed_char_bytes_max = 8;
static constexpr uint fixed_binary_bytes_max = 32;
// If an update writes an unchanged value longer than this, the old external value is reused.
// Shorter values are cheaper to write than to compare.
static constexpr uint kept_value_bytes_min = 255;
static constexpr uint length_bytes_max = 3;  // of a value shorter than a MiB
static constexpr uint hidden_key_bytes = 8;

static bool given_by_key(const Field *field, const KeyCodec *clustered) {
  if (clustered == nullptr) return false;
  for (const KeyPart &part : clustered->parts()) {
    if (part.field() == field) return part.reversible() && part.whole_column();
  }
  return false;
}

void RowCodec::init(TABLE *table, const KeyCodec *clustered) {
  clustered_ = clustered;
  null_bytes_ = table->s->null_bytes;
  // `add` resets columns of the record to find the content of NULL columns. The record belongs to
  // the server, so it is restored.
  std::vector<uchar> record(table->record[0], table->record[0] + table->s->reclength);
  for (Field **field = table->field; *field != nullptr; field++) {
    if (!is_stored(*field)) add_unstored(*field, table);
    else if (!given_by_key(*field, clustered)) add(*field, table);
  }
  memcpy(table->record[0], record.data(), record.size());
  may_have_large_ = longest_row() > cheetah_inline_row_bytes(clustered != nullptr ? clustered->max_bytes() : hidden_key_bytes);
  values_.resize(vars_.size());
  old_values_.resize(vars_.size());
  read_values_.resize(vars_.size());
}

ulonglong RowCodec::longest_row() const {
  ulonglong bytes = null_bytes_ + fixed_bytes_;
  for (const Var &var : vars_) {
    if (var.field->flags & BLOB_FLAG) return ULONGLONG_MAX;
    bytes += var.field->pack_length() + length_bytes_max;
  }
  return bytes;
}

bool RowCodec::is_var(const Field *field) {
  if ((field->flags & BLOB_FLAG) || is_varchar(field)) return true;
  if (!is_char(field)) return false;
  CHARSET_INFO *cs = field->charset();
  if (cs == &my_charset_bin) return field->pack_length() > fixed_binary_bytes_max;
  return cs->mbmaxlen > 1 || field->pack_length() > fixed_char_bytes_max;
}

void RowCodec::add(Field *field, TABLE *table) {
  uint offset = field->offset(table->record[0]);
  bool nullable = field->real_maybe_null();
  uint null_offset = nullable ? static_cast<uint>(field->null_ptr - table->record[0]) : 0;
  uchar null_bit = nullable ? field->null_bit : 0;
  bool var = is_var(field);
  uint words[] = {field->field_index, static_cast<uint>(field->real_type()), var, field->pack_length_in_rec(), nullable};
  described_.insert(described_.end(), std::begin(words), std::end(words));
  Stored stored{field->field_index, words[1], var ? 0 : field->pack_length_in_rec(), null_offset, null_bit, -1, 0, 0};
  if (var) stored.slot = static_cast<int>(vars_.size());
  else if (stored.width > 0) stored.slot = static_cast<int>(widths_.size());
  if (field->real_type() == MYSQL_TYPE_BIT) {
    const Field_bit *bit = static_cast<Field_bit *>(field);
    if (bit->bit_ptr != nullptr) {
      stored.odd_bit = static_cast<uint>(bit->bit_ptr - table->record[0]) * 8 + bit->bit_ofs;
      stored.odd_bits = bit->bit_len;
    }
  }
  stored_.push_back(stored);
  if (nullable) field->reset();
  if (nullable && field->real_type() == MYSQL_TYPE_BIT) add_null_bits(static_cast<Field_bit *>(field), table);
  if (var) {
    vars_.push_back(
        Var{field, offset, null_offset, null_bit, field->field_index, ColumnPlace(field)});
  }
  if (!var) add_fixed(Fixed{field, offset, field->pack_length_in_rec(), null_offset, null_bit});
}

// The server computes a virtual column only on request, and otherwise does not set its bits. The
// bits must be the same in all rows, because REPLACE compares whole rows, and CHECKSUM TABLE
// includes all bits.
void RowCodec::add_unstored(const Field *field, const TABLE *table) {
  auto add = [&](uint offset, uchar bit) {
    bool is_set = table->s->default_values[offset] & bit;
    unstored_nulls_.push_back(UnstoredNull{offset, bit, is_set});
  };
  if (field->real_maybe_null()) add(static_cast<uint>(field->null_ptr - table->record[0]), field->null_bit);
  if (field->real_type() != MYSQL_TYPE_BIT) return;
  const Field_bit *odd = static_cast<const Field_bit *>(field);
  for (uint i = 0; odd->bit_ptr != nullptr && i < odd->bit_len; i++) {
    uint at = odd->bit_ofs + i;
    add(static_cast<uint>(odd->bit_ptr - table->record[0]) + at / 8, static_cast<uchar>(1 << at % 8));
  }
}

void RowCodec::reset_unstored(uchar *nulls) const {
  for (const UnstoredNull &null : unstored_nulls_) {
    if (null.is_set) nulls[null.offset] |= null.bit;
    else nulls[null.offset] &= ~null.bit;
  }
}

void RowCodec::add_fixed(const Fixed &column) {
  if (column.width == 0) return;
  if (column.null_bit != 0) {
    nullable_fixed_.push_back(column);
    nullable_places_.push_back(fixed_bytes_);
    null_images_.insert(null_images_.end(), column.field->ptr, column.field->ptr + column.width);
  }
  bool joins = !runs_.empty() && runs_.back().offset + runs_.back().width == column.offset;
  if (joins) runs_.back().width += column.width;
  else runs_.push_back(Run{column.offset, column.width});
  widths_.push_back(static_cast<uint16_t>(column.width));
  fixed_bytes_ += column.width;
}

// Adds the odd bits of a BIT column, which are stored among the NULL bits.
void RowCodec::add_null_bits(const Field_bit *field, const TABLE *table) {
  if (field->bit_ptr == nullptr || field->bit_len == 0) return;
  null_bits_.push_back(NullBits{static_cast<uint>(field->null_ptr - table->record[0]), field->null_bit,
                                static_cast<uint>(field->bit_ptr - table->record[0]), field->bit_ofs, field->bit_len});
}

CheetahRowFormatVersion RowCodec::row_format() const {
  return CheetahRowFormatVersion{static_cast<uint16_t>(null_bytes_), static_cast<uint16_t>(vars_.size()), widths_.data(),
                      widths_.size()};
}

bool RowCodec::same_columns(const RowCodec &other) const {
  return null_bytes_ == other.null_bytes_ && stored_ == other.stored_ && null_bits_ == other.null_bits_;
}

static uint bit_number(uint offset, uchar bit) {
  uint number = offset * 8;
  while (bit >>= 1) number++;
  return number;
}

bool RowCodec::moves_from(const RowCodec &other, const std::vector<uint> &was, Moves *moves) const {
  moves->fixed.assign(widths_.size(), -1);
  moves->vars.assign(vars_.size(), -1);
  for (const Stored &column : stored_) {
    uint old_no = was[column.no];
    if (old_no == no_column) continue;
    auto is_it = [old_no](const Stored &stored) { return stored.no == old_no; };
    auto old = std::find_if(other.stored_.begin(), other.stored_.end(), is_it);
    if (old == other.stored_.end() || old->type != column.type || old->width != column.width ||
        (old->slot < 0) != (column.slot < 0) || (old->null_bit == 0) != (column.null_bit == 0) ||
        old->odd_bits != column.odd_bits) {
      return false;
    }
    bool var = column.width == 0 && column.slot >= 0;
    if (column.slot >= 0) (var ? moves->vars : moves->fixed)[column.slot] = old->slot;
    if (column.null_bit != 0) {
      moves->bits.push_back(CheetahBitRun{bit_number(old->null_offset, old->null_bit), bit_number(column.null_offset, column.null_bit), 1});
    }
    if (column.odd_bits != 0) moves->bits.push_back(CheetahBitRun{old->odd_bit, column.odd_bit, column.odd_bits});
  }
  return true;
}

void RowCodec::describe(Buffer *out) const {
  out->append_varint(null_bytes_);
  for (uint word : described_) out->append_varint(word);
}

CheetahBytes RowCodec::value_of(const Var &var, const uchar *record) const {
  bool null = var.null_bit != 0 && (record[var.null_offset] & var.null_bit);
  return null ? CheetahBytes{nullptr, 0} : column_bytes(var.field, record + var.offset);
}

bool RowCodec::needs_old_row(const uchar *record, const MY_BITMAP *write_set) const {
  if (!may_have_large_) return false;
  for (const Var &var : vars_) {
    bool written = bitmap_is_set(write_set, var.field->field_index);
    if (!written || value_of(var, record).len > kept_value_bytes_min) return true;
  }
  return false;
}

// A value that was not fetched is empty in the old record. External values are never empty.
static bool same_value(CheetahBytes value, CheetahBytes old) {
  return value.len > 0 && value.len == old.len && memcmp(value.data, old.data, value.len) == 0;
}

void RowCodec::append_nulls(const uchar *record, Buffer *out) const {
  uchar *to = out->reserve(null_bytes_ + 1);  // clr_rec_bits may rewrite one more byte, unchanged
  memcpy(to, record, null_bytes_);
  for (const NullBits &bits : null_bits_) {
    if (record[bits.null_offset] & bits.null_bit) clr_rec_bits(to + bits.offset, bits.first, bits.count);
  }
  reset_unstored(to);
  out->advance(null_bytes_);
}

void RowCodec::append_fixed(const uchar *record, Buffer *out) const {
  uchar *start = out->reserve(fixed_bytes_);
  uchar *to = start;
  for (const Run &run : runs_) {
    memcpy(to, record + run.offset, run.width);
    to += run.width;
  }
  const uchar *image = null_images_.data();
  for (size_t i = 0; i < nullable_fixed_.size(); i++) {
    const Fixed &column = nullable_fixed_[i];
    if (record[column.null_offset] & column.null_bit) memcpy(start + nullable_places_[i], image, column.width);
    image += column.width;
  }
  out->advance(fixed_bytes_);
}

bool RowCodec::encode(const uchar *record, const Old &old, const MY_BITMAP *write_set, Buffer *out) {
  bool has_old = old.row.len > 0;
  if (has_old && !locate(old.row, &old_values_)) return false;
  append_nulls(record, out);
  append_fixed(record, out);
  for (size_t i = 0; i < vars_.size(); i++) {
    const Var &var = vars_[i];
    Value &value = values_[i];
    value = Value{value_of(var, record), false};
    bool keep = has_old && old_values_[i].external &&
                (!bitmap_is_set(write_set, var.field->field_index) || same_value(value.bytes, value_of(var, old.record)));
    if (keep) value = old_values_[i];
    out->append_varint(static_cast<ulonglong>(value.bytes.len) << 1 | value.external);
  }
  for (const Value &value : values_) out->append(value.bytes.data, value.bytes.len);
  return true;
}

// Finds the var columns of a stored row. Returns false if the row is invalid.
bool RowCodec::locate(CheetahBytes row, std::vector<Value> *values) const {
  if (row.len < null_bytes_ + fixed_bytes_) return false;
  const uchar *end = row.data + row.len;
  const uchar *lengths = row.data + null_bytes_ + fixed_bytes_;
  ulonglong word, total = 0;
  for (Value &value : *values) {
    if (!read_varint(&lengths, end, &word)) return false;
    value.bytes.len = word >> 1;
    value.external = word & 1;
    total += value.bytes.len;
    if (total > row.len) return false;
  }
  const uchar *at = lengths;
  if (total != static_cast<ulonglong>(end - at)) return false;
  for (Value &value : *values) {
    value.bytes.data = at;
    at += value.bytes.len;
  }
  return true;
}

// Returns whether a large value is needed. A change of the clustered key needs the keys of all
// indexes, and so columns that the server did not request.
bool RowCodec::is_wanted(const Field *field, const TABLE *table) const {
  uint no = field->field_index;
  if (bitmap_is_set(table->read_set, no) || bitmap_is_set(table->write_set, no)) return true;
  bool of_key = field->flags & (PART_KEY_FLAG | PART_INDIRECT_KEY_FLAG);
  return of_key && clustered_ != nullptr && clustered_->touches(table->write_set);
}

int RowCodec::decode(CheetahBytes row, uchar *record, const TABLE *table, Columns columns,
                     LargeValues *large) const {
  if (!locate(row, &read_values_)) return HA_ERR_CRASHED;
  memcpy(record, row.data, null_bytes_);
  reset_unstored(record);
  const uchar *from = row.data + null_bytes_;
  for (const Run &run : runs_) {
    memcpy(record + run.offset, from, run.width);
    from += run.width;
  }
  for (size_t i = 0; i < vars_.size(); i++) {
    const Var &var = vars_[i];
    CheetahBytes value = read_values_[i].bytes;
    if (columns == Columns::read && !bitmap_is_set(table->read_set, var.no)) {
      var.place.leave(record + var.offset);
      continue;
    }
    if (read_values_[i].external) {
      bool wanted = columns == Columns::complete || is_wanted(var.field, table);
      int error = wanted ? large->fetch(static_cast<unsigned>(i), value, &value) : 0;
      if (error != 0) return error;
      if (!wanted) value = CheetahBytes{nullptr, 0};
    }
    if (!var.place.set(record + var.offset, value)) return HA_ERR_CRASHED;
  }
  return 0;
}

}  // namespace cheetah
