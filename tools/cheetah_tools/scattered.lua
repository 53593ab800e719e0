-- A workload of sysbench (that which $CHEETAH_WORKLOAD names) with the keys of YCSB: how often a row is read goes by its
-- rank, as 1 / rank^0.9, and a hash scatters the ranks over the table.
-- Usage: CHEETAH_WORKLOAD=oltp_read_write sysbench scattered.lua ..; `draw` prints keys of a table of --table-size rows.
-- Source: Gray and others, Quickly generating billion-record synthetic databases (1994).

require(os.getenv("CHEETAH_WORKLOAD"))

local THETA = 0.9
local PRIME = 2654435761     -- has no divisor with a number of rows, so no two ranks have the same row
local DRAWN = 10000
local zipfian = {}           -- by the number of rows

local function zeta(count)
   local sum = 0
   for rank = 1, count do
      sum = sum + 1 / rank ^ THETA
   end
   return sum
end

local function of(count)
   if not zipfian[count] then
      local all = zeta(count)
      zipfian[count] = {zeta = all, eta = (1 - (2 / count) ^ (1 - THETA)) / (1 - zeta(2) / all)}
   end
   return zipfian[count]
end

local function rank(count)
   local known, random = of(count), sysbench.rand.uniform_double()
   local place = random * known.zeta
   if place < 1 then
      return 0
   elseif place < 1 + 0.5 ^ THETA then
      return 1
   end
   return math.min(count - 1, math.floor(count * (known.eta * random - known.eta + 1) ^ (1 / (1 - THETA))))
end

function sysbench.rand.default(first, last)
   local count = last - first + 1
   return first + (rank(count) + 1) * PRIME % count
end

sysbench.cmdline.commands.draw = {function()
   for _ = 1, DRAWN do
      print(string.format("key %d", sysbench.rand.default(1, sysbench.opt.table_size)))
   end
end}
