-- A table and its children, with a foreign key that cascades; transactions that change both.
-- Usage: sysbench relations.lua --table-size=CHILDREN prepare|run

require("oltp_common")

local CHILDREN_OF_EACH = 4

local function parents_count()
   return math.floor(sysbench.opt.table_size / CHILDREN_OF_EACH)
end

local function some_parent()
   return sysbench.rand.default(1, parents_count())
end

local function child_of(parent)
   return string.format("(%d, '%s', '%s')", parent, get_c_value(), get_pad_value())
end

local function fill(con, statement, count, row)
   con:bulk_insert_init(statement)
   for number = 1, count do
      con:bulk_insert_next(row(number))
   end
   con:bulk_insert_done()
end

function cmd_prepare()
   local con = sysbench.sql.driver():connect()
   local engine = sysbench.opt.mysql_storage_engine
   con:query("CREATE TABLE parents (id INT PRIMARY KEY AUTO_INCREMENT, pad CHAR(60) NOT NULL) ENGINE=" .. engine)
   con:query("CREATE TABLE children (id INT PRIMARY KEY AUTO_INCREMENT, parent INT NOT NULL, c CHAR(120) NOT NULL, " ..
      "pad CHAR(60) NOT NULL, KEY parent (parent), " ..
      "FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE) ENGINE=" .. engine)
   fill(con, "INSERT INTO parents (pad) VALUES", parents_count(), function()
      return string.format("('%s')", get_pad_value())
   end)
   fill(con, "INSERT INTO children (parent, c, pad) VALUES", parents_count() * CHILDREN_OF_EACH, function(number)
      return child_of((number - 1) % parents_count() + 1)
   end)
end

function thread_init()
   con = sysbench.sql.driver():connect()
end

function thread_done()
   con:disconnect()
end

-- A child comes, one moves to another parent, and one goes. A parent goes with its children, and
-- comes again with new ones.
function event()
   local gone = some_parent()
   con:query("BEGIN")
   con:query("INSERT INTO children (parent, c, pad) VALUES " .. child_of(some_parent()))
   con:query(string.format("UPDATE children SET parent = %d WHERE parent = %d ORDER BY id LIMIT 1",
      some_parent(), some_parent()))
   con:query(string.format("DELETE FROM children WHERE parent = %d ORDER BY id LIMIT 1", some_parent()))
   con:query(string.format("DELETE FROM parents WHERE id = %d", gone))
   con:query(string.format("INSERT INTO parents (id, pad) VALUES (%d, '%s')", gone, get_pad_value()))
   local children = {}
   for number = 1, CHILDREN_OF_EACH do
      children[number] = child_of(gone)
   end
   con:query("INSERT INTO children (parent, c, pad) VALUES " .. table.concat(children, ", "))
   con:query("COMMIT")
end

sysbench.cmdline.commands = {prepare = {cmd_prepare}}
