// SPDX-License-Identifier: GPL-2.0-only
// Two-phase commit with the binary log and other engines, and XA.
#pragma once

#include "server.h"

#include <string>

namespace cheetah {

// Sets the functions of the handlerton for two-phase commit and XA.
void set_two_phase(handlerton *hton);

// Returns whether the server lets the engine take part in two-phase commit. The result is false if
// the plugin was installed into a running server that was started without a binary log and with
// only one engine that supports two-phase commit.
bool takes_part_in_two_phase();

// Warns of prepared transactions that the server does not know, because it lists them only while it
// starts.
void warn_of_untold_prepared();

// Called before a table is dropped or truncated: waits for prepared transactions without a
// connection, because the server does not know their locks on the table. Returns a handler error.
int wait_for_prepared(const std::string &name, THD *thd);

}  // namespace cheetah
