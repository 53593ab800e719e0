// SPDX-License-Identifier: GPL-2.0-only
// The server's headers, with the macro that makes their server-internal parts visible to a plugin.
// Include this first.
#pragma once

#define MYSQL_SERVER 1
#include <my_global.h>
#include <sql_class.h>
#include <handler.h>
#include <table.h>
#include <field.h>
#include <key.h>
#include <mysql/plugin.h>
#include <sql_plugin.h>
#include <log.h>

#include "server_versions.h"
