// SPDX-License-Identifier: GPL-2.0-only
#include "codec/columns.h"

namespace cheetah {

bool is_char(const Field *field) {
  return field->type_handler() == &type_handler_string || field->type_handler() == &type_handler_var_string;
}

bool is_varchar(const Field *field) { return field->real_type() == MYSQL_TYPE_VARCHAR || field->real_type() == MYSQL_TYPE_VARCHAR_COMPRESSED; }

// Fixed-width types of type plugins also report MYSQL_TYPE_STRING, but are not CHAR, ENUM or SET.
bool is_fixed_binary(const Field *field) {
  return field->real_type() == MYSQL_TYPE_STRING && !is_char(field) && field->cmp_type() == STRING_RESULT &&
         !(field->flags & BLOB_FLAG);
}

bool is_stored(const Field *field) { return field->stored_in_db(); }

static CheetahBytes char_bytes(const Field *field, const uchar *place) {
  CHARSET_INFO *cs = field->charset();
  size_t length = field->pack_length();
  if (cs != &my_charset_bin) return CheetahBytes{place, cs->lengthsp(reinterpret_cast<const char *>(place), length)};
  while (length > 0 && place[length - 1] == 0) length--;
  return CheetahBytes{place, length};
}

static CheetahBytes varchar_bytes(const Field *field, const uchar *place) {
  if (static_cast<const Field_varstring *>(field)->length_bytes == 1) return CheetahBytes{place + 1, place[0]};
  return CheetahBytes{place + 2, uint2korr(place)};
}

CheetahBytes column_bytes(const Field *field, const uchar *place) {
  if (field->flags & BLOB_FLAG) {
    const auto *blob = static_cast<const Field_blob *>(field);
    return CheetahBytes{blob->get_ptr(place), blob->get_length(place)};
  }
  return is_varchar(field) ? varchar_bytes(field, place) : char_bytes(field, place);
}

static void set_char_bytes(const Field *field, uchar *place, CheetahBytes value) {
  CHARSET_INFO *cs = field->charset();
  size_t width = field->pack_length();
  if (value.len > 0) memcpy(place, value.data, value.len);
  if (cs == &my_charset_bin) memset(place + value.len, 0, width - value.len);
  else cs->fill(reinterpret_cast<char *>(place) + value.len, width - value.len, ' ');
}

static void set_varchar_bytes(const Field *field, uchar *place, CheetahBytes value) {
  uint length_bytes = static_cast<const Field_varstring *>(field)->length_bytes;
  if (length_bytes == 1) place[0] = static_cast<uchar>(value.len);
  else int2store(place, static_cast<uint16>(value.len));
  if (value.len > 0) memcpy(place + length_bytes, value.data, value.len);
}

void set_column_bytes(const Field *field, uchar *place, CheetahBytes value) {
  if (field->flags & BLOB_FLAG) {
    auto *blob = const_cast<Field_blob *>(static_cast<const Field_blob *>(field));
    blob->set_ptr_offset(place - field->ptr, static_cast<uint32>(value.len), value.data);
  } else if (is_varchar(field)) {
    set_varchar_bytes(field, place, value);
  } else {
    set_char_bytes(field, place, value);
  }
}

ColumnPlace::ColumnPlace(const Field *field) : field_(field), width_(field->pack_length()) {
  if (field->flags & BLOB_FLAG) {
    kind_ = Kind::blob;
  } else if (is_varchar(field)) {
    kind_ = Kind::varchar;
    length_bytes_ = static_cast<uchar>(static_cast<const Field_varstring *>(field)->length_bytes);
    width_ -= length_bytes_;
  } else {
    charset_ = field->charset();
    bool binary = charset_ == &my_charset_bin;
    kind_ = binary || charset_->mbminlen == 1 ? Kind::padded : Kind::filled;
    padding_ = binary ? 0 : ' ';
  }
}

bool ColumnPlace::set(uchar *place, CheetahBytes value) const {
  if (kind_ == Kind::blob) {
    set_column_bytes(field_, place, value);
    return true;
  }
  if (value.len > width_) return false;
  if (kind_ == Kind::varchar) {
    if (length_bytes_ == 1) place[0] = static_cast<uchar>(value.len);
    else int2store(place, static_cast<uint16>(value.len));
    place += length_bytes_;
  }
  if (value.len > 0) memcpy(place, value.data, value.len);
  place += value.len;
  if (kind_ == Kind::padded) memset(place, padding_, width_ - value.len);
  if (kind_ == Kind::filled) charset_->fill(reinterpret_cast<char *>(place), width_ - value.len, ' ');
  return true;
}

void ColumnPlace::leave(uchar *place) const {
  if (kind_ == Kind::blob) set_column_bytes(field_, place, CheetahBytes{nullptr, 0});
}

}  // namespace cheetah
