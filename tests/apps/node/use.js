// Uses Sequelize, then Knex: `use.js SOCKET`. Prints what it found, as JSON.
'use strict';
const { Sequelize, DataTypes, Op } = require('sequelize');
const makeKnex = require('knex');

const socketPath = process.argv[2];

// From 0 to below `count`.
function numbers(count) {
  return [...Array(count).keys()];
}

async function failure(work) {
  try {
    await work();
  } catch (error) {
    return `${error.name} ${(error.parent || error).errno}`;
  }
  return '';
}

async function sequelize() {
  const db = new Sequelize('app', 'app', 'app', {
    dialect: 'mysql', dialectOptions: { socketPath }, logging: false, pool: { max: 4 } });
  const Ship = db.define('ship', { name: { type: DataTypes.STRING(60), unique: true },
    data: DataTypes.JSON, built: DataTypes.DATEONLY }, { paranoid: true, version: true });
  const Trip = db.define('trip', { harbour: { type: DataTypes.STRING, allowNull: false },
    cost: DataTypes.DECIMAL(10, 2) },
  { indexes: [{ fields: ['harbour', { name: 'cost', order: 'DESC' }] }] });
  const Sailor = db.define('sailor', { name: DataTypes.STRING(60) });
  Ship.hasMany(Trip, { foreignKey: { allowNull: false }, onDelete: 'RESTRICT' });
  Trip.belongsTo(Ship);
  Ship.belongsToMany(Sailor, { through: 'crew' });
  Sailor.belongsToMany(Ship, { through: 'crew' });
  await db.sync();
  const sailors = await Sailor.bulkCreate(numbers(12).map((n) => ({ name: `Sailor ${n}` })));
  for (let n = 0; n < 40; n++) {
    const ship = await Ship.create({ name: `Ship ${n}`, data: { n }, built: `19${50 + n}-05-01`,
      trips: numbers(n % 4).map((at) => ({ harbour: `Harbour ${at}`, cost: n * at / 4 })) },
    { include: [Trip] });
    await ship.addSailors([sailors[n % 12], sailors[(n + 5) % 12]]);
  }
  const found = {};
  found.joined = (await Ship.findAll({ include: [{ model: Trip, where: { cost: { [Op.gt]: 3 } } }],
    order: [['id', 'ASC'], [Trip, 'id', 'ASC']] })).map((ship) => [ship.name, ship.trips.length]);
  found.grouped = await Trip.findAll({
    attributes: ['harbour', [db.fn('SUM', db.col('cost')), 'sum']],
    group: ['harbour'], order: ['harbour'], raw: true });
  found.twice = await failure(() => Ship.create({ name: 'Ship 3' }));
  found.orphan = await failure(() => Trip.create({ harbour: 'x', shipId: 999 }));
  found.children = await failure(() => Ship.destroy({ where: { name: 'Ship 3' }, force: true }));
  // Two transactions add to the same row; both additions stay.
  await Promise.all([1, 2, 3, 4].map((n) => db.transaction(async (transaction) => {
    const ship = await Ship.findByPk(7, { transaction, lock: transaction.LOCK.UPDATE });
    await ship.update({ data: { ...ship.data, sum: (ship.data.sum || 0) + n } }, { transaction });
  })));
  found.sum = (await Ship.findByPk(7)).data.sum;
  await failure(() => db.transaction(async (transaction) => {
    await Trip.destroy({ where: {}, transaction });
    throw new Error('back');
  }));
  found.trips = await Trip.count();
  found.upsert = (await Ship.upsert({ id: 5, name: 'Ship 4', data: { again: true } }))[0].name;
  await Ship.destroy({ where: { id: 9 } });
  found.ships = [await Ship.count(), await Ship.count({ paranoid: false })];
  await db.close();
  return found;
}

async function knex() {
  const db = makeKnex({ client: 'mysql2', connection: {
    socketPath, user: 'app', password: 'app', database: 'app' } });
  await db.schema.createTable('parents', (table) => {
    table.increments();
    table.string('word', 50).notNullable().unique();
    table.text('body');
    table.index('body', 'words', 'FULLTEXT');
  });
  await db.schema.createTable('children', (table) => {
    table.increments();
    table.integer('parent').unsigned().references('parents.id').onDelete('CASCADE')
      .onUpdate('CASCADE');
    table.json('data');
  });
  await db.batchInsert('parents',
    numbers(300).map((n) => ({ word: `w${n}`, body: `wood number n${n}` })), 50);
  await db.batchInsert('children',
    numbers(900).map((n) => ({ parent: 1 + n % 300, data: JSON.stringify({ n }) })), 100);
  await db.schema.alterTable('children', (table) => {
    table.dropForeign('parent');
    table.renameColumn('parent', 'parent_id');
    table.integer('extra').defaultTo(7);
  });
  await db.schema.alterTable('children', (table) => {
    table.foreign('parent_id').references('parents.id').onDelete('SET NULL');
  });
  const found = {};
  await db.transaction(async (trx) => {
    await trx('parents').where('id', '<', 10).del();
    await trx('parents').where({ id: 20 }).update({ id: 2000 })
      .catch((error) => { found.update = error.errno; });
  });
  found.alone = (await db('children').whereNull('parent_id').count({ n: '*' }))[0].n;
  found.words = await db('parents')
    .whereRaw('MATCH (body) AGAINST (? IN BOOLEAN MODE)', ['+wood +n77']).pluck('word');
  found.joined = await db('children').join('parents', 'parents.id', 'parent_id').groupBy('word')
    .having(db.raw('COUNT(*) > 2')).select('word').orderBy('word').limit(9).pluck('word');
  found.merged = (await db('parents').insert({ word: 'w50', body: 'x' }).onConflict('word')
    .merge()).length;
  await db.destroy();
  return found;
}

async function main() {
  console.log(JSON.stringify({ ...await sequelize(), knex: await knex() }));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
