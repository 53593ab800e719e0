// SPDX-License-Identifier: GPL-2.0-only
// Encryption at rest: passes the server's keys and the settings to the engine.
#pragma once

#include "server.h"
#include "cheetah.h"

namespace cheetah {

// The counterparts of InnoDB's variables, with the same meanings.
extern st_mysql_sys_var *const sysvar_default_encryption_key_id;
extern st_mysql_sys_var *const sysvar_encrypt_tables;
extern st_mysql_sys_var *const sysvar_encrypt_log;
extern st_mysql_sys_var *const sysvar_encryption_rotate_key_age;

// Calls to the server's key service, for the engine: a CheetahNewestKeyVersion and a
// CheetahKeyBytes.
uint32_t newest_key_version(uint32_t id);
size_t key_bytes(uint32_t id, uint32_t version, uint8_t *buffer, size_t buffer_bytes);

// Sets the encryption parameters to open the engine: keys and settings.
void set_encryption(CheetahConfig *config);
// Passes the key rotation setting to the open engine.
void tell_rotation();

// Decides whether a table with these options is encrypted. Warns of options that are refused or
// have no effect. Returns 0 or a handler error.
int choose_encryption(THD *thd, uint encrypted, ulonglong key_id, CheetahEncryption *encryption);

}  // namespace cheetah
