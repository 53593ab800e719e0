-- Writes the rows of sysbench's own tables as SQL, with sysbench's own random numbers and texts, and without a database.
-- Usage: sysbench sysbench_rows.lua --rand-seed=1 --target=FILE --tables=T --table-size=N --batch=B --texts=digits|old|real [--source=FILE] rows

require("oltp_common")

local opt = sysbench.cmdline.options
opt.target = {"File to write", ""}
opt.batch = {"Rows in each INSERT", 1000}
opt.texts = {"digits; old: of sysbench 0.4, the same in every row; real: of the file --source", "digits"}
opt.source = {"File of one long line of text", ""}

local OLD_C, OLD_PAD = " ", "qqqqqqqqqqwwwwwwwwwweeeeeeeeeerrrrrrrrrrtttttttttt"

function event() end

function cmd_rows()
   local file = assert(io.open(sysbench.opt.target, "w"))
   local source = sysbench.opt.texts == "real" and assert(io.open(sysbench.opt.source, "r"))
   for number = 1, sysbench.opt.tables do
      for row = 1, sysbench.opt.table_size do
         local k = sysbench.rand.default(1, sysbench.opt.table_size)
         local c, pad = OLD_C, OLD_PAD
         if source then
            c, pad = source:read(119), source:read(59)
         elseif sysbench.opt.texts == "digits" then
            c, pad = get_c_value(), get_pad_value()
         end
         local place = (row - 1) % sysbench.opt.batch
         file:write(place == 0 and string.format("INSERT INTO sbtest%d VALUES ", number) or ",", string.format("(%d,%d,'%s','%s')", row, k, c, pad))
         if place == sysbench.opt.batch - 1 or row == sysbench.opt.table_size then
            file:write(";\n")
         end
      end
   end
   assert(file:close())
end

sysbench.cmdline.commands = {rows = {cmd_rows}}
