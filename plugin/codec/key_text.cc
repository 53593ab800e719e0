// SPDX-License-Identifier: GPL-2.0-only
#include "codec/key_text.h"

#include "codec/columns.h"
#include "codec/text_order.h"

#include <compat56.h>
#include <cstdio>
#include <decimal.h>
#include <my_time.h>
#include <string>
#include <tztime.h>

namespace cheetah {

// `shown_as` packs three numbers: the kind in the highest byte, and two parameters of the kind in
// the next byte and the lower two bytes.
enum class Shown : uint32_t { bytes, integer, natural, date, year, datetime, timestamp, time, decimal, real, text };

static uint32_t pack(Shown kind, uint first = 0, uint second = 0) {
  return static_cast<uint32_t>(kind) << 24 | (first & 0xff) << 16 | (second & 0xffff);
}

uint32_t shown_as(const Field *field) {
  if (is_char(field) || is_varchar(field) || (field->flags & BLOB_FLAG)) {
    return pack(Shown::text, 0, field->charset()->number);
  }
  switch (field->real_type()) {
    case MYSQL_TYPE_TINY:
    case MYSQL_TYPE_SHORT:
    case MYSQL_TYPE_INT24:
    case MYSQL_TYPE_LONG:
    case MYSQL_TYPE_LONGLONG: return pack(field->flags & UNSIGNED_FLAG ? Shown::natural : Shown::integer);
    case MYSQL_TYPE_ENUM:
    case MYSQL_TYPE_SET:
    case MYSQL_TYPE_BIT: return pack(Shown::natural);
    case MYSQL_TYPE_NEWDATE: return pack(Shown::date);
    case MYSQL_TYPE_YEAR: return pack(Shown::year);
    case MYSQL_TYPE_DATETIME2: return pack(Shown::datetime, field->decimals());
    case MYSQL_TYPE_TIMESTAMP2: return pack(Shown::timestamp, field->decimals());
    case MYSQL_TYPE_TIME2: return pack(Shown::time, field->decimals());
    case MYSQL_TYPE_NEWDECIMAL:
      return pack(Shown::decimal, field->decimals(), static_cast<const Field_new_decimal *>(field)->precision);
    case MYSQL_TYPE_FLOAT:
    case MYSQL_TYPE_DOUBLE: return pack(Shown::real);
    default: return pack(Shown::bytes);
  }
}

static ulonglong number_of(CheetahBytes value) {
  ulonglong number = 0;
  for (size_t i = 0; i < value.len; i++) number = number << 8 | value.data[i];
  return number;
}

// Returns the text of an integer, whose sign bit is inverted in the key.
static std::string integer_text(CheetahBytes value) {
  ulonglong half = 1ULL << (value.len * 8 - 1);
  return std::to_string(static_cast<longlong>(number_of(value) - half));
}

static std::string date_text(ulonglong packed) {
  char text[32];
  snprintf(text, sizeof(text), "'%04u-%02u-%02u'", static_cast<uint>(packed >> 9), static_cast<uint>(packed >> 5 & 15),
           static_cast<uint>(packed & 31));
  return text;
}

static std::string quoted(const MYSQL_TIME &time, uint decimals) {
  char text[MAX_DATE_STRING_REP_LENGTH + 1];
  int length = my_TIME_to_str(&time, text, decimals);
  return "'" + std::string(text, static_cast<size_t>(length)) + "'";
}

static std::string datetime_text(CheetahBytes value, uint decimals) {
  MYSQL_TIME time;
  TIME_from_longlong_datetime_packed(&time, my_datetime_packed_from_binary(value.data, decimals));
  return quoted(time, decimals);
}

static std::string time_text(CheetahBytes value, uint decimals) {
  MYSQL_TIME time;
  TIME_from_longlong_time_packed(&time, my_time_packed_from_binary(value.data, decimals));
  return quoted(time, decimals);
}

// Returns the text of a timestamp. Timestamp 0 means '0000-00-00 00:00:00'.
static std::string timestamp_text(CheetahBytes value, uint decimals) {
  timeval moment;
  my_timestamp_from_binary(&moment, value.data, decimals);
  MYSQL_TIME time;
  if (moment.tv_sec == 0 && moment.tv_usec == 0) {
    set_zero_time(&time, MYSQL_TIMESTAMP_DATETIME);
  } else {
    my_tz_UTC->gmt_sec_to_TIME(&time, moment.tv_sec);
    time.second_part = static_cast<ulong>(moment.tv_usec);
  }
  return quoted(time, decimals) + " UTC";
}

static std::string decimal_text(CheetahBytes value, uint decimals, uint precision) {
  decimal_digit_t digits[DECIMAL_BUFF_LENGTH];
  decimal_t number;
  number.buf = digits;
  number.len = DECIMAL_BUFF_LENGTH;
  if (bin2decimal(value.data, &number, static_cast<int>(precision), static_cast<int>(decimals)) != E_DEC_OK) return "";
  char text[DECIMAL_MAX_STR_LENGTH + 1];
  int length = sizeof(text);
  if (decimal2string(&number, text, &length, 0, 0, 0) != E_DEC_OK) return "";
  return std::string(text, static_cast<size_t>(length));
}

// Returns the text of a floating-point number. The key has the bits that the server sorts by: all
// bits of a negative number are inverted; other numbers have their sign bit inverted and their
// exponent increased by one.
static std::string real_text(CheetahBytes value) {
  ulonglong top = 1ULL << (value.len * 8 - 1), bits = number_of(value);
  ulonglong exponent_unit = 1ULL << (value.len == sizeof(float) ? 23 : 52);
  if (bits == top) return "0";
  bits = bits & top ? (bits ^ top) - exponent_unit : ~bits;
  char text[40];
  if (value.len == sizeof(float)) {
    uint32_t narrow = static_cast<uint32_t>(bits);
    float number;
    memcpy(&number, &narrow, sizeof(number));
    snprintf(text, sizeof(text), "%.9g", static_cast<double>(number));
  } else {
    double number;
    memcpy(&number, &bits, sizeof(number));
    snprintf(text, sizeof(text), "%.17g", number);
  }
  return text;
}

static std::string string_text(CheetahBytes value, uint charset_number) {
  CHARSET_INFO *charset = get_charset(charset_number, MYF(0));
  if (charset == nullptr || charset == &my_charset_bin) return "";
  TextOrder order;
  order.init(charset, false, static_cast<uint>(value.len));
  std::string found;
  if (!order.find_text(value, &found)) return "";
  String shown;
  uint errors;
  shown.copy(found.data(), found.size(), charset, &my_charset_utf8mb4_bin, &errors);
  return "'" + std::string(shown.ptr(), shown.length()) + "'";
}

static std::string text_of(uint32_t shown_as, CheetahBytes value) {
  uint first = shown_as >> 16 & 0xff, second = shown_as & 0xffff;
  bool is_number = value.len > 0 && value.len <= sizeof(ulonglong);
  switch (static_cast<Shown>(shown_as >> 24)) {
    case Shown::integer: return is_number ? integer_text(value) : "";
    case Shown::natural: return is_number ? std::to_string(number_of(value)) : "";
    case Shown::date: return date_text(number_of(value));
    case Shown::year: return std::to_string(number_of(value) == 0 ? 0 : number_of(value) + 1900);
    case Shown::datetime: return datetime_text(value, first);
    case Shown::timestamp: return timestamp_text(value, first);
    case Shown::time: return time_text(value, first);
    case Shown::decimal: return decimal_text(value, first, second);
    case Shown::real: return is_number ? real_text(value) : "";
    case Shown::text: return string_text(value, second);
    case Shown::bytes: break;
  }
  return "";
}

void show_value(void *, uint32_t shown_as, CheetahBytes value, CheetahTextSink sink, void *sink_context) {
  std::string text = text_of(shown_as, value);
  sink(sink_context, CheetahBytes{reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

}  // namespace cheetah
