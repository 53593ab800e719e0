// SPDX-License-Identifier: GPL-2.0-only
// The text of SHOW ENGINE CHEETAH STATUS about the latest foreign key error.
#pragma once

#include "server.h"
#include "cheetah.h"
#include "ddl/table_codec.h"

#include <vector>

namespace cheetah {

// A row that a constraint refused.
struct Refusal {
  uint8_t role;             // whether its table is the constraint's child or parent: a CheetahRole
  const TableCodec *codec;  // of that table
  const uchar *record;      // nullptr if the row was not read yet
  const char *reason;       // follows the description of the row
};

// Appends "(`a`, `b`) = (1, 'x')": the first columns of a key and their values in a record of its
// table. Long values are truncated.
void append_key(THD *thd, const std::vector<KeyPart> &parts, size_t count, const uchar *record, String *out);

// Appends "(1, 'x')": only the values.
void append_values(const std::vector<KeyPart> &parts, size_t count, const uchar *record, String *out);

// Record the refusal for the status of the engine.
void note_refused_row(THD *thd, const CheetahForeignKey &constraint, const Refusal &refusal);
void note_refused_definition(THD *thd, CheetahBytes reason);

}  // namespace cheetah
