"""Uses Peewee: relations, transactions, upserts, full-text search, migrations. Prints JSON."""

import datetime
import json
import sys

import peewee
from playhouse import migrate, reflection

database = peewee.MySQLDatabase("app", user="app", password="app", unix_socket=sys.argv[1],
                                charset="utf8mb4")


class Base(peewee.Model):
    class Meta:
        database = database


class User(Base):
    name = peewee.CharField(unique=True, max_length=80)
    joined = peewee.DateTimeField(default=datetime.datetime(2024, 1, 1))


class Note(Base):
    user = peewee.ForeignKeyField(User, backref="notes", on_delete="CASCADE")
    answers = peewee.ForeignKeyField("self", null=True, backref="answered", on_delete="SET NULL")
    text = peewee.TextField()
    rank = peewee.DecimalField(max_digits=8, decimal_places=2, default=0)

    class Meta:
        indexes = ((("user", "rank"), False),)


class Tag(Base):
    word = peewee.CharField(primary_key=True, max_length=40)


class NoteTag(Base):
    note = peewee.ForeignKeyField(Note, on_delete="CASCADE")
    tag = peewee.ForeignKeyField(Tag, on_delete="RESTRICT")

    class Meta:
        primary_key = peewee.CompositeKey("note", "tag")


MODELS = [User, Note, Tag, NoteTag]


def error(work) -> str:
    """Runs `work` and returns the class and number of its database error, or an empty string."""
    try:
        with database.atomic():
            work()
    except peewee.DatabaseError as failure:
        return f"{type(failure).__name__} {failure.args[0]}"
    return ""


def main() -> dict:
    database.create_tables(MODELS)
    found = {}
    with database.atomic():
        User.insert_many([{"name": f"user {number}"} for number in range(20)]).execute()
        Tag.insert_many([{"word": f"tag{number}"} for number in range(10)]).execute()
        users = list(User.select().order_by(User.id))
        for number in range(400):
            note = Note.create(user=users[number % 20], text=f"note {number} savanna " * 9,
                               rank=number % 37, answers=number // 2 or None)
            NoteTag.create(note=note, tag=f"tag{number % 10}")
    with database.atomic() as outer:
        Note.update(rank=Note.rank + 1).where(Note.rank < 5).execute()
        with database.atomic() as inner:
            Note.delete().where(Note.rank > 10).execute()
            inner.rollback()
        found["within"] = Note.select().count()
        outer.rollback()
    found["twice"] = error(lambda: User.create(name="user 1"))
    found["no parent"] = error(lambda: NoteTag.create(note=1, tag="missing"))
    found["has children"] = error(lambda: Tag.delete().where(Tag.word == "tag1").execute())
    found["upsert"] = User.insert(name="user 2", joined=datetime.datetime(2025, 5, 5)).on_conflict(
        preserve=[User.joined]).execute() is not None
    found["replace"] = User.replace(name="user 3").execute() is not None
    found["deleted"] = User.delete().where(User.name == "user 4").execute()
    found["by user"] = [[name, count, str(rank)] for name, count, rank in (
        User.select(User.name, peewee.fn.COUNT(Note.id), peewee.fn.SUM(Note.rank))
        .join(Note, peewee.JOIN.LEFT_OUTER).group_by(User.name).order_by(User.name).tuples())]
    found["answers"] = [len(note.answered) for note in peewee.prefetch(
        Note.select().order_by(Note.id), Note.select().order_by(Note.id))][:50]
    found["locked"] = Note.select().where(Note.id < 20).for_update().count()
    migrator = migrate.MySQLMigrator(database)
    migrate.migrate(migrator.add_column("note", "seen", peewee.IntegerField(default=3)),
                    migrator.rename_column("note", "rank", "place"),
                    migrator.add_index("note", ("place", "seen")),
                    migrator.drop_not_null("user", "joined"),
                    migrator.alter_column_type("note", "text", peewee.CharField(max_length=500)))
    database.execute_sql("ALTER TABLE note ADD FULLTEXT KEY words (text)")
    found["words"] = sorted(row[0] for row in database.execute_sql(
        "SELECT id FROM note WHERE MATCH (text) AGAINST ('+savanna +17' IN BOOLEAN MODE)"))
    found["reflected"] = {name: sorted(f"{field.name} {type(field).__name__}"
                                       for field in model._meta.sorted_fields)
                          for name, model in reflection.generate_models(database).items()}
    found["row"] = NoteTag.get(NoteTag.tag == "tag7").note_id
    return found


print(json.dumps(main(), default=str))
