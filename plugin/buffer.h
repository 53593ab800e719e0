// SPDX-License-Identifier: GPL-2.0-only
// A growable byte buffer that keeps its memory from row to row.
#pragma once

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "cheetah.h"

namespace cheetah {

// Pointers into a Buffer are valid until the next call that may grow it.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { std::free(data_); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  void clear() { size_ = 0; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  unsigned char *data() { return data_; }
  const unsigned char *data() const { return data_; }
  CheetahBytes bytes() const { return CheetahBytes{data_, size_}; }
  CheetahBytes bytes(size_t from, size_t to) const { return CheetahBytes{data_ + from, to - from}; }

  // Makes room for `count` more bytes and returns the place to write them. `advance` adds them to
  // the size.
  unsigned char *reserve(size_t count) {
    if (size_ + count > capacity_) grow(size_ + count);
    return data_ + size_;
  }
  void advance(size_t count) { size_ += count; }
  void truncate(size_t size) { size_ = size; }

  void append(const void *bytes, size_t count) {
    if (count == 0) return;
    std::memcpy(reserve(count), bytes, count);
    size_ += count;
  }
  void append_byte(unsigned char byte) {
    *reserve(1) = byte;
    size_++;
  }
  void append_zeroes(size_t count) {
    if (count == 0) return;
    std::memset(reserve(count), 0, count);
    size_ += count;
  }
  // Appends a number with seven bits per byte, lowest bits first.
  void append_varint(unsigned long long value) {
    unsigned char *place = reserve(10);
    size_t used = 0;
    while (value >= 0x80) {
      place[used++] = static_cast<unsigned char>(value) | 0x80;
      value >>= 7;
    }
    place[used++] = static_cast<unsigned char>(value);
    size_ += used;
  }
  void assign(CheetahBytes bytes) {
    clear();
    append(bytes.data, bytes.len);
  }

 private:
  void grow(size_t needed) {
    size_t capacity = capacity_ * 2 > needed ? capacity_ * 2 : needed + 64;
    void *fresh = std::realloc(data_, capacity);
    if (fresh == nullptr) throw std::bad_alloc();
    data_ = static_cast<unsigned char *>(fresh);
    capacity_ = capacity;
  }

  unsigned char *data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// Reads the varint at `*at` and advances `*at` past it. Returns false if it does not end before
// `end`.
inline bool read_varint(const unsigned char **at, const unsigned char *end, unsigned long long *value) {
  unsigned long long result = 0;
  for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
    unsigned char byte = *(*at)++;
    result |= static_cast<unsigned long long>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return true;
    }
  }
  return false;
}

}  // namespace cheetah
