// SPDX-License-Identifier: GPL-2.0-only
// Two-phase commit with the binary log and other engines, and XA.
#pragma once

#include "server.h"

#include <string>

namespace cheetah {

// Fills in those functions of the handlerton.
void set_two_phase(handlerton *hton);

// Whether the server lets the engine take part. It does not when the plugin was installed while the
// server, started with one such engine and without binary log, was running.
bool takes_part_in_two_phase();

// Warns when transactions wait of which the server has not been told: it asks only while it starts.
void warn_of_untold_prepared();

// Before a table is dropped or emptied: waits for prepared transactions whose clients have gone,
// which keep it locked though the server knows of no lock. A handler error.
int wait_for_prepared(const std::string &name, THD *thd);

}  // namespace cheetah
