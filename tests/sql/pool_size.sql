-- A pool that is too small is adjusted with a warning, or refused in the strict mode for all
-- tables, as in InnoDB; the variable shows the effective value.
--! cheetah-only
SELECT @@cheetah_buffer_pool_size;
SET sql_mode = 'STRICT_ALL_TABLES';
SET GLOBAL cheetah_buffer_pool_size = 1;
SELECT @@cheetah_buffer_pool_size;
SET sql_mode = '';
SET GLOBAL cheetah_buffer_pool_size = 1;
SELECT @@cheetah_buffer_pool_size;
SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'Cheetah_memory_bytes_limit';
SELECT numeric_min_value FROM information_schema.system_variables WHERE variable_name = 'cheetah_buffer_pool_size';
SET GLOBAL cheetah_buffer_pool_size = 134217728;
--! end
